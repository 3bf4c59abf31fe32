//! Where the socket listens on all addresses of this machine: from which of them each executor expects its tasks.
//!
//! An executor accepts tasks only from the address that it sends to. For an ASSIGN to a parked slot the kernel would choose the
//! source address by its routes, which may be another one. The address is learned only from packets that nobody but the
//! executor can have sent; otherwise an attacker could make the switch send tasks from an address that the executor ignores (T13).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Peers that are remembered: twice the slots of a switch by default. When there are more, all are forgotten, and each is learned
/// again from its next packet.
const PEERS_MAX: usize = 131_072;

#[derive(Debug, Default)]
pub(crate) struct ReplyAddresses {
    by_peer: HashMap<SocketAddr, IpAddr>,
}

impl ReplyAddresses {
    /// `peer` sends to our address `own`.
    pub(crate) fn learn(&mut self, peer: SocketAddr, own: IpAddr) {
        if self.by_peer.len() >= PEERS_MAX {
            self.by_peer.clear();
        }
        self.by_peer.insert(peer, own);
    }

    /// Our address from which `peer` expects packets, if it is known.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        if self.by_peer.is_empty() { None } else { self.by_peer.get(&peer).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_learned_last_is_remembered_and_memory_is_bounded() {
        let mut addresses = ReplyAddresses::default();
        let peer = |number: u32| SocketAddr::from((number.to_be_bytes(), 7));
        let (one, other): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), "fd77::1".parse().unwrap());
        assert_eq!(addresses.of(peer(0)), None);
        addresses.learn(peer(0), one);
        addresses.learn(peer(0), other);
        assert_eq!((addresses.of(peer(0)), addresses.of(peer(1))), (Some(other), None));
        (0..=PEERS_MAX as u32).for_each(|number| addresses.learn(peer(number), one));
        assert!(addresses.by_peer.len() <= PEERS_MAX);
        assert_eq!(addresses.of(peer(PEERS_MAX as u32)), Some(one));
    }
}
