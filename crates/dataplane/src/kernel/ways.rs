//! Looks at the ways to executors that the shells have learned: `dataplane/xdp/ways.h`.

use super::layout::{WAYS, WAYS_AT, Way};
use super::tasks::KernelTasks;
use midflight_wire::Address;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// `WAY_PLACES`
const PLACES: u64 = 4;

impl KernelTasks {
    /// The address of this machine to which an executor sends its RETRIEVEs, if they come by the shells. From there it expects
    /// answers, also those that the process sends.
    #[must_use]
    pub fn own_address(&self, executor: SocketAddr) -> Option<IpAddr> {
        let peer = Address::from(executor);
        // SAFETY: it was written before any program ran.
        let first = hash(&peer, unsafe { (*self.arena().control()).ways_salt });
        let place = |k| WAYS_AT + (first + k) % WAYS * size_of::<Way>() as u64;
        // SAFETY: ways are integers on pages that are there. One that is just being written is seen half; then an answer is
        // lost.
        let ways = (0..PLACES).map(|k| unsafe { self.arena().offset(place(k)).cast::<Way>().read_volatile() });
        let way =
            ways.filter(|way| way.interface != 0).find(|way| way.peer.ip == peer.ip && way.peer.port == peer.port)?;
        Some(IpAddr::from(Ipv6Addr::from(way.own)).to_canonical())
    }
}

/// `way_hash`: where the places of a peer begin.
fn hash(peer: &Address, salt: u64) -> u64 {
    let half = |at: usize| peer.ip[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let port = u64::from(peer.port.get().swap_bytes()).wrapping_mul(salt | 1);
    mix(mix(half(0) ^ salt).wrapping_add(half(8)).wrapping_add(port)) % WAYS
}

/// `mf_mix`
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
