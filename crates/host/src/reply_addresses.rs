//! For each executor, the address of this machine that it sends to, where the socket listens on all addresses. An executor
//! takes tasks only from that address, and the kernel by itself would choose the source by its route for the ASSIGN. Only
//! packets that nobody else can have sent are learned from: else a stranger could have an executor's tasks sent from an
//! address from which it takes none (T13).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Peers that are remembered: by default twice as many as a switch has slots. Beyond it all are forgotten; each is known
/// again by its next packet.
const PEERS_MAX: usize = 131_072;

#[derive(Debug, Default)]
pub(crate) struct Sources {
    of: HashMap<SocketAddr, IpAddr>,
}

impl Sources {
    /// `peer` knows us by `own`.
    pub(crate) fn learn(&mut self, peer: SocketAddr, own: IpAddr) {
        if self.of.len() >= PEERS_MAX {
            self.of.clear();
        }
        self.of.insert(peer, own);
    }

    /// The address from which `peer` expects what it is sent, if it is known.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        if self.of.is_empty() { None } else { self.of.get(&peer).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_learned_last_is_remembered_and_memory_is_bounded() {
        let mut sources = Sources::default();
        let peer = |number: u32| SocketAddr::from((number.to_be_bytes(), 7));
        let (one, other): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), "fd77::1".parse().unwrap());
        assert_eq!(sources.of(peer(0)), None);
        sources.learn(peer(0), one);
        sources.learn(peer(0), other);
        assert_eq!((sources.of(peer(0)), sources.of(peer(1))), (Some(other), None));
        (0..=PEERS_MAX as u32).for_each(|number| sources.learn(peer(number), one));
        assert!(sources.of.len() <= PEERS_MAX);
        assert_eq!(sources.of(peer(PEERS_MAX as u32)), Some(one));
    }
}
