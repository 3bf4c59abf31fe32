//! Attaches the XDP and TC programs to interfaces, and finds other programs there.

use super::error::KernelError;
use super::interface::Interface;
use super::link::Link;
use super::object::Programs;
use super::pins::{self, Pins};
use crate::XdpMode;
use libbpf_rs::ProgramHandle;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// An interface with both programs; dropping it detaches them, unless they are pinned.
#[derive(Debug)]
pub(super) struct Attached {
    pub interface: Interface,
    pub xdp: Link,
    pub tc: Link,
}

impl Attached {
    /// Attaches the programs, or replaces kept ones. TC comes first, for the packets that XDP leaves to it.
    pub(super) fn new(
        interface: &Interface,
        mode: XdpMode,
        programs: &Programs,
        kept: Option<&Pins>,
    ) -> Result<Self, KernelError> {
        let tc = match kept.and_then(|pins| pins.tc(interface)) {
            Some(link) => link.update(programs.tc.as_fd()).map(|()| link),
            None => Link::tc(programs.tc.as_fd(), interface),
        };
        let tc = tc.map_err(|source| tc_failed(interface, source))?;
        let before = Occupants::of(interface)?.mode;
        let xdp = match kept.and_then(|pins| pins.xdp(interface).map(|link| (pins, link))) {
            Some((_, link)) if before == Some(mode) => link.update(programs.xdp.as_fd()).map(|()| link),
            Some((pins, link)) => {
                drop(link);
                change_mode(programs.xdp.as_fd(), interface, mode, before, pins)
            }
            None => Link::xdp(programs.xdp.as_fd(), interface, mode),
        };
        let xdp = xdp.map_err(|source| xdp_failed(interface, mode, source))?;
        Ok(Self { interface: interface.clone(), xdp, tc })
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.xdp.interface().is_some() && self.tc.interface().is_some()
    }
}

/// A link cannot change its mode, so a new link replaces the kept one and its pin. If that fails, a link in the old mode continues to
/// serve.
fn change_mode(
    program: BorrowedFd<'_>,
    interface: &Interface,
    mode: XdpMode,
    before: Option<XdpMode>,
    pins: &Pins,
) -> io::Result<Link> {
    let attach = |mode| {
        let link = Link::xdp(program, interface, mode)?;
        pins.pin_xdp(interface, &link).map(|()| link)
    };
    pins.forget_xdp(interface).map_err(io::Error::other)?;
    attach(mode).inspect_err(|_| {
        // The old mode worked a moment ago.
        let _ = before.map(attach);
    })
}

/// Refuses an interface with XDP or TC programs of others; those that `ours` keeps may be replaced.
pub(super) fn check_free(interface: &Interface, ours: Option<&Pins>) -> Result<(), KernelError> {
    let occupants = Occupants::of(interface)?;
    let mut own = Vec::new();
    own.extend(ours.and_then(|pins| pins.xdp(interface)?.program()));
    own.extend(ours.and_then(|pins| pins.tc(interface)?.program()));
    let foreign = |programs: Vec<u32>| programs.into_iter().find(|program| !own.contains(program));
    if let Some(program) = foreign(occupants.xdp) {
        return Err(occupied(interface, Some(program), "mf_xdp"));
    }
    // Other programs may run at TC too; but two of ours would compete for the same packets.
    let shells = occupants.tc.into_iter().filter(|&program| name_of(program).is_some_and(|name| name == "mf_tc"));
    match foreign(shells.collect()) {
        Some(program) => Err(occupied(interface, Some(program), "mf_tc")),
        None => Ok(()),
    }
}

/// The error that names the owner of a program. `shell`: the name of our program there.
fn occupied(interface: &Interface, program: Option<u32>, shell: &str) -> KernelError {
    let name = interface.name.clone();
    let Some(program) = program else {
        return KernelError::Occupied { interface: name, program: "attached just now".into() };
    };
    match (pins::port_of_program(program), name_of(program)) {
        (Some(port), _) => KernelError::KeptByAnother { interface: name, port },
        (None, Some(found)) if found == shell => KernelError::Served(name),
        (None, found) => {
            let found = found.unwrap_or_else(|| "without a name".into());
            KernelError::Occupied { interface: name, program: format!("{found} (id {program})") }
        }
    }
}

