//! The status and the metrics of the tasks program.

use crate::metrics::{ProgramStatus, counter, gauge, gauges, histogram};
use midflight_dataplane::{Stats, TaskTotals, TasksProgram};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A task queue at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksStatus {
    /// Outcomes of tasks, since the start.
    pub tasks: TaskTotals,
    /// Times that the switch paused for more than a third of a lease.
    pub gaps: u64,
    /// Bucket b counts first assignments that waited for 2^(b-1) to 2^b µs, bucket 0 those below 1 µs.
    pub wait_us: Vec<u64>,
    /// Sum of those waits.
    pub wait_sum_us: u64,
    /// As `wait_us`, for the times from an assignment to the message that the task is done.
    #[serde(default)]
    pub run_us: Vec<u64>,
    /// Sum of those times.
    #[serde(default)]
    pub run_sum_us: u64,
    /// Tasks queued now, by level; the first is level 1.
    pub queued: Vec<u32>,
    /// Executor slots that wait now.
    pub parked: u32,
    /// Executor slots with a task now.
    pub busy: u32,
    /// Executor slots registered now.
    pub slots: u32,
    /// Clients known now.
    pub clients: u32,
    /// Queued tasks that wait for their preferred place now.
    pub for_place: u32,
    /// Places known now.
    pub places: u32,
    /// Bytes of the memory for appended arguments that are in use now.
    #[serde(default)]
    pub argument_bytes: u64,
}

/// Bytes of a block of an argument (`struct block` in `tasks/state.h`).
const ARGUMENT_BLOCK_BYTES: u64 = 128;

impl TasksStatus {
    /// From the counters of the queue; `levels` as configured.
    #[must_use]
    pub fn new(stats: &Stats, levels: u32) -> Self {
        Self {
            tasks: stats.tasks,
            gaps: stats.gaps,
            wait_us: stats.wait_us.to_vec(),
            wait_sum_us: stats.wait_sum_us,
            run_us: stats.run_us.to_vec(),
            run_sum_us: stats.run_sum_us,
            queued: stats.queued.iter().take(levels as usize).copied().collect(),
            parked: stats.parked,
            busy: stats.busy,
            slots: stats.slots,
            clients: stats.clients,
            for_place: stats.for_place,
            places: stats.places,
            argument_bytes: u64::from(stats.argument_blocks) * ARGUMENT_BLOCK_BYTES,
        }
    }
}

/// Upper bound in µs of the bucket in which the `quantile` (0 to 1) of a histogram lies; `None` if that is empty.
#[must_use]
pub fn quantile_us(buckets: &[u64], quantile: f64) -> Option<u64> {
    let count: u64 = buckets.iter().sum();
    let rank = (quantile * count as f64).ceil().max(1.0) as u64;
    let mut below = 0;
    let bucket = buckets.iter().position(|&n| {
        below += n;
        below >= rank
    });
    bucket.filter(|_| count > 0).map(|b| 1 << b)
}

/// The buckets end at 2^26 µs, about a minute.
fn times(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, us: &[u64], sum_us: u64) -> fmt::Result {
    const LAST: usize = 26;
    let mut metric = e.encode_descriptor(name, help, None, MetricType::Histogram)?;
    histogram(&mut metric, LAST + 1, us, sum_us as f64 / 1e6)
}

impl ProgramStatus for TasksStatus {
    type Program = TasksProgram;

