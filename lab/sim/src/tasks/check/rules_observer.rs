//! Checks the rules of switches in any world, for tests: the first violation ends the run.

use super::follower::Follower;
use crate::tasks::switch::Switch;
use crate::{Actor, Happening, NodeId, Observer};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::collections::HashMap;

/// Checks T1 to T8 and T10 to T14 at every packet, under any fault of the network and the processes.
#[derive(Debug, Default)]
pub struct RulesObserver {
    followers: HashMap<NodeId, Follower>,
}

impl Observer for RulesObserver {
    /// # Panics
    /// If the switch breaks a rule.
    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) {
        let Some(switch) = (actor as &dyn Any).downcast_ref::<Switch>() else { return };
        let follower = self.followers.entry(node).or_insert_with(|| Follower::new(switch.origin()));
        if let Err(broken) = follower.turn(&switch.last_turn(datagram)) {
            panic!("switch {} at {at} ns: {broken}", node.index());
        }
    }

    fn happened(&mut self, _at: Nanos, happening: &Happening<'_>) {
        if let Happening::Crashed { node } = happening {
            self.followers.remove(node);
        }
    }
}
