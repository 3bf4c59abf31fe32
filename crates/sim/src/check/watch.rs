//! The ledger as an observer of any world, for tests: the first rule that a switch breaks ends the run.

use super::ledger::Ledger;
use crate::actors::switch::Turn;
use crate::{Happening, NodeId, Observer};
use midflight_dataplane::TasksConfig;
use midflight_endpoint::Nanos;
use std::collections::HashMap;

/// Holds switches to T1 to T8 and T10 to T12 at every packet, whatever befalls the network and the processes.
#[derive(Debug)]
pub struct Watch {
    config: TasksConfig,
    ledgers: HashMap<NodeId, Ledger>,
}

impl Watch {
    /// Of switches with this configuration, from their start on.
    #[must_use]
    pub fn new(config: TasksConfig) -> Self {
        Self { config, ledgers: HashMap::new() }
    }
}

impl Observer for Watch {
    /// # Panics
    /// Where the switch breaks a rule.
    fn switch_took(&mut self, at: Nanos, switch: NodeId, turn: &Turn<'_>) {
        let ledger = self.ledgers.entry(switch).or_insert_with(|| Ledger::new(self.config));
        if let Err(broken) = ledger.turn(turn) {
            panic!("switch {} at {at} ns: {broken}", switch.index());
        }
    }

    fn happened(&mut self, _at: Nanos, happening: &Happening) {
        if let Happening::Crashed { node } = happening {
            self.ledgers.remove(node);
        }
    }
}
