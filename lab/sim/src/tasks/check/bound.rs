//! T16: the longest time after the last fault until every task has ended, without the time in which tasks run.
//! `docs/internals/tasks.md` derives the number.

use super::trial::Trial;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::client::ClientConfig;
use midflight_tasks::executor::ExecutorConfig;
use midflight_wire::PROBE_MAX;

/// Both endpoints ask a preferred switch this often.
const RETURN_EVERY: Nanos = 1_000 * MS;

/// A switch looks this often whose patience has run out.
const TICK: Nanos = 10 * MS;

/// The longest of each, one after the other.
pub(super) fn bound(trial: &Trial) -> Nanos {
    let (client, executor) = (ClientConfig::new(0, 0, Vec::new()), ExecutorConfig::new(0, 0, Vec::new(), 1, 0));
    let longest = |of: fn(&super::SwitchSpec) -> u64| trial.switches.iter().map(of).max().unwrap_or(0) * MS;
    let lease = longest(|switch| switch.lease_ms);
    let (tasks, switches) = (trial.tasks() as u64, trial.switches.len() as u64);
    let queue = trial.switches.iter().map(|switch| u64::from(switch.queue)).min().unwrap_or(1);

    // A switch that stood still waits for a lease; a parked slot is out after half of one, or was given a task just then.
    let held_by_the_dead = lease + lease / 2 + lease;
    let silence = client.switch_silence.max(2 * lease.max(executor.lease));
    let way = switches * (silence + RETURN_EVERY) + executor.register_max * 5 / 4;
    let slots = longest(|switch| switch.slot_idle_ms) + executor.slots_full_max * 5 / 4;
    let clients = longest(|switch| switch.client_idle_ms) + client.backoff_max;
    let lost_results = client.gone_after + client.probe_interval * (tasks.div_ceil(PROBE_MAX as u64) + 1);
    let full_queue = client.backoff_max * (tasks.div_ceil(queue) + trial.clients.len() as u64);
    let patience = trial.jobs.iter().flat_map(|job| &job.tasks).map(|task| task.patience_ms.next_power_of_two()).max();
    let place = u64::from(patience.unwrap_or(0)) * MS + TICK;
    held_by_the_dead + place + way + slots.max(clients) + lost_results + full_queue
}