/// The name of a loaded program, if it has one; only root may ask.
fn name_of(program: u32) -> Option<String> {
    let handle = ProgramHandle::from_prog_id(program).ok()?;
    handle.name().to_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn tc_failed(interface: &Interface, source: io::Error) -> KernelError {
    match source.raw_os_error() {
        Some(libc::EPERM) => KernelError::Privileges,
        Some(libc::ENODEV) => KernelError::UnknownInterface(interface.name.clone()),
        Some(libc::EINVAL | libc::EOPNOTSUPP) => KernelError::too_old("no TC programs by tcx (CONFIG_NET_XGRESS)"),
        _ => KernelError::io(format!("attach the TC program to {}", interface.name))(source),
    }
}

fn xdp_failed(interface: &Interface, mode: XdpMode, source: io::Error) -> KernelError {
    /// Some drivers return it, although it is not a user-space error number.
    const ENOTSUPP: i32 = 524;
    let name = interface.name.clone();
    match source.raw_os_error() {
        Some(libc::EPERM) => KernelError::Privileges,
        Some(libc::ENODEV) => KernelError::UnknownInterface(name),
        Some(libc::EBUSY | libc::EEXIST) => match Occupants::of(interface) {
            Ok(occupants) => occupied(interface, occupants.xdp.first().copied(), "mf_xdp"),
            Err(error) => error,
        },
        Some(libc::EOPNOTSUPP | ENOTSUPP) if mode == XdpMode::Native => {
            KernelError::NoNative { interface: name, why: "its driver has none".into() }
        }
        _ if mode == XdpMode::Native => {
            let why = format!("its driver says: {source} (a smaller MTU or fewer offloads may help)");
            KernelError::NoNative { interface: name, why }
        }
        _ => KernelError::io(format!("attach the XDP program to {name}"))(source),
    }
}

struct Occupants {
    xdp: Vec<u32>,
    /// Of the XDP program, if there is just one.
    mode: Option<XdpMode>,
    tc: Vec<u32>,
}

impl Occupants {
    fn of(interface: &Interface) -> Result<Self, KernelError> {
        let (xdp, mode) = xdp_on(interface).map_err(KernelError::io(format!("ask {} for XDP", interface.name)))?;
        // A kernel without tcx has no such programs; attaching ours then gives the error that explains it.
        Ok(Self { xdp, mode, tc: tc_on(interface).unwrap_or_default() })
    }
}

fn xdp_on(interface: &Interface) -> io::Result<(Vec<u32>, Option<XdpMode>)> {
    let mut found = libbpf_sys::bpf_xdp_query_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let index = i32::try_from(interface.index).map_err(io::Error::other)?;
    // SAFETY: libbpf writes `sz` bytes, and the structure outlives the call.
    let result = unsafe { libbpf_sys::bpf_xdp_query(index, 0, &raw mut found) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    let mut programs = vec![found.drv_prog_id, found.skb_prog_id, found.hw_prog_id];
    programs.retain(|&program| program != 0);
    let mode = match (found.drv_prog_id, found.skb_prog_id) {
        (1.., 0) => Some(XdpMode::Native),
        (0, 1..) => Some(XdpMode::Generic),
        _ => None,
    };
    Ok((programs, mode))
}

fn tc_on(interface: &Interface) -> io::Result<Vec<u32>> {
    let mut programs = [0u32; 64];
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.count = programs.len() as u32;
    let index = i32::try_from(interface.index).map_err(io::Error::other)?;
    // SAFETY: the kernel writes as many numbers as there is room for, and both outlive the call.
    let result = unsafe { libbpf_sys::bpf_prog_query_opts(index, libbpf_sys::BPF_TCX_INGRESS, &raw mut query) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: both members of the union are the same number.
    let count = unsafe { query.__bindgen_anon_1.count } as usize;
    Ok(programs[..count.min(programs.len())].to_vec())
}
