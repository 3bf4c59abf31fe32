//! Numbers of slots by kind and state.

use super::State;

const STATES: usize = State::Gone as usize + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// Always registered. Their number is the bound of runs that work.
    Ordinary,
    /// For prefetch.
    Ahead,
    /// Replaces a slot whose run waits for other tasks.
    Spare,
}

const KINDS: usize = Kind::Spare as usize + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Census {
    states: [[u32; STATES]; KINDS],
    /// Waiting slots that got NO_OP from a polled switch and whose next poll is not due.
    pub(in super::super) got_no_op: u32,
    /// Prefetched runs that last longer than expected.
    pub(in super::super) overdue: u32,
    pub(in super::super) waiting_runs: u32,
    /// Slots with a valid name at the switch.
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

    pub(in super::super) fn all(&self, state: State) -> u32 {
        self.states.iter().map(|states| states[state as usize]).sum()
    }

    pub(in super::super) fn of(&self, kind: Kind, state: State) -> u32 {
        self.states[kind as usize][state as usize]
    }

    /// Number of slots that may be parked: ordinary ones and spares.
    pub(in super::super) fn parkable(&self, state: State) -> u32 {
        self.of(Kind::Ordinary, state) + self.of(Kind::Spare, state)
    }

    pub(in super::super) fn ahead(&self, state: State) -> u32 {
        self.of(Kind::Ahead, state)
    }

    pub(in super::super) fn working(&self) -> u32 {
        self.all(State::Running) - self.waiting_runs
    }

    /// Excess of slots that are parked or have a task, over the number of ordinary slots, less the overdue prefetched runs, plus
    /// the runs that wait for others.
    pub(in super::super) fn surplus(&self) -> i64 {
        let rest = self.of(Kind::Ordinary, State::Idle) + self.of(Kind::Ordinary, State::Returning);
        self.spare_surplus() - i64::from(rest)
    }

    /// The same for spares: as many as runs wait, less the overdue, because ordinary slots go first.
    fn spare_surplus(&self) -> i64 {
        let spares = [State::Waiting, State::Ready, State::Running].map(|state| self.of(Kind::Spare, state));
        i64::from(spares.iter().sum::<u32>() + self.overdue) - i64::from(self.waiting_runs)
    }

    /// Whether one slot too many of this kind is parked or has a task.
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

    pub(super) fn moves(&mut self, kind: Kind, from: State, to: State) {
        let states = &mut self.states[kind as usize];
        states[from as usize] -= 1;
        states[to as usize] += 1;
    }
}
