//! The kernel engine as a whole: a state in the kernel, its programs on interfaces, and what outlives the process.

use super::arena::Arena;
use super::attach::{Attached, check_free};
use super::error::KernelError;
use super::handover::Handover;
use super::interface::{self, Interface};
use super::kept::Kept;
use super::layout::ADDRESSES_MAX;
use super::pins::Pins;
use super::program::Kernel;
use crate::XdpMode;
use crate::program::SoftProgram;
use std::net::{IpAddr, SocketAddr};

/// Where and how a switch serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Address and port for clients and executors; the address may be unspecified.
    pub listen: SocketAddr,
    /// Names of interfaces.
    pub interfaces: Vec<String>,
    /// How XDP is attached.
    pub mode: XdpMode,
    /// Whether state and programs outlive the process, for the next one to take over.
    pub keep: bool,
    /// Whether to discard first what a former process kept.
    pub fresh: bool,
}

/// What a former process had kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Its state, which was taken over.
    TakenOver,
    /// Its state, which was discarded.
    ThrownAway,
}

/// A program in the kernel, attached to interfaces. Dropping it detaches the programs and frees the state, unless it is kept.
#[derive(Debug)]
pub struct KernelEngine<P> {
    // Fields are dropped in this order: the attached programs before the core that they call.
    attached: Vec<Attached>,
    handover: Handover,
    kernel: Kernel<P>,
    _pins: Option<Pins>,
    place: Place,
    found: Found,
    served: Vec<IpAddr>,
    /// Addresses for which there was no room.
    unserved: usize,
}

impl<P: SoftProgram> KernelEngine<P> {
    /// Starts a switch, or takes over a kept state; then that state's epoch and secret are used.
    ///
    /// # Errors
    /// If the machine, the interfaces or the kept state do not allow it. Nothing new is attached then.
    pub fn start(config: &P::Config, place: &Place, epoch: u32, secret: u128) -> Result<Self, KernelError> {
        let interfaces = find_all(&place.interfaces)?;
        let port = place.listen.port();
        let mut pins = if place.keep { Some(Pins::take(port)?) } else { left_on(port)? };
        let kept = pins.as_ref().filter(|pins| pins.hold_a_queue());
        let (mut kernel, found) = match kept {
            Some(pins) if place.keep && !place.fresh => (Kernel::take_over(config, pins)?, Found::TakenOver),
            Some(_) => (Kernel::new(config, epoch, secret, 0)?, Found::ThrownAway),
            None => (Kernel::new(config, epoch, secret, 0)?, Found::Nothing),
        };
        interfaces.iter().try_for_each(|interface| check_free(interface, pins.as_ref()))?;
        if found != Found::TakenOver
            && let Some(pins) = &mut pins
        {
            pins.clear()?;
        }
        let served = served(place)?;
        let handover = Handover::new(&kernel.programs().handover)?;
        let before = kernel.served();
        let unserved = kernel.serve(port, &served);
        // Until all interfaces are in this mode, XDP accepts no partial checksums: right in both modes.
        kernel.set_mode(place.mode, &[]);
        let attach = |interface| Attached::new(interface, place.mode, kernel.programs(), pins.as_ref());
        let attached = interfaces.iter().map(attach).collect::<Result<Vec<_>, _>>();
        let attached = attached.inspect_err(|_| restore_served(&mut kernel, before, place.mode))?;
        let unsummed = interfaces.iter().filter(|interface| interface.unsummed).map(|interface| interface.index);
        kernel.set_mode(place.mode, &unsummed.collect::<Vec<_>>());
        kernel.set_interfaces(&interfaces.iter().map(|interface| interface.index).collect::<Vec<_>>());
        match &mut pins {
            Some(pins) if place.keep => pins.keep(kernel.arena(), &kernel.programs().handover, &attached)?,
            _ => pins = None,
        }
        Ok(Self { attached, handover, kernel, _pins: pins, place: place.clone(), found, served, unserved })
    }

