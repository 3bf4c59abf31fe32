//! IPv6 addresses that stand for those of IPv4, so that a story of IPv4 is told by frames of IPv6. The mapped ones cannot:
//! nobody may send from them. Cookies are bound to addresses, so whose address is another has other cookies, too.

use crate::cookies::{asks_for_cookie, cookie, identity, put_cookie, tells_cookie};
use crate::frame::bytes;
use midflight_dataplane::{Cookies, TasksConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How a stand-in begins and ends; between them is the address of IPv4. So each has a /64 of its own, by which it shares (T14).
const BEFORE: [u8; 4] = [0x20, 0x01, 0x0d, 0xb8];
const BEHIND: [u8; 8] = [0, 0x44, 0, 0x44, 0, 0x44, 0, 0x44];

/// What one switch's story is translated by.
pub(crate) struct StandIns {
    ipv4: bool,
    cookies: Cookies,
    window_ns: u64,
}

impl StandIns {
    /// `ipv4`: there are none, all addresses stand for themselves.
    pub(crate) fn new(config: &TasksConfig, secret: u128, ipv4: bool) -> Self {
        Self { ipv4, cookies: Cookies::new(secret, config.cookie_ns), window_ns: config.cookie_ns }
    }

    /// Who sends the frames of somebody in the story.
    pub(crate) fn ip(&self, of_story: IpAddr) -> IpAddr {
        match of_story {
            IpAddr::V4(four) if !self.ipv4 => stand_in(four).into(),
            itself => itself,
        }
    }

    /// The same with the port.
    pub(crate) fn address(&self, of_story: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.ip(of_story.ip()), of_story.port())
    }

    /// What is in the frame for a datagram of the story.
    pub(crate) fn datagram(&self, now_ns: u64, from: SocketAddr, of_story: &[u8]) -> Vec<u8> {
        let mut datagram = of_story.to_vec();
        if asks_for_cookie(&datagram) {
            self.change_cookie(now_ns, &mut datagram, from, self.address(from));
        }
        datagram
    }

    /// What a datagram to this address is in the story, and to whom.
    pub(crate) fn original(&self, now_ns: u64, to: SocketAddr, mut datagram: Vec<u8>) -> (SocketAddr, Vec<u8>) {
        let of_story = SocketAddr::new(original(to.ip()), to.port());
        if tells_cookie(&datagram) {
            self.change_cookie(now_ns, &mut datagram, to, of_story);
        }
        (of_story, with_originals(datagram))
    }

    /// A cookie that is good at one address becomes the one of the same window that is good at the other; no other cookie
    /// changes.
    fn change_cookie(&self, now_ns: u64, datagram: &mut [u8], at: SocketAddr, other: SocketAddr) {
        let (identity, cookie) = (identity(datagram), cookie(datagram));
        let mut windows = [Some(now_ns), now_ns.checked_sub(self.window_ns)].into_iter().flatten();
        if let Some(given_ns) = windows.find(|&ns| self.cookies.give(ns, identity, at) == cookie) {
            put_cookie(datagram, self.cookies.give(given_ns, identity, other));
        }
    }
}

fn stand_in(four: Ipv4Addr) -> Ipv6Addr {
    bytes::<16>(&[&BEFORE[..], &four.octets(), &BEHIND].concat(), 0).into()
}

/// The address of IPv4 that these 16 bytes of one of IPv6 stand for.
fn four_of(six: &[u8]) -> Option<Ipv4Addr> {
    (six.starts_with(&BEFORE) && six[8..] == BEHIND).then(|| bytes::<4>(six, 4).into())
}

fn original(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(six) => four_of(&six.octets()).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// A datagram with the addresses in it that others stand for.
fn with_originals(mut datagram: Vec<u8>) -> Vec<u8> {
    for at in 0..datagram.len().saturating_sub(15) {
        if let Some(four) = four_of(&datagram[at..at + 16]) {
            datagram[at..at + 16].copy_from_slice(&four.to_ipv6_mapped().octets());
        }
    }
    datagram
}