    fn counts(&self) -> Vec<(String, u64)> {
        let t = &self.tasks;
        let all = [
            ("submitted", t.submitted),
            ("assigned", t.assigned),
            ("completed", t.completed),
            ("expired", t.expired),
            ("returned", t.returned),
            ("cancelled", t.cancelled),
            ("dropped", t.dropped),
            ("purged", t.purged),
            ("stops", t.stops),
            ("at_place", t.at_place),
            ("out_of_patience", t.out_of_patience),
        ];
        all.map(|(name, count)| (format!("tasks.{name}"), count)).into()
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let t = &self.tasks;
        counter(e, "submitted", "Tasks acknowledged to their clients", t.submitted)?;
        counter(e, "assigned", "Assignments of tasks to slots, further attempts included", t.assigned)?;
        counter(e, "completed", "Tasks whose slot said that they are done", t.completed)?;
        counter(e, "expired", "Tasks queued again because their slot went silent", t.expired)?;
        counter(e, "returned", "Tasks queued again because their slot gave them back", t.returned)?;
        counter(e, "cancelled", "Tasks taken out by their client", t.cancelled)?;
        counter(e, "dropped", "Queued tasks given up because their client was silent", t.dropped)?;
        counter(e, "purged", "Queued tasks taken out by midflight purge", t.purged)?;
        counter(
            e,
            "stops",
            "Running tasks whose executor was told to stop: their client is gone, or was purged",
            t.stops,
        )?;
        counter(e, "at_place", "Tasks assigned at the place that they prefer", t.at_place)?;
        counter(e, "out_of_patience", "Tasks that have waited for their place in vain", t.out_of_patience)?;
        counter(e, "tick_gaps", "Times that the switch stood still for more than a third of a lease", self.gaps)?;
        let waited = "From a task's acknowledgement to its first assignment";
        times(e, "wait_seconds", waited, &self.wait_us, self.wait_sum_us)?;
        let ran = "From an assignment to the word that the task is done";
        times(e, "run_seconds", ran, &self.run_us, self.run_sum_us)?;
        let levels = self.queued.iter().enumerate().map(|(i, &n)| ((i + 1).to_string(), i64::from(n)));
        gauges(e, "queued", "Tasks in the queue now, by level (1 is the highest)", "level", levels)?;
        gauge(e, "slots_parked", "Executor slots that wait now", i64::from(self.parked))?;
        gauge(e, "slots_busy", "Executor slots with a task now", i64::from(self.busy))?;
        gauge(e, "slots", "Executor slots registered now", i64::from(self.slots))?;
        gauge(e, "clients", "Clients known now", i64::from(self.clients))?;
        gauge(e, "queued_for_place", "Queued tasks that wait for their place now", i64::from(self.for_place))?;
        gauge(e, "places", "Places at which slots are registered now", i64::from(self.places))?;
        gauge(e, "argument_bytes", "Bytes in use for appended arguments now", self.argument_bytes as i64)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metrics::{EngineStatus, ShellCounters, Snapshot};
    use midflight_dataplane::Verdict;
    use midflight_dataplane::program::{Class, Verdict as _};
    use std::collections::BTreeMap;

    pub(crate) fn snapshot() -> Snapshot {
        let mut packets = BTreeMap::new();
        packets.insert("submit".to_string(), 3);
        let drops =
            Verdict::ALL.iter().filter(|v| v.class() != Class::Taken).map(|v| (v.name().to_string(), 0)).collect();
        let mut wait_us = vec![0; midflight_dataplane::WAIT_BUCKETS];
        (wait_us[0], wait_us[3], wait_us[39]) = (5, 4, 1);
        Snapshot {
            version: "1".into(),
            listen: "127.0.0.1:7700".parse().unwrap(),
            engine: EngineStatus {
                kind: "kernel".into(),
                mode: Some("native".into()),
                interfaces: vec!["eth0".into(), "eth1".into()],
            },
            epoch: 7,
            uptime_ms: 1500,
            packets,
            drops,
            taken: 3,
            program: TasksStatus {
                gaps: 0,
                tasks: TaskTotals { submitted: 10, assigned: 11, completed: 9, expired: 1, ..TaskTotals::default() },
                wait_us,
                wait_sum_us: 2_000_000,
                run_us: vec![0, 9],
                run_sum_us: 9,
                queued: vec![2, 0],
                parked: 0,
                busy: 1,
                slots: 1,
                clients: 1,
                for_place: 0,
                places: 0,
                argument_bytes: 0,
            },
            shell: ShellCounters::from([("socket_received".into(), 12)]),
        }
    }

    #[test]
    fn every_reason_has_a_line_also_at_zero() {
        let text = snapshot().to_prometheus();
        for verdict in Verdict::ALL.iter().filter(|v| v.class() != Class::Taken) {
            let line = format!("midflight_drops_total{{reason=\"{}\"}} 0", verdict.name());
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn metrics_say_what_the_snapshot_says() {
        let text = snapshot().to_prometheus();
        for line in [
            "midflight_packets_total{operation=\"submit\"} 3",
            "midflight_tasks_queued{level=\"1\"} 2",
            "midflight_tasks_queued{level=\"2\"} 0",
            "midflight_tasks_slots_parked 0",
            "midflight_tasks_slots_busy 1",
            "midflight_tasks_submitted_total 10",
            "midflight_tasks_expired_total 1",
            "midflight_epoch 7",
            "midflight_uptime_seconds 1.5",
            "midflight_tasks_wait_seconds_sum 2.0",
            "midflight_tasks_wait_seconds_count 10",
            "midflight_shell_total{name=\"socket_received\"} 12",
            "midflight_build_info{version=\"1\",listen=\"127.0.0.1:7700\"} 1",
            "midflight_engine_info{program=\"tasks\",kind=\"kernel\",mode=\"native\",interfaces=\"eth0,eth1\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn wait_buckets_are_cumulative_and_end_in_infinity() {
        let text = snapshot().to_prometheus();
        let line = |bound: &str, n: u64| format!("midflight_tasks_wait_seconds_bucket{{le=\"{bound}\"}} {n}");
        for line in
            [line("0.000001", 5), line("0.000004", 5), line("0.000008", 9), line("67.108864", 9), line("+Inf", 10)]
        {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn quantiles_are_the_upper_bound_of_their_bucket() {
        let mut waits = snapshot().program.wait_us;
        assert_eq!(quantile_us(&waits, 0.5), Some(1));
        assert_eq!(quantile_us(&waits, 0.9), Some(8));
        assert_eq!(quantile_us(&waits, 1.0), Some(1 << 39));
        waits.fill(0);
        assert_eq!(quantile_us(&waits, 0.5), None);
    }
}
