//! The ports of a switch, in a network namespace of its own: a veth pair each, whose far end is a raw socket here.

use crate::P4Error;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

/// The largest frame.
const FRAME_MAX: usize = 2048;

/// Moves this thread, and the processes that it starts from now on, into a new network namespace, which ends with them.
pub(crate) fn enter_a_new_namespace() -> Result<(), P4Error> {
    // SAFETY: changes the calling thread's network namespace, and nothing else.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(P4Error::not_here("make a network namespace")(io::Error::last_os_error()));
    }
    // The kernel's own packets would be taken for the switch's.
    let quiet = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    match quiet {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {} // this kernel has no IPv6
        quiet => quiet.map_err(P4Error::io("turn IPv6 off in a network namespace"))?,
    }
    ip(&["link", "set", "lo", "up"])
}

fn ip(arguments: &[&str]) -> Result<(), P4Error> {
    let output = Command::new("ip").args(arguments).output().map_err(P4Error::not_here("run ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(P4Error::io(format!("run ip {}", arguments.join(" ")))(io::Error::other(said)))
}

/// The far end of a port.
#[derive(Debug)]
pub(crate) struct Port {
    /// The switch's number of it.
    pub(crate) number: u16,
    socket: OwnedFd,
}

impl Port {
    /// Makes the pair. The switch's end has the name that [`Port::interface`] returns.
    pub(crate) fn make(number: u16) -> Result<Self, P4Error> {
        let (near, far) = (Self::interface(number), format!("far{number}"));
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far])?;
        for end in [&near, &far] {
            ip(&["link", "set", end, "arp", "off", "up"])?;
        }
        let open = Self::open(&far).map_err(P4Error::not_here("open a raw socket"))?;
        Ok(Self { number, socket: open })
    }

    /// The switch's end.
    pub(crate) fn interface(number: u16) -> String {
        format!("port{number}")
    }

    fn open(interface: &str) -> io::Result<OwnedFd> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let check = |code: libc::c_int| if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) };
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: opens a socket, which is owned from here on.
        let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, all.into()))?) };
        let index = rustix::net::netdevice::name_to_index(&socket, interface)?;
        // SAFETY: all zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = all;
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

    /// Puts a frame into the switch by this port.
    pub(crate) fn send(&self, frame: &[u8]) -> Result<(), P4Error> {
        let sent = rustix::net::send(&self.socket, frame, rustix::net::SendFlags::empty());
        sent.map(drop).map_err(|error| P4Error::io(format!("send to port {}", self.number))(error.into()))
    }

    /// The next frame that the switch has sent out by this port, if one comes within this time.
    pub(crate) fn receive(&self, patience: Duration) -> Result<Option<Vec<u8>>, P4Error> {
        let failed = || P4Error::io(format!("receive from port {}", self.number));
        let (mut frame, until) = ([0; FRAME_MAX], Instant::now() + patience);
        loop {
            match rustix::net::recv(&self.socket, &mut frame, rustix::net::RecvFlags::empty()) {
                Ok((length, _)) => return Ok(Some(frame[..length].to_vec())),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed()(error.into())),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let millis = left.as_millis().clamp(1, 1000) as libc::c_int;
            // SAFETY: one structure, which lives as long as the call.
            unsafe { libc::poll(&raw mut poll, 1, millis) };
        }
    }
}
