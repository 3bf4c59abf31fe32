//! Addresses of nodes. Each node has its own from the start; a node that moves has another one for a while, perhaps
//! another node's.

use super::node::NodeId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

const PORT: u16 = 7700;
/// First byte of every home address; the other three are the node's number.
const NETWORK: u8 = 10;
/// Number of spare addresses of a node, in the networks above.
const SPARE: u8 = 200;

impl NodeId {
    pub(super) const MOST: usize = 1 << 24;

    pub(crate) fn home(self) -> SocketAddr {
        self.in_network(NETWORK)
    }

    /// A spare address of this node only, by its number modulo 200.
    pub(crate) fn spare(self, number: usize) -> SocketAddr {
        self.in_network(NETWORK + 1 + (number % usize::from(SPARE)) as u8)
    }

    fn in_network(self, network: u8) -> SocketAddr {
        let [_, a, b, c] = self.0.to_be_bytes();
        SocketAddr::from(([network, a, b, c], PORT))
    }

    pub(crate) fn owner(address: SocketAddr) -> Option<Self> {
        match (address.ip(), address.port()) {
            (IpAddr::V4(ip), PORT) => {
                let [network, a, b, c] = ip.octets();
                (NETWORK..=NETWORK + SPARE).contains(&network).then(|| Self(u32::from_be_bytes([0, a, b, c])))
            }
            _ => None,
        }
    }
}

/// Current addresses. A node that is not listed has its home address.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    away: BTreeMap<NodeId, SocketAddr>,
    /// Addresses in use by another node than their owner.
    guests: BTreeMap<SocketAddr, NodeId>,
}

impl Addresses {
    pub(super) fn of(&self, node: NodeId) -> SocketAddr {
        self.away.get(&node).copied().unwrap_or_else(|| node.home())
    }

    /// The node at an address. The world may have no such node.
    pub(super) fn at(&self, address: SocketAddr) -> Option<NodeId> {
        if let Some(&guest) = self.guests.get(&address) {
            return Some(guest);
        }
        NodeId::owner(address).filter(|&owner| self.of(owner) == address)
    }

    /// Gives a node this address only. A node that had it before must be moved, too.
    pub(super) fn move_to(&mut self, node: NodeId, address: SocketAddr) {
        self.guests.retain(|_, guest| *guest != node);
        if address == node.home() {
            self.away.remove(&node);
        } else {
            self.away.insert(node, address);
            self.guests.insert(address, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_goes_from_one_node_to_another_and_back() {
        let (a, b) = (NodeId(1), NodeId(0x01_0203));
        let mut addresses = Addresses::default();
        assert_eq!((addresses.of(b), addresses.at(b.home())), ("10.1.2.3:7700".parse().unwrap(), Some(b)));
        addresses.move_to(a, a.spare(0));
        assert_eq!((addresses.at(a.home()), addresses.at(a.spare(0))), (None, Some(a)));
        addresses.move_to(b, a.home());
        assert_eq!((addresses.at(a.home()), addresses.at(b.home()), addresses.of(b)), (Some(b), None, a.home()));
        addresses.move_to(b, b.home());
        addresses.move_to(a, a.home());
        assert_eq!([a, b].map(|node| addresses.at(node.home())), [Some(a), Some(b)]);
        assert_eq!(addresses.at(a.spare(0)), None, "it has left");
    }

    #[test]
    fn a_spare_address_tells_whose_it_is() {
        let node = NodeId(77);
        assert_eq!([node.home(), node.spare(0), node.spare(199)].map(NodeId::owner), [Some(node); 3]);
        assert_eq!(node.spare(200), node.spare(0));
        assert_eq!(NodeId::owner("10.0.0.77:1".parse().unwrap()), None);
        assert_eq!(NodeId::owner("9.0.0.77:7700".parse().unwrap()), None);
    }
}
