//! Memory that a run will need, so that it can be refused before it starts.

use super::parts::{Scenario, ShapeName};

/// The bytes of each part of a run, measured at a million slots and at millions of waiting tasks, and rounded up.
const SLOT: f64 = 1_100.0;
const EXECUTOR: f64 = 4_000.0;
const SWITCH: f64 = 1e6;
const CLIENT: f64 = 100_000.0;
/// An entry of a pipeline's queue, in all of its registers.
const ENTRY: f64 = 64.0;
/// A task between submission and result: at its client, at the switch, in datagrams.
const OPEN_TASK: f64 = 250.0;
const LISTED_TASK: f64 = 20.0;

impl Scenario {
    /// The approximate bytes of a run.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let cluster = &self.cluster;
        let tasks = self.expected_tasks();
        let slots = cluster.all_slots() as f64;
        // Tasks beyond the slots' capacity wait until the end; and some wait at any load.
        let waiting = tasks * (1.0 - 1.0 / self.workload.load).max(0.0) + slots.min(tasks);
        let listed = if self.workload.shape == ShapeName::Equal { 0.0 } else { tasks * LISTED_TASK };
        let entries = self.asic_config().map_or(0, |config| config.levels.next_power_of_two() * config.queue);
        let bytes = slots * SLOT
            + f64::from(cluster.all_executors()) * EXECUTOR
            + f64::from(cluster.switches) * (SWITCH + f64::from(entries) * ENTRY)
            + f64::from(cluster.clients) * CLIENT
            + waiting * OPEN_TASK
            + listed;
        bytes as u64
    }
}
