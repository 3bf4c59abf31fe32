//! T16: the longest time from the last fault to the end of every task, without run times. `docs/internals/tasks.md`
//! derives it.

use super::trial::Trial;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::client::ClientConfig;
use midflight_tasks::executor::ExecutorConfig;
use midflight_wire::tasks::PROBE_MAX;

/// Interval at which an endpoint that failed over probes its preferred switch.
const RETURN_EVERY: Nanos = 1_000 * MS;

/// Interval at which a switch checks expired patience.
const TICK: Nanos = 10 * MS;

/// Sum of the longest time of each step.
pub(super) fn bound(trial: &Trial) -> Nanos {
    let (client, executor) = (ClientConfig::new(0, 0, Vec::new()), ExecutorConfig::new(0, 0, Vec::new(), 1, 0));
    let longest = |of: fn(&super::SwitchSpec) -> u64| trial.switches.iter().map(of).max().unwrap_or(0) * MS;
    let lease = longest(|switch| switch.lease_ms);
    let (tasks, switches) = (trial.tasks() as u64, trial.switches.len() as u64);
    let queue = trial.switches.iter().map(|switch| u64::from(switch.queue)).min().unwrap_or(1);

    // After a gap, a switch waits for a lease; a parked slot expires after half of one, or was assigned a task just
    // then.
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
