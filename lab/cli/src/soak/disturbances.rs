//! Disturbances of a soak and their times, drawn from a seed.

use super::cluster::{Cluster, Departure, FICKLE, Queue};
use crate::engines::LabEngine;
use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use std::time::{Duration, Instant};

/// Longest time between two events.
const CALM_MS: u64 = 1_200;
/// Longest absence of an executor or the switch.
const AWAY_MS: u64 = 3_000;
const GAP_MS: u64 = 800;
/// Longest life of clients that are to be killed.
const LIFE_MS: u64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    ExecutorLeaves,
    ExecutorDies,
    ClientVisits,
    ClientDies,
    SwitchChanges(Departure, Queue),
}

#[derive(Debug)]
pub(super) struct Disturbances {
    random: Pcg32,
    engine: LabEngine,
    next: Instant,
}

impl Disturbances {
    pub(super) fn new(engine: LabEngine, seed: u64) -> Self {
        Self { random: Pcg32::seed_from_u64(seed), engine, next: Instant::now() }
    }

    /// Causes the next event, if it is due.
    pub(super) fn go_on(&mut self, cluster: &mut Cluster<'_>) -> Result<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        let event = self.event();
        self.act(event, cluster)?;
        self.next = Instant::now() + self.up_to(CALM_MS);
        Ok(())
    }

    fn event(&mut self) -> Event {
        match self.random.random_range(0..100) {
            0..25 => Event::ExecutorLeaves,
            25..50 => Event::ExecutorDies,
            50..70 => Event::ClientVisits,
            70..88 => Event::ClientDies,
            _ => self.change_of_switch(),
        }
    }

    fn change_of_switch(&mut self) -> Event {
        let departure = if self.random.random_bool(0.5) { Departure::Asked } else { Departure::Killed };
        let queue = match self.engine {
            LabEngine::User => Queue::Gone,
            LabEngine::Kernel => match self.random.random_range(0..4) {
                0..2 => Queue::Kept,
                2 => Queue::ThrownAway,
                _ => Queue::Gone,
            },
        };
        Event::SwitchChanges(departure, queue)
    }

    fn act(&mut self, event: Event, cluster: &mut Cluster<'_>) -> Result<()> {
        let seat = self.random.random_range(FICKLE);
        match event {
            Event::ExecutorLeaves => cluster.send_away(seat, self.up_to(AWAY_MS)),
            Event::ExecutorDies => cluster.kill(seat, self.up_to(AWAY_MS)),
            Event::ClientVisits => self.visit(cluster)?,
            Event::ClientDies => cluster.visit(&["sleep", "20ms", "-n", "3000"], Some(self.up_to(LIFE_MS)))?,
            Event::SwitchChanges(departure, queue) => cluster.change_switch(departure, queue, self.up_to(GAP_MS))?,
        }
        Ok(())
    }

    fn visit(&mut self, cluster: &mut Cluster<'_>) -> Result<()> {
        let (function, most) = [(&["noop"][..], 20_000), (&["sleep", "3ms"], 1_000), (&["spin", "50us"], 2_000)]
            [self.random.random_range(0..3)];
        let count = self.random.random_range(1..=most).to_string();
        let priority = self.random.random_range(1..=8).to_string();
        cluster.visit(&[function, &["-n", &count, "--priority", &priority]].concat(), None)
    }

    fn up_to(&mut self, most_ms: u64) -> Duration {
        Duration::from_millis(self.random.random_range(0..=most_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn events(engine: LabEngine) -> Vec<Event> {
        let mut disturbances = Disturbances::new(engine, 7);
        (0..1_000).map(|_| disturbances.event()).collect()
    }

    #[test]
    fn everything_happens_and_the_same_from_the_same_seed() {
        assert_eq!(events(LabEngine::Kernel), events(LabEngine::Kernel));
        let kinds = |engine| events(engine).iter().map(|event| format!("{event:?}")).collect::<HashSet<_>>().len();
        assert_eq!(kinds(LabEngine::Kernel), 4 + 2 * 3);
        assert_eq!(kinds(LabEngine::User), 4 + 2);
    }
}
