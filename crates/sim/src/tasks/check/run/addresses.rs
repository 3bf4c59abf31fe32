//! Faults of addresses and paths: addresses that change, switches at the address of another, small MTUs.

use super::{Party, TasksSubject, What};
use crate::{Action, NodeId};

/// Headers of IPv6 and UDP. A trial's addresses are IPv4, but its packets must fit both.
const HEADERS: usize = 48;

impl TasksSubject {
    /// Gives a party the address of its latest present move.
    pub(super) fn settle(&mut self, party: Party) {
        let node = self.node(party);
        let is_its =
            |fault: &&usize| matches!(&self.trial.faults[**fault].what, What::Move { party: p, .. } if *p == party);
        let to = self.lasting.iter().rfind(is_its).map_or(node.home(), |fault| node.spare(*fault));
        self.move_to(node, to);
    }

    /// Gives an address to its switch, or to the one that takes it over.
    pub(super) fn take_over(&mut self, switch: usize) {
        let (node, other) = (self.switches[switch], self.standbys[&switch]);
        let is_taken = self.lasting.iter().any(|fault| self.trial.faults[*fault].what == What::Takeover(switch));
        let (at_home, away) = if is_taken { (other, node) } else { (node, other) };
        self.move_to(away, away.spare(0));
        self.move_to(at_home, node.home());
    }

    fn move_to(&mut self, node: NodeId, to: std::net::SocketAddr) {
        if self.world.address(node) != to {
            self.act(Action::Move { node, to });
        }
    }

    /// Limits datagrams to and from a party to the smallest present MTU.
    pub(super) fn narrow(&mut self) {
        let parties = (0..self.switches.len()).map(Party::Switch);
        let parties = parties.chain((0..self.executors.len()).map(Party::Executor));
        for party in parties.chain((0..self.clients.len()).map(Party::Client)).collect::<Vec<_>>() {
            let of_it = |fault: &usize| match self.trial.faults[*fault].what {
                What::Mtu { party: whose, bytes } if whose.is_none_or(|whose| whose == party) => Some(bytes),
                _ => None,
            };
            let narrowest = self.lasting.iter().filter_map(of_it).min();
            let bytes = narrowest.map_or(usize::MAX, |mtu| mtu - HEADERS);
            self.act(Action::DatagramMax { node: self.node(party), bytes });
        }
    }
}
