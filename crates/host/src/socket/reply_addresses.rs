//! For sockets on a wildcard address: the local address from which each executor expects its tasks.
//!
//! An executor accepts tasks only from the address it sends to; for an ASSIGN to a parked slot the kernel might choose another one.
//! Addresses are learned only from packets that no one else can have sent; otherwise an attacker could make the switch use an address that
//! the executor ignores (T13).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Twice the default slots of a switch. Beyond it, all are forgotten and learned again.
const PEERS_MAX: usize = 131_072;

#[derive(Debug, Default)]
pub(crate) struct ReplyAddresses {
    by_peer: HashMap<SocketAddr, IpAddr>,
}

impl ReplyAddresses {
    pub(crate) fn learn(&mut self, peer: SocketAddr, own: IpAddr) {
        if self.by_peer.len() >= PEERS_MAX {
            self.by_peer.clear();
        }
        self.by_peer.insert(peer, own);
    }

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
