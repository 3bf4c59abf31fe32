//! How many slots are in which state.

use super::State;

/// The number of states.
const STATES: usize = State::Gone as usize + 1;

/// What a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// Always registered: as many tasks run at once as there are of these, without those that wait for others.
    Ordinary,
    /// Asks ahead.
    Ahead,
    /// Takes the place of one whose run waits for other tasks.
    Spare,
}

const KINDS: usize = Kind::Spare as usize + 1;

/// Counts of slots, by their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Census {
    states: [[u32; STATES]; KINDS],
    /// Of those that wait: got NO_OP from a switch that is polled, and the next poll is not yet due.
    pub(in super::super) got_no_op: u32,
    /// Runs that were taken ahead and last for longer than expected.
    pub(in super::super) overdue: u32,
    /// Runs that wait for other tasks.
    pub(in super::super) waiting_runs: u32,
    /// With a valid name at the switch.
    registered: [u32; KINDS],
}

impl Census {
    pub(super) fn new(ordinary: u32, ahead: u32, spare: u32) -> Self {
        let unregistered = |count| {
            let mut states = [0; STATES];
            states[State::Unregistered as usize] = count;
            states
        };
        Self {
            states: [ordinary, ahead, spare].map(unregistered),
            got_no_op: 0,
            overdue: 0,
            waiting_runs: 0,
            registered: [0; KINDS],
        }
    }

    /// Slots of all kinds.
    pub(in super::super) fn all(&self, state: State) -> u32 {
        self.states.iter().map(|states| states[state as usize]).sum()
    }

    pub(in super::super) fn of(&self, kind: Kind, state: State) -> u32 {
        self.states[kind as usize][state as usize]
    }

    /// Slots that may be parked: ordinary ones and spares.
    pub(in super::super) fn parkable(&self, state: State) -> u32 {
        self.of(Kind::Ordinary, state) + self.of(Kind::Spare, state)
    }

    pub(in super::super) fn ahead(&self, state: State) -> u32 {
        self.of(Kind::Ahead, state)
    }

    /// Runs that need a worker.
    pub(in super::super) fn working(&self) -> u32 {
        self.all(State::Running) - self.waiting_runs
    }

    /// How many more slots are parked or have a task than shall: as many as are ordinary, one less for each overdue run that was
    /// taken ahead, and one more for each run that waits for others.
    pub(in super::super) fn surplus(&self) -> i64 {
        let rest = self.of(Kind::Ordinary, State::Resting) + self.of(Kind::Ordinary, State::Returning);
        self.spare_surplus() - i64::from(rest)
    }

    /// The same of spares alone: as many as runs wait, less the overdue ones, since ordinary slots go before spares.
    fn spare_surplus(&self) -> i64 {
        let spares = [State::Waiting, State::Ready, State::Running].map(|state| self.of(Kind::Spare, state));
        i64::from(spares.iter().sum::<u32>() + self.overdue) - i64::from(self.waiting_runs)
    }

    /// Whether a slot of this kind that is parked or has a task is one too many.
    pub(in super::super) fn has_surplus(&self, kind: Kind) -> bool {
        let surplus = if kind == Kind::Spare { self.spare_surplus() } else { self.surplus() };
        surplus > 0
    }

    pub(in super::super) fn registered(&self, kind: Kind) -> u32 {
        self.registered[kind as usize]
    }

    pub(super) fn registered_mut(&mut self, kind: Kind) -> &mut u32 {
        &mut self.registered[kind as usize]
    }

    /// A slot changes its state.
    pub(super) fn moves(&mut self, kind: Kind, from: State, to: State) {
        let states = &mut self.states[kind as usize];
        states[from as usize] -= 1;
        states[to as usize] += 1;
    }
}