    /// The program, read-only.
    #[must_use]
    pub fn kernel(&self) -> &Kernel<P> {
        &self.kernel
    }

    /// The program, for calls.
    pub fn kernel_mut(&mut self) -> &mut Kernel<P> {
        &mut self.kernel
    }

    /// The ring of datagrams for this process to send, to wait on.
    #[must_use]
    pub fn handover(&self) -> &Handover {
        &self.handover
    }

    /// The same ring, to drain.
    pub fn handover_mut(&mut self) -> &mut Handover {
        &mut self.handover
    }

    /// What the start found.
    #[must_use]
    pub fn found(&self) -> Found {
        self.found
    }

    /// The names of the served interfaces.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        self.attached.iter().map(|attached| attached.interface.name.clone()).collect()
    }

    /// Serves the current addresses of this machine. Returns how many exceed the number that can be served.
    ///
    /// # Errors
    /// If they cannot be listed; the previous ones remain.
    pub fn refresh_addresses(&mut self) -> Result<usize, KernelError> {
        let addresses = served(&self.place)?;
        if addresses != self.served {
            self.unserved = self.kernel.serve(self.place.listen.port(), &addresses);
            self.served = addresses;
        }
        Ok(self.unserved)
    }

    /// An interface that disappeared, or from which one of our programs was detached.
    #[must_use]
    pub fn lost_interface(&self) -> Option<&str> {
        self.attached.iter().find(|attached| !attached.is_in_place()).map(|attached| attached.interface.name.as_str())
    }
}

/// Detaches what a former process kept on this port and frees its state; `false` if there was nothing.
///
/// # Errors
/// If a process serves it, or privileges are missing.
pub fn detach(port: u16) -> Result<bool, KernelError> {
    match Pins::existing(port)? {
        Some(mut pins) => pins.clear().map(|()| true),
        None => Ok(false),
    }
}

fn served(place: &Place) -> Result<Vec<IpAddr>, KernelError> {
    interface::addresses(place.listen.ip()).map_err(KernelError::io("list this machine's addresses"))
}

/// The most addresses that a switch serves in the kernel.
pub const SERVED_MAX: usize = ADDRESSES_MAX;

/// Restores what was served `before` a failed takeover. Interfaces may be in different modes by now. The setting for generic mode is right
/// in both, and so is accepting no partial checksums.
fn restore_served<P: SoftProgram>(kernel: &mut Kernel<P>, before: (u16, Vec<IpAddr>, XdpMode), now: XdpMode) {
    let (port, served, mode) = before;
    kernel.serve(port, &served);
    kernel.set_mode(if mode == XdpMode::Generic { mode } else { now }, &[]);
}

/// What a former process kept on this port. A switch that keeps nothing ignores pins of another network namespace, and unreadable pins. If
/// their programs are on the same interface, the check of that interface finds them.
fn left_on(port: u16) -> Result<Option<Pins>, KernelError> {
    let pins = match Pins::existing(port) {
        Err(KernelError::InUse(_) | KernelError::Privileges) => None,
        found => found?,
    };
    Ok(pins.filter(|pins| !serves_elsewhere(pins)))
}

/// Whether a kept state is served in another network namespace. One whose interfaces are gone is served nowhere.
fn serves_elsewhere(pins: &Pins) -> bool {
    let elsewhere = || Some(Kept::of(&Arena::open(pins.arena().ok()?).ok()?).is_elsewhere());
    pins.hold_a_queue() && pins.are_attached().unwrap_or(true) && elsewhere().unwrap_or(false)
}

fn find_all(names: &[String]) -> Result<Vec<Interface>, KernelError> {
    let mut found: Vec<Interface> = Vec::new();
    for name in names {
        let interface = Interface::find(name)?;
        if !found.contains(&interface) {
            found.push(interface);
        }
    }
    if found.is_empty() { Err(KernelError::NoInterfaces) } else { Ok(found) }
}
