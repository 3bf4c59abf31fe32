//! Reads the next hop cache: `dataplane/xdp/next_hops.h`.

use super::layout::{NEXT_HOPS, NEXT_HOPS_AT, NextHop};
use super::program::Kernel;
use crate::program::SoftProgram;
use midflight_wire::Address;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// `HOP_PLACES`
const PLACES: u64 = 4;

impl<P: SoftProgram> Kernel<P> {
    /// Our address that a peer sends to, if the kernel's programs receive its datagrams. The peer expects all answers from there, including
    /// the process's.
    #[must_use]
    pub fn own_address(&self, peer: SocketAddr) -> Option<IpAddr> {
        let peer = Address::from(peer);
        // SAFETY: it was written before any program ran.
        let first = hash(&peer, unsafe { (*self.arena().control()).next_hop_salt });
        let place = |k| NEXT_HOPS_AT + (first + k) % NEXT_HOPS * size_of::<NextHop>() as u64;
        // SAFETY: next hops are integers on pages that exist. A read during a write may give a mix; then an answer is lost.
        let hops = (0..PLACES).map(|k| unsafe { self.arena().offset(place(k)).cast::<NextHop>().read_volatile() });
        let hop =
            hops.filter(|hop| hop.interface != 0).find(|hop| hop.peer.ip == peer.ip && hop.peer.port == peer.port)?;
        Some(IpAddr::from(Ipv6Addr::from(hop.own)).to_canonical())
    }
}

/// `hop_hash`: the first of the entries that may hold a peer's next hop.
fn hash(peer: &Address, salt: u64) -> u64 {
    let half = |at: usize| peer.ip[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let odd = salt | 1;
    let port = u64::from(peer.port.get().swap_bytes()).wrapping_mul(odd.wrapping_add(2));
    let high = (half(0) ^ salt).wrapping_mul(odd);
    let high = (high ^ high >> 32).wrapping_mul(odd);
    high.wrapping_add(half(8)).wrapping_add(port).wrapping_mul(odd) >> (u64::BITS - NEXT_HOPS.ilog2())
}
