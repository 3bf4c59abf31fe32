//! What a log makes of the store: the key's value, and the known clients (R3).

use super::planted::Planted;
use super::scope::Scope;
use super::state::{Entry, What};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    New,
    Done,
    /// Unknown client: UNKNOWN_CLIENT.
    NoClient,
}

pub(super) struct Applied {
    pub(super) value: u8,
    /// Executed operations, where clients have no ids.
    executed: u8,
    clients: BTreeMap<u8, Option<u8>>,
    has_ids: bool,
}

impl Applied {
    pub(super) fn of(log: &[Entry], scope: &Scope) -> Self {
        let mut applied = Self { value: 0, executed: 0, clients: BTreeMap::new(), has_ids: scope.one_writer };
        let chosen = scope.has(Planted::ClientChoosesId);
        for (index, entry) in (1..).zip(log) {
            match entry.what {
                What::Write { operation, client, .. } => applied.write(operation, client),
                What::Open => _ = applied.clients.insert(if chosen { 1 } else { index }, None),
                What::Expire { client } => _ = applied.clients.remove(&client),
                What::Session { .. } if scope.has(Planted::ClientsForgotten) => applied.executed = 0,
                What::Session { .. } | What::Fenced { .. } | What::FencedSwitch { .. } | What::Members { .. } => {}
            }
        }
        applied
    }

    /// The known client with the lowest id.
    pub(super) fn first_client(&self) -> Option<u8> {
        self.clients.keys().next().copied()
    }

    pub(super) fn knows(&self, operation: u8, client: u8) -> Known {
        let is_done = if self.has_ids {
            let Some(last) = self.clients.get(&client) else { return Known::NoClient };
            last.is_some_and(|last| operation <= last)
        } else {
            self.executed >> operation & 1 == 1
        };
        if is_done { Known::Done } else { Known::New }
    }

    fn write(&mut self, operation: u8, client: u8) {
        if self.knows(operation, client) == Known::New {
            self.value = operation + 1;
            self.executed |= 1 << operation;
            self.clients.entry(client).and_modify(|last| *last = Some(operation));
        }
    }
}
