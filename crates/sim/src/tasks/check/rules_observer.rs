//! The ledger as an observer of any world, for tests: the first rule that a switch breaks ends the run.

use super::ledger::Ledger;
use crate::tasks::switch::Switch;
use crate::{Actor, Happening, NodeId, Observer};
use midflight_dataplane::TasksConfig;
use midflight_endpoint::Nanos;
use std::any::Any;
use std::collections::HashMap;

/// Holds switches to T1 to T8 and T10 to T12 at every packet, whatever befalls the network and the processes.
#[derive(Debug)]
pub struct RulesObserver {
    config: TasksConfig,
    ledgers: HashMap<NodeId, Ledger>,
}

impl RulesObserver {
    /// Of switches with this configuration, from their start on.
    #[must_use]
    pub fn new(config: TasksConfig) -> Self {
        Self { config, ledgers: HashMap::new() }
    }
}

impl Observer for RulesObserver {
    /// # Panics
    /// Where the switch breaks a rule.
    fn handled(&mut self, at: Nanos, switch: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) {
        let Some(actor) = (actor as &dyn Any).downcast_ref::<Switch>() else { return };
        let ledger = self.ledgers.entry(switch).or_insert_with(|| Ledger::new(self.config));
        if let Err(broken) = ledger.turn(&actor.last_turn(datagram)) {
            panic!("switch {} at {at} ns: {broken}", switch.index());
        }
    }

    fn happened(&mut self, _at: Nanos, happening: &Happening<'_>) {
        if let Happening::Crashed { node } = happening {
            self.ledgers.remove(node);
        }
    }
}
