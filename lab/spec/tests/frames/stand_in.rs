//! IPv6 addresses that stand in for IPv4 ones, so that IPv6 frames can run an IPv4 transcript. Mapped addresses cannot:
//! they are invalid as a source. Cookies are bound to addresses, so they are translated too.

use crate::cookies::{asks_for_cookie, cookie, identity, put_cookie, tells_cookie};
use crate::frame::bytes;
use midflight_dataplane::{Cookies, TasksConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Prefix and suffix of a stand-in around the IPv4 address. Each has its own /64, by which shares are counted (T14).
const BEFORE: [u8; 4] = [0x20, 0x01, 0x0d, 0xb8];
const BEHIND: [u8; 8] = [0, 0x44, 0, 0x44, 0, 0x44, 0, 0x44];

/// Translates one switch's transcript.
pub(crate) struct StandIns {
    ipv4: bool,
    cookies: Cookies,
    window_ns: u64,
}

impl StandIns {
    /// `ipv4`: no translation.
    pub(crate) fn new(config: &TasksConfig, secret: u128, ipv4: bool) -> Self {
        Self { ipv4, cookies: Cookies::new(secret, config.cookie_ns), window_ns: config.cookie_ns }
    }

    /// The sender address in frames.
    pub(crate) fn ip(&self, of_story: IpAddr) -> IpAddr {
        match of_story {
            IpAddr::V4(four) if !self.ipv4 => stand_in(four).into(),
            itself => itself,
        }
    }

    pub(crate) fn address(&self, of_story: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.ip(of_story.ip()), of_story.port())
    }

    /// A transcript's datagram as it is in the frame.
    pub(crate) fn datagram(&self, now_ns: u64, from: SocketAddr, of_story: &[u8]) -> Vec<u8> {
        let mut datagram = of_story.to_vec();
        if asks_for_cookie(&datagram) {
            self.change_cookie(now_ns, &mut datagram, from, self.address(from));
        }
        datagram
    }

    /// The transcript's datagram and receiver.
    pub(crate) fn original(&self, now_ns: u64, to: SocketAddr, mut datagram: Vec<u8>) -> (SocketAddr, Vec<u8>) {
        let of_story = SocketAddr::new(original(to.ip()), to.port());
        if tells_cookie(&datagram) {
            self.change_cookie(now_ns, &mut datagram, to, of_story);
        }
        (of_story, with_originals(datagram))
    }

    /// Translates a cookie that is valid at one address to the other address's of the same window; keeps other cookies.
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

fn four_of(six: &[u8]) -> Option<Ipv4Addr> {
    (six.starts_with(&BEFORE) && six[8..] == BEHIND).then(|| bytes::<4>(six, 4).into())
}

fn original(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(six) => four_of(&six.octets()).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// Replaces stand-ins within the datagram by the original addresses.
fn with_originals(mut datagram: Vec<u8>) -> Vec<u8> {
    for at in 0..datagram.len().saturating_sub(15) {
        if let Some(four) = four_of(&datagram[at..at + 16]) {
            datagram[at..at + 16].copy_from_slice(&four.to_ipv6_mapped().octets());
        }
    }
    datagram
}
