//! How many slots are in which state.

use super::State;

/// The number of states.
const STATES: usize = State::Gone as usize + 1;

/// Counts of slots, ordinary ones and those for asking ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Census {
    ordinary: [u32; STATES],
    ahead: [u32; STATES],
    /// Of those that wait: got NO_OP from a switch that is polled, and the next poll is not yet due.
    pub(in super::super) got_no_op: u32,
    /// Runs that were taken ahead and last for longer than expected.
    pub(in super::super) overdue: u32,
    /// With a valid name at the switch: ordinary ones, and those for asking ahead.
    registered: [u32; 2],
}

impl Census {
    pub(super) fn new(ordinary: u32, ahead: u32) -> Self {
        let unregistered = |count| {
            let mut states = [0; STATES];
            states[State::Unregistered as usize] = count;
            states
        };
        Self {
            ordinary: unregistered(ordinary),
            ahead: unregistered(ahead),
            got_no_op: 0,
            overdue: 0,
            registered: [0; 2],
        }
    }

    /// Slots of both kinds.
    pub(in super::super) fn all(&self, state: State) -> u32 {
        self.ordinary(state) + self.ahead(state)
    }

    pub(in super::super) fn ordinary(&self, state: State) -> u32 {
        self.ordinary[state as usize]
    }

    pub(in super::super) fn ahead(&self, state: State) -> u32 {
        self.ahead[state as usize]
    }

    pub(in super::super) fn registered(&self, is_ahead: bool) -> u32 {
        self.registered[usize::from(is_ahead)]
    }

    pub(super) fn registered_mut(&mut self, is_ahead: bool) -> &mut u32 {
        &mut self.registered[usize::from(is_ahead)]
    }

    /// A slot changes its state.
    pub(super) fn moves(&mut self, is_ahead: bool, from: State, to: State) {
        let states = if is_ahead { &mut self.ahead } else { &mut self.ordinary };
        states[from as usize] -= 1;
        states[to as usize] += 1;
    }
}
