//! A program attached to an interface by a BPF link. The kernel detaches it with the link's last holder: a process, or a pin.

use super::interface::Interface;
use crate::XdpMode;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Debug)]
pub(super) struct Link(OwnedFd);

impl Link {
    /// Attaches an XDP program in exactly this mode.
    pub(super) fn xdp(program: BorrowedFd<'_>, interface: &Interface, mode: XdpMode) -> io::Result<Self> {
        let flags = match mode {
            XdpMode::Native => libbpf_sys::XDP_FLAGS_DRV_MODE,
            XdpMode::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
        };
        Self::create(program, interface, libbpf_sys::BPF_XDP, flags)
    }

    /// Attaches a TC program at ingress, before all others.
    pub(super) fn tc(program: BorrowedFd<'_>, interface: &Interface) -> io::Result<Self> {
        Self::create(program, interface, libbpf_sys::BPF_TCX_INGRESS, libbpf_sys::BPF_F_BEFORE)
    }

    fn create(
        program: BorrowedFd<'_>,
        interface: &Interface,
        to: libbpf_sys::bpf_attach_type,
        flags: u32,
    ) -> io::Result<Self> {
        let options = libbpf_sys::bpf_link_create_opts {
            sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
            flags,
            ..Default::default()
        };
        let index = i32::try_from(interface.index).map_err(io::Error::other)?;
        // SAFETY: the options outlive the call.
        owned(unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), index, to, &raw const options) }).map(Self)
    }

    pub(super) fn open(pin: &Path) -> io::Result<Self> {
        let pin = c_path(pin)?;
        // SAFETY: the path outlives the call.
        owned(unsafe { libbpf_sys::bpf_obj_get(pin.as_ptr()) }).map(Self)
    }

    /// Pins the link, so that it outlives this process.
    pub(super) fn pin(&self, pin: &Path) -> io::Result<()> {
        pin_object(self.0.as_fd(), pin)
    }

    /// Replaces the program atomically.
    pub(super) fn update(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: no options.
        done(unsafe { libbpf_sys::bpf_link_update(self.0.as_raw_fd(), program.as_raw_fd(), std::ptr::null()) })
    }

    /// Detaches it now, even if others hold the link. Ignores a link that is detached already.
    pub(super) fn detach(&self) {
        // SAFETY: only takes the descriptor.
        let _ = unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }

    /// The interface; `None` if it is gone, or the program was detached.
    pub(super) fn interface(&self) -> Option<u32> {
        let index = match LinkInfo::from_fd(self.0.as_fd()).ok()?.info {
            LinkTypeInfo::Xdp(xdp) => xdp.ifindex,
            LinkTypeInfo::Tcx(tcx) => tcx.ifindex,
            _ => 0,
        };
        (index != 0).then_some(index)
    }

    pub(super) fn program(&self) -> Option<u32> {
        LinkInfo::from_fd(self.0.as_fd()).ok().map(|info| info.prog_id)
    }
}

pub(super) fn pin_object(object: BorrowedFd<'_>, pin: &Path) -> io::Result<()> {
    let pin = c_path(pin)?;
    // SAFETY: the path outlives the call.
    done(unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), pin.as_ptr()) })
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// libbpf returns negative error numbers.
fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    done(fd)?;
    // SAFETY: the descriptor is new, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
