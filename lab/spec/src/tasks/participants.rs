//! The interpreter's clients and executors: their addresses and what they remember.

use midflight_wire::tasks::SlotName;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub(super) const CLIENTS: usize = 12;
pub(super) const EXECUTORS: usize = 4;
const REMEMBERED: usize = 24;

#[derive(Clone, Copy, Default)]
pub(super) struct Client {
    pub(super) sequence: u32,
    pub(super) probe: u32,
    pub(super) has_moved: bool,
}

#[derive(Default)]
pub(super) struct Executor {
    pub(super) registration: u32,
    pub(super) counter: u64,
    pub(super) has_moved: bool,
    /// Registered slots, oldest first, each with the sequence of its last wait.
    pub(super) slots: Vec<(SlotName, u32)>,
}

impl Executor {
    pub(super) fn learn(&mut self, names: &[SlotName]) {
        for name in names {
            if self.slots.iter().all(|(known, _)| known != name) {
                self.slots.push((*name, 0));
            }
        }
        let excess = self.slots.len().saturating_sub(REMEMBERED);
        self.slots.drain(..excess);
    }
}

pub(super) fn identity(number: usize) -> u64 {
    number as u64
}

/// All clients but one share a source: they are hosts of one /64, or ports of one IPv4 address. A client that has moved
/// is its own source.
pub(super) fn client_address(number: usize, has_moved: bool, is_ipv6: bool) -> SocketAddr {
    let port = 7000 + number as u16;
    match number {
        _ if has_moved => SocketAddr::new(source(100 + number as u16, 1, is_ipv6), port),
        0..11 => SocketAddr::new(source(0, 1 + number as u16, is_ipv6), port),
        _ => SocketAddr::new(source(1, 1, is_ipv6), port),
    }
}

/// All executors but one share a source, which is the clients' shared one.
pub(super) fn executor_address(number: usize, has_moved: bool, is_ipv6: bool) -> SocketAddr {
    let port = 9000 + number as u16;
    match number {
        _ if has_moved => SocketAddr::new(source(200 + number as u16, 1, is_ipv6), port),
        0..3 => SocketAddr::new(source(0, 100, is_ipv6), port),
        _ => SocketAddr::new(source(50, 1, is_ipv6), port),
    }
}

/// A host's address in a source. IPv6 hosts differ in the first bits after the /64 prefix and sources in its last bits,
/// so that a wrong prefix length shows. All hosts of an IPv4 source have one address.
fn source(number: u16, host: u16, is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0, number, host.reverse_bits(), 0, 0, 1).into()
    } else {
        [10, 0, 0, number as u8].into()
    }
}
