//! Ports of a switch that are not interfaces of the machine: veth pairs, whose far end is a raw socket here, or another port.

use crate::P4Error;
use midflight_host::process::children::be_ours_alone;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::Command;
#[cfg(feature = "compare")]
use {
    rustix::event::{PollFd, PollFlags, Timespec, poll},
    std::time::{Duration, Instant},
};

const FRAME_MAX: usize = 2048;
/// `ETH_P_ALL`, as sockets take it.
const ALL_FRAMES: u16 = (libc::ETH_P_ALL as u16).to_be();
/// Room for a frame of 1,514 bytes with a header before it, or with the headers of a recirculated packet.
const MTU: u32 = 2000;

/// Runs `ip` in the network namespace of this thread.
pub(crate) fn ip(arguments: &[&str]) -> Result<(), P4Error> {
    let mut command = Command::new("ip");
    be_ours_alone(command.args(arguments));
    let output = command.output().map_err(P4Error::not_here("run ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(P4Error::io(format!("run ip {}", arguments.join(" ")))(io::Error::other(said)))
}

/// Makes a veth pair that carries only explicitly sent frames; removes an existing one of this name first.
pub(crate) fn make_pair(near: &str, far: &str) -> Result<(), P4Error> {
    let _ = remove_pair(near); // usually there is none
    let mtu = MTU.to_string();
    ip(&["link", "add", near, "mtu", &mtu, "type", "veth", "peer", "name", far, "mtu", &mtu])?;
    for end in [near, far] {
        // The kernel's own packets would be taken for the switch's.
        match std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // this kernel has no IPv6
            quiet => quiet.map_err(P4Error::io("turn IPv6 off at a port"))?,
        }
        ip(&["link", "set", end, "arp", "off", "up"])?;
    }
    Ok(())
}

pub(crate) fn remove_pair(near: &str) -> Result<(), P4Error> {
    ip(&["link", "delete", near])
}

#[derive(Debug)]
pub(crate) struct Port {
    /// Port number in the switch.
    pub(crate) number: u16,
    socket: OwnedFd,
}

impl Port {
    /// Opens the far end of the pair of this port.
    pub(crate) fn open(number: u16, far: &str) -> Result<Self, P4Error> {
        let socket = Self::socket(far).map_err(P4Error::not_here("open a raw socket"))?;
        Ok(Self { number, socket })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Not a port: receives all frames of all interfaces, in both directions.
    #[cfg(feature = "compare")]
    pub(crate) fn all(buffer: usize) -> Result<Self, P4Error> {
        let open = || {
            let socket = Self::unbound()?;
            // The kernel takes a larger buffer than users may have from CAP_NET_ADMIN.
            rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, buffer)?;
            Ok(socket)
        };
        Ok(Self { number: u16::MAX, socket: open().map_err(P4Error::not_here("open a raw socket"))? })
    }

    fn unbound() -> io::Result<OwnedFd> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: opens a socket.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, libc::c_int::from(ALL_FRAMES)) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is owned from here on.
        Ok(unsafe { OwnedFd::from_raw_fd(socket) })
    }

    fn socket(interface: &str) -> io::Result<OwnedFd> {
        let check = |code: libc::c_int| if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) };
        let socket = Self::unbound()?;
        let index = rustix::net::netdevice::name_to_index(&socket, interface)?;
        // SAFETY: all zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL_FRAMES;
        address.sll_ifindex = index.cast_signed();
        let (one, length): (libc::c_int, _) = (1, size_of::<libc::c_int>() as u32);
        let (to, size) = ((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32);
        // SAFETY: pointers to values that live as long as the calls, with their sizes.
        unsafe {
            check(libc::bind(socket.as_raw_fd(), to, size))?;
            let option = (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING);
            check(libc::setsockopt(socket.as_raw_fd(), option.0, option.1, (&raw const one).cast(), length))?;
        }
        Ok(socket)
    }

    pub(crate) fn send(&self, frame: &[u8]) -> Result<(), P4Error> {
        let sent = rustix::net::send(&self.socket, frame, rustix::net::SendFlags::empty());
        sent.map(drop).map_err(|error| P4Error::io(format!("send to port {}", self.number))(error.into()))
    }

    /// The next frame from the switch by this port, if any.
    pub(crate) fn next(&self) -> Result<Option<Vec<u8>>, P4Error> {
        let mut frame = [0; FRAME_MAX];
        loop {
            match rustix::net::recv(&self.socket, &mut frame, rustix::net::RecvFlags::empty()) {
                Ok((length, _)) => return Ok(Some(frame[..length].to_vec())),
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    return Err(P4Error::io(format!("receive from port {}", self.number))(error.into()));
                }
            }
        }
    }

    /// Waits until a frame has come, or this time has passed.
    #[cfg(feature = "compare")]
    pub(crate) fn wait(&self, time: Duration) {
        // A wait that a signal interrupts is a short wait.
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timespec(time)));
    }

    /// The next frame, if one comes within this time and before `end` is readable.
    #[cfg(feature = "compare")]
    pub(crate) fn receive(&self, patience: Duration, end: BorrowedFd<'_>) -> Result<Option<Vec<u8>>, P4Error> {
        let until = Instant::now() + patience;
        loop {
            if let Some(frame) = self.next()? {
                return Ok(Some(frame));
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut both = [PollFd::from_borrowed_fd(end, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
            // A wait that a signal interrupts is a short wait.
            let _ = poll(&mut both, Some(&timespec(left)));
            // A frame before the end counts.
            if left.is_zero() || !both[0].revents().is_empty() {
                return self.next();
            }
        }
    }
}

#[cfg(feature = "compare")]
fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}
