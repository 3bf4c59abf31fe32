//! What the attacker hears on his own link: the cookies that the switch sends there.

use anyhow::{Context, Result};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use midflight_wire::{PACKET_MAX, Packet, parse};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with, sockopt};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// More are of no use: cookies run out.
const KEPT_MAX: usize = 1 << 16;
/// How often to look whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A cookie that came by the attacker's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) identity: u64,
    pub(super) cookie: u64,
    /// For whom: another than the attacker, if the switch let itself be deceived.
    pub(super) at: SocketAddrV4,
}

/// What was heard and not used yet; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    given: Mutex<VecDeque<Given>>,
    /// Cookies that were for others.
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

    /// Listens in the network namespace of this thread until it is to end.
    ///
    /// # Errors
    /// Where the kernel refuses the socket.
    pub(super) fn listen(&self, own: SocketAddrV4, switch: SocketAddrV4, ended: &AtomicBool) -> Result<()> {
        let socket = open().context("cannot listen on the attacker's link")?;
        let mut frame = [0; PACKET_MAX + 128];
        while !ended.load(Relaxed) {
            // An error means that nothing came for a while.
            let Ok((_, length)) = recv(&socket, &mut frame[..], RecvFlags::empty()) else { continue };
            if let Some(given) = cookie_in(&frame[..length.min(frame.len())], switch) {
                self.note(given, own);
            }
        }
        Ok(())
    }

    fn note(&self, given: Given, own: SocketAddrV4) {
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

/// Gets every IPv4 packet that passes an interface of this namespace, whoever it is for.
fn open() -> Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(eth::IP))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(LOOK_EVERY))?;
    Ok(socket)
}

/// The cookie in a packet of the switch.
fn cookie_in(packet: &[u8], switch: SocketAddrV4) -> Option<Given> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (&sliced.net, &sliced.transport) else {
        return None;
    };
    if SocketAddrV4::new(ip.header().source_addr(), udp.source_port()) != switch {
        return None;
    }
    let at = SocketAddrV4::new(ip.header().destination_addr(), udp.destination_port());
    match parse(udp.payload()) {
        Ok(Packet::Cookie(given)) => Some(Given { identity: given.identity.get(), cookie: given.cookie.get(), at }),
        _ => None,
    }
}
