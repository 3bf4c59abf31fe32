//! Idle executors, by the phase of their polls.

use midflight_endpoint::Nanos;
use std::collections::BTreeSet;

pub(super) struct Wheel {
    period: Nanos,
    /// Phase and number.
    idle: BTreeSet<(Nanos, u32)>,
    /// By executor: its first poll; others follow a period apart.
    first: Vec<Nanos>,
    /// The next poll to read while tasks are queued.
    pub(super) cursor: Option<(Nanos, u32)>,
}

impl Wheel {
    pub(super) fn new(period: Nanos, executors: usize) -> Self {
        Self { period, idle: BTreeSet::new(), first: vec![0; executors], cursor: None }
    }

    pub(super) fn insert(&mut self, executor: u32, first: Nanos) {
        self.first[executor as usize] = first;
        self.idle.insert((first % self.period, executor));
    }

    pub(super) fn remove(&mut self, executor: u32) {
        self.idle.remove(&(self.first[executor as usize] % self.period, executor));
    }

    /// `at` must be in its phase.
    pub(super) fn due(&self, executor: u32, at: Nanos) -> bool {
        self.first[executor as usize] <= at
    }

    pub(super) fn next(&self, at: Nanos) -> Option<(Nanos, u32)> {
        self.from(at, 0)
    }

    pub(super) fn after(&self, at: Nanos, executor: u32) -> Option<(Nanos, u32)> {
        self.from(at, executor + 1)
    }

    fn from(&self, at: Nanos, executor: u32) -> Option<(Nanos, u32)> {
        let (turn, phase) = (at - at % self.period, at % self.period);
        if let Some(&(next, number)) = self.idle.range((phase, executor)..).next() {
            return Some((turn + next, number));
        }
        let &(next, number) = self.idle.first()?;
        Some((turn + self.period + next, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_come_by_phase_round_and_round() {
        let mut wheel = Wheel::new(100, 4);
        [(0, 30), (1, 130), (2, 90), (3, 250)].into_iter().for_each(|(e, first)| wheel.insert(e, first));
        assert_eq!(wheel.next(0), Some((30, 0)));
        assert_eq!(wheel.after(30, 0), Some((30, 1)));
        assert!(wheel.due(0, 30) && !wheel.due(1, 30) && wheel.due(1, 130), "the second's first poll is later");
        assert_eq!(wheel.after(30, 1), Some((50, 3)));
        assert_eq!(wheel.next(91), Some((130, 0)));
        wheel.remove(0);
        assert_eq!(wheel.next(91), Some((130, 1)));
    }
}
