//! The kernel engine as a whole: a queue in the kernel, its shells on interfaces, and what outlives the process.

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
    /// Address and port that clients and executors send to; the address may be unspecified.
    pub listen: SocketAddr,
    /// Names of interfaces.
    pub interfaces: Vec<String>,
    /// How XDP is attached.
    pub mode: XdpMode,
    /// Queue and programs outlive the process, and the next one takes them over.
    pub keep: bool,
    /// Throws away first what a former process has kept.
    pub fresh: bool,
}

/// What a former process had kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Its state, which goes on.
    TakenOver,
    /// Its state, which was thrown away.
    ThrownAway,
}

/// A program in the kernel whose shells are attached. Dropping it detaches them and lets its state go, unless it is kept.
#[derive(Debug)]
pub struct KernelEngine<P> {
    // Fields are dropped in this order: the shells before the program that they call.
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
    /// Starts it, or takes over the state that a former process kept; then that state's epoch and secret are used, not these.
    ///
    /// # Errors
    /// If the machine, the interfaces or the kept state do not allow it. Then nothing is attached that was not before.
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

    /// The program, for reading.
    #[must_use]
    pub fn kernel(&self) -> &Kernel<P> {
        &self.kernel
    }

    /// The program, for calls.
    pub fn kernel_mut(&mut self) -> &mut Kernel<P> {
        &mut self.kernel
    }

    /// The ring of datagrams that are left to this process, for waiting.
    #[must_use]
    pub fn handover(&self) -> &Handover {
        &self.handover
    }

    /// The same, for taking them.
    pub fn handover_mut(&mut self) -> &mut Handover {
        &mut self.handover
    }

    /// What the start found.
    #[must_use]
    pub fn found(&self) -> Found {
        self.found
    }

    /// The names of the interfaces that are served.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        self.attached.iter().map(|attached| attached.interface.name.clone()).collect()
    }

    /// Serves the addresses that this machine has now. Returns how many it has beyond those that can be served.
    ///
    /// # Errors
    /// Where they cannot be listed; then those of before go on.
    pub fn refresh_addresses(&mut self) -> Result<usize, KernelError> {
        let addresses = served(&self.place)?;
        if addresses != self.served {
            self.unserved = self.kernel.serve(self.place.listen.port(), &addresses);
            self.served = addresses;
        }
        Ok(self.unserved)
    }

    /// An interface that went away, or from which somebody detached a program of ours.
    #[must_use]
    pub fn lost_interface(&self) -> Option<&str> {
        self.attached.iter().find(|attached| !attached.is_in_place()).map(|attached| attached.interface.name.as_str())
    }
}

/// Detaches what a former process kept on this port and lets its queue go; `false` if there was nothing.
///
/// # Errors
/// Where a process serves it, or privileges are missing.
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

/// After a takeover that failed, the shells serve what they served `before`. By then one interface may be in the old mode
/// and another in the new one. The setting for generic mode is right in both, and so is accepting no partial
/// checksums.
fn restore_served<P: SoftProgram>(kernel: &mut Kernel<P>, before: (u16, Vec<IpAddr>, XdpMode), now: XdpMode) {
    let (port, served, mode) = before;
    kernel.serve(port, &served);
    kernel.set_mode(if mode == XdpMode::Generic { mode } else { now }, &[]);
}

/// What a former process kept on this port. A switch that keeps nothing ignores pins of another network namespace, and
/// pins that this user may not read. If their programs are on the same interface, they are found there
/// later.
fn left_on(port: u16) -> Result<Option<Pins>, KernelError> {
    let pins = match Pins::existing(port) {
        Err(KernelError::InUse(_) | KernelError::Privileges) => None,
        found => found?,
    };
    Ok(pins.filter(|pins| !serves_elsewhere(pins)))
}

/// Whether a kept queue is served in another network namespace. One whose interfaces are gone is served nowhere.
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
