//! Captures cookies that arrive on the attacker's link.

use anyhow::{Context, Result};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use midflight_wire::PACKET_MAX;
use midflight_wire::tasks::{Packet, parse};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with, sockopt};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// More would expire before use.
const KEPT_MAX: usize = 1 << 16;
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) identity: u64,
    pub(super) cookie: u64,
    /// The address it is bound to; not the attacker's own if the switch was deceived.
    pub(super) at: SocketAddr,
}

/// Unused cookies, shared by clones.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    given: Mutex<VecDeque<Given>>,
    strayed: AtomicU64,
}

impl Heard {
    pub(super) fn take(&self) -> Option<Given> {
        self.lock().pop_front()
    }

    /// Cookies for others that the switch sent to the attacker.
    pub(super) fn strayed(&self) -> u64 {
        self.0.strayed.load(Relaxed)
    }

    /// In the network namespace of this thread.
    ///
    /// # Errors
    /// If the kernel refuses the socket.
    pub(super) fn listen(&self, own: SocketAddr, switch: SocketAddr, ended: &AtomicBool) -> Result<()> {
        let socket = open(own.ip()).context("cannot listen on the attacker's link")?;
        let mut frame = [0; PACKET_MAX + 128];
        while !ended.load(Relaxed) {
            // A timeout.
            let Ok((_, length)) = recv(&socket, &mut frame[..], RecvFlags::empty()) else { continue };
            if let Some(given) = cookie_in(&frame[..length.min(frame.len())], switch) {
                self.note(given, own);
            }
        }
        Ok(())
    }

    fn note(&self, given: Given, own: SocketAddr) {
        self.0.strayed.fetch_add(u64::from(given.at.ip() != own.ip()), Relaxed);
        let mut all = self.lock();
        if all.len() < KEPT_MAX {
            all.push_back(given);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Given>> {
        self.0.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gets every packet of this address family on an interface of this namespace, whatever its destination.
fn open(of: IpAddr) -> Result<OwnedFd> {
    let protocol = if of.is_ipv4() { eth::IP } else { eth::IPV6 };
    let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(protocol))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(LOOK_EVERY))?;
    Ok(socket)
}

fn cookie_in(packet: &[u8], switch: SocketAddr) -> Option<Given> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let Some(TransportSlice::Udp(udp)) = &sliced.transport else { return None };
    let (from, to): (IpAddr, IpAddr) = match sliced.net.as_ref()? {
        NetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        _ => return None,
    };
    if SocketAddr::new(from, udp.source_port()) != switch {
        return None;
    }
    let at = SocketAddr::new(to, udp.destination_port());
    match parse(udp.payload()) {
        Ok(Packet::Cookie(given)) => Some(Given { identity: given.identity.get(), cookie: given.cookie.get(), at }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::datagram::Datagram;
    use midflight_wire::tasks::{Cookie, Operation};
    use midflight_wire::{Builder, Header};

    #[test]
    fn a_cookie_of_the_switch_is_taken_from_a_packet_of_either_family() {
        for (switch, at, other) in [
            ("10.0.0.1:7700", "10.0.0.2:6666", "10.0.0.3:7700"),
            ("[fd00::1]:7700", "[fd00::2]:6666", "[fd00::3]:7700"),
        ] {
            let [switch, at, other] = [switch, at, other].map(|text| text.parse().unwrap());
            let mut datagram = Datagram::new(switch, at);
            let header = Header::new(Operation::Cookie, 7, 1);
            let fixed = Cookie { header, identity: 2.into(), cookie: 3.into() };
            Builder::new(&mut datagram.payload, &fixed);
            let mut packet = Vec::new();
            datagram.write(&mut packet).unwrap();
            assert_eq!(cookie_in(&packet, switch), Some(Given { identity: 2, cookie: 3, at }));
            assert_eq!(cookie_in(&packet, other), None);
        }
    }
}
