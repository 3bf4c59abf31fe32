//! Faults of addresses and paths: moves, takeovers of addresses, small MTUs.

use super::{FaultKind, Party, TasksSubject};
use crate::{Action, NodeId};

/// Headers of IPv6 and UDP. A trial's addresses are IPv4, but its packets must fit both.
const HEADERS: usize = 48;

impl TasksSubject {
    /// Gives a party the address of its latest current move.
    pub(super) fn settle(&mut self, party: Party) {
        let node = self.run.node(party);
        let is_its = |what: &FaultKind| matches!(what, FaultKind::Move { party: p, .. } if *p == party);
        let latest = self.run.lasting().rfind(|(_, what)| is_its(what));
        let to = latest.map_or(node.home(), |(fault, _)| node.spare(fault));
        self.move_to(node, to);
    }

    /// Gives an address to its switch, or to the one that takes it over.
    pub(super) fn take_over(&mut self, switch: usize) {
        let (node, other) = (self.run.node(Party::Switch(switch)), self.standbys[&switch]);
        let is_taken = self.run.lasting().any(|(_, what)| *what == FaultKind::Takeover(switch));
        let (at_home, away) = if is_taken { (other, node) } else { (node, other) };
        self.move_to(away, away.spare(0));
        self.move_to(at_home, node.home());
    }

    fn move_to(&mut self, node: NodeId, to: std::net::SocketAddr) {
        if self.run.world.address(node) != to {
            self.run.act(Action::Move { node, to });
        }
    }

    /// Limits datagrams to and from a party to the smallest current MTU.
    pub(super) fn narrow(&mut self) {
        for (party, node) in self.run.places.all().collect::<Vec<_>>() {
            let of_it = |what: &FaultKind| match what {
                FaultKind::Mtu { party: whose, bytes } if whose.is_none_or(|whose| whose == party) => Some(*bytes),
                _ => None,
            };
            let narrowest = self.run.lasting().filter_map(|(_, what)| of_it(what)).min();
            let bytes = narrowest.map_or(usize::MAX, |mtu| mtu - HEADERS);
            self.run.act(Action::DatagramMax { node, bytes });
        }
    }
}
