//! What a switch says of itself: a [`Snapshot`], as JSON for `midflight status` and as Prometheus text.

use midflight_dataplane::{Stats, Verdict};
use midflight_wire::Operation;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// Counters of the process around the core (its socket and threads), by name. A name says the unit.
pub type ShellCounters = BTreeMap<String, u64>;

/// A switch at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of the program.
    pub version: String,
    /// Where it serves clients and executors.
    pub listen: SocketAddr,
    /// Who decides.
    pub engine: EngineStatus,
    /// Drawn at random at its start.
    pub epoch: u32,
    /// Milliseconds since its start.
    pub uptime_ms: u64,
    /// Datagrams with a valid header, by operation.
    pub packets: BTreeMap<String, u64>,
    /// Datagrams and records that were not taken, by reason; all reasons of `verdict.h`, also at 0.
    pub drops: BTreeMap<String, u64>,
    /// Datagrams taken.
    pub taken: u64,
    /// What became of tasks, since the start.
    pub tasks: TaskTotals,
    /// Times that the switch stood still for more than a third of a lease.
    #[serde(default)]
    pub gaps: u64,
    /// Bucket b counts first assignments that waited for 2^(b-1) to 2^b µs, bucket 0 those below 1 µs.
    pub wait_us: Vec<u64>,
    /// Sum of those waits.
    pub wait_sum_us: u64,
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
    /// Socket and threads.
    pub shell: ShellCounters,
}

/// The engine of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// `user`, `kernel`, `asic-safe` or `asic-published`
    pub kind: String,
    /// Of the kernel engine: `native` or `generic`.
    pub mode: Option<String>,
    /// Of the kernel engine: what it serves.
    pub interfaces: Vec<String>,
}

impl EngineStatus {
    /// That of a switch in user space, of this kind.
    #[must_use]
    pub fn in_process(kind: &str) -> Self {
        Self { kind: kind.into(), mode: None, interfaces: Vec::new() }
    }
}

/// What became of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTotals {
    /// Acknowledged.
    pub submitted: u64,
    /// Assigned, further attempts included.
    pub assigned: u64,
    /// Reported done by their slot.
    pub completed: u64,
    /// Queued again because their slot went silent (T10).
    pub expired: u64,
    /// Queued again because their slot gave them back.
    pub returned: u64,
    /// Taken out by their client.
    pub cancelled: u64,
    /// Given up, queued, because their client was silent (T14).
    #[serde(default)]
    pub dropped: u64,
    /// Taken out by the operator.
    #[serde(default)]
    pub purged: u64,
}

impl Snapshot {
    /// The core's statistics as a snapshot; `levels` as configured.
    #[must_use]
    pub fn new(
        stats: &Stats,
        levels: u32,
        listen: SocketAddr,
        engine: EngineStatus,
        epoch: u32,
        uptime_ms: u64,
        shell: ShellCounters,
    ) -> Self {
        let packets = Operation::ALL.iter().map(|&op| (operation_name(op), stats.packets[op as usize])).collect();
        let reasons = Verdict::ALL.iter().filter(|&&v| v != Verdict::Ok);
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            listen,
            engine,
            epoch,
            uptime_ms,
            packets,
            drops: reasons.map(|&v| (v.name().into(), stats.reasons[v as usize])).collect(),
            taken: stats.reasons[Verdict::Ok as usize],
            tasks: TaskTotals {
                submitted: stats.submitted,
                assigned: stats.assigned,
                completed: stats.completed,
                expired: stats.expired,
                returned: stats.returned,
                cancelled: stats.cancelled,
                dropped: stats.dropped,
                purged: stats.purged,
            },
            gaps: stats.gaps,
            wait_us: stats.wait_us.to_vec(),
            wait_sum_us: stats.wait_sum_us,
            queued: stats.queued.iter().take(levels as usize).copied().collect(),
            parked: stats.parked,
            busy: stats.busy,
            slots: stats.slots,
            clients: stats.clients,
            shell,
        }
    }

    /// Upper bound in µs of the bucket in which the `quantile` (0 to 1) of the waits lies; `None` without waits.
    #[must_use]
    pub fn wait_quantile_us(&self, quantile: f64) -> Option<u64> {
        let count: u64 = self.wait_us.iter().sum();
        let rank = (quantile * count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let bucket = self.wait_us.iter().position(|&n| {
            below += n;
            below >= rank
        });
        bucket.filter(|_| count > 0).map(|b| 1 << b)
    }

    /// OpenMetrics text for Prometheus.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut registry = Registry::with_prefix("midflight");
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    fn encode_engine(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let EngineStatus { kind, mode, interfaces } = &self.engine;
        let interfaces = interfaces.join(",");
        let labels =
            [("kind", kind.as_str()), ("mode", mode.as_deref().unwrap_or_default()), ("interfaces", &interfaces)];
        encoder.encode_descriptor("engine", "Who decides", None, MetricType::Info)?.encode_info(&labels)
    }

    fn encode_tasks(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let t = &self.tasks;
        counter(encoder, "tasks_submitted", "Tasks acknowledged to their clients", t.submitted)?;
        counter(encoder, "tasks_assigned", "Assignments of tasks to slots, further attempts included", t.assigned)?;
        counter(encoder, "tasks_completed", "Tasks whose slot said that they are done", t.completed)?;
        counter(encoder, "tasks_expired", "Tasks queued again because their slot went silent", t.expired)?;
        counter(encoder, "tasks_returned", "Tasks queued again because their slot gave them back", t.returned)?;
        counter(encoder, "tasks_cancelled", "Tasks taken out by their client", t.cancelled)?;
        counter(encoder, "tasks_dropped", "Queued tasks given up because their client was silent", t.dropped)?;
        counter(encoder, "tasks_purged", "Queued tasks taken out by midflight purge", t.purged)?;
        counter(encoder, "tick_gaps", "Times that the switch stood still for more than a third of a lease", self.gaps)
    }

    fn encode_now(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let levels = self.queued.iter().enumerate();
        let levels = levels.map(|(i, &n)| ((i + 1).to_string(), i64::from(n)));
        gauges(encoder, "queued", "Tasks in the queue now, by level (1 is the highest)", "level", levels)?;
        gauge(encoder, "parked", "Executor slots that wait now", i64::from(self.parked))?;
        gauge(encoder, "busy", "Executor slots with a task now", i64::from(self.busy))?;
        gauge(encoder, "slots", "Executor slots registered now", i64::from(self.slots))?;
        gauge(encoder, "clients", "Clients known now", i64::from(self.clients))?;
        gauge(encoder, "uptime_seconds", "Time since the start", self.uptime_ms as f64 / 1e3)?;
        gauge(encoder, "epoch", "Epoch of the switch, random at its start", i64::from(self.epoch))
    }

    /// The core's powers of two, in seconds, up to 2^26 µs (about a minute); longer waits are in `+Inf`.
    fn encode_waits(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        const LAST: usize = 26;
        let bounded = self.wait_us.iter().take(LAST + 1).enumerate();
        let mut buckets: Vec<(f64, u64)> = bounded.map(|(b, &n)| ((1u64 << b) as f64 / 1e6, n)).collect();
        buckets.push((f64::INFINITY, self.wait_us.iter().skip(LAST + 1).sum()));
        let help = "From a task's acknowledgement to its first assignment";
        let mut metric = encoder.encode_descriptor("wait_seconds", help, None, MetricType::Histogram)?;
        let count = self.wait_us.iter().sum();
        metric.encode_histogram::<NoLabelSet>(self.wait_sum_us as f64 / 1e6, count, &buckets, None)
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let e = &mut encoder;
        let labels = [("version", self.version.as_str()), ("listen", &self.listen.to_string())];
        e.encode_descriptor("build", "The program", None, MetricType::Info)?.encode_info(&labels)?;
        self.encode_engine(e)?;
        counters(e, "packets", "Datagrams with a valid header, by operation", "operation", &self.packets)?;
        counter(e, "packets_taken", "Datagrams that were taken", self.taken)?;
        counters(e, "drops", "Datagrams and records that were not taken, by reason", "reason", &self.drops)?;
        self.encode_tasks(e)?;
        self.encode_waits(e)?;
        self.encode_now(e)?;
        counters(e, "shell", "Counts of the process around the core, by name", "name", &self.shell)
    }
}

fn counter(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn counters(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    label: &str,
    values: &BTreeMap<String, u64>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (key, value) in values {
        let labels = [(label, key.as_str())];
        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(value, None)?;
    }
    Ok(())
}

fn gauge(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

fn gauges(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    label: &str,
    values: impl Iterator<Item = (String, i64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (key, value) in values {
        let labels = [(label, key.as_str())];
        encode_one(&mut family, &labels, value)?;
    }
    Ok(())
}

fn encode_one(
    family: &mut prometheus_client::encoding::MetricEncoder,
    labels: &impl EncodeLabelSet,
    value: i64,
) -> fmt::Result {
    family.encode_family(labels)?.encode_gauge(&value)
}

/// `SubmitAck` as `submit_ack`.
fn operation_name(operation: Operation) -> String {
    let mut name = String::new();
    for c in format!("{operation:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn snapshot() -> Snapshot {
        let mut packets = BTreeMap::new();
        packets.insert("submit".to_string(), 3);
        let drops = Verdict::ALL.iter().filter(|&&v| v != Verdict::Ok).map(|v| (v.name().to_string(), 0)).collect();
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
            gaps: 0,
            tasks: TaskTotals {
                submitted: 10,
                assigned: 11,
                completed: 9,
                expired: 1,
                returned: 0,
                cancelled: 0,
                dropped: 0,
                purged: 0,
            },
            wait_us,
            wait_sum_us: 2_000_000,
            queued: vec![2, 0],
            parked: 0,
            busy: 1,
            slots: 1,
            clients: 1,
            shell: ShellCounters::from([("socket_received".into(), 12)]),
        }
    }

    #[test]
    fn every_reason_has_a_line_also_at_zero() {
        let text = snapshot().to_prometheus();
        for verdict in Verdict::ALL.iter().filter(|&&v| v != Verdict::Ok) {
            let line = format!("midflight_drops_total{{reason=\"{}\"}} 0", verdict.name());
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn metrics_say_what_the_snapshot_says() {
        let text = snapshot().to_prometheus();
        for line in [
            "midflight_packets_total{operation=\"submit\"} 3",
            "midflight_queued{level=\"1\"} 2",
            "midflight_queued{level=\"2\"} 0",
            "midflight_parked 0",
            "midflight_busy 1",
            "midflight_tasks_submitted_total 10",
            "midflight_tasks_expired_total 1",
            "midflight_epoch 7",
            "midflight_uptime_seconds 1.5",
            "midflight_wait_seconds_sum 2.0",
            "midflight_wait_seconds_count 10",
            "midflight_shell_total{name=\"socket_received\"} 12",
            "midflight_build_info{version=\"1\",listen=\"127.0.0.1:7700\"} 1",
            "midflight_engine_info{kind=\"kernel\",mode=\"native\",interfaces=\"eth0,eth1\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn wait_buckets_are_cumulative_and_end_in_infinity() {
        let text = snapshot().to_prometheus();
        let line = |bound: &str, n: u64| format!("midflight_wait_seconds_bucket{{le=\"{bound}\"}} {n}");
        for line in
            [line("0.000001", 5), line("0.000004", 5), line("0.000008", 9), line("67.108864", 9), line("+Inf", 10)]
        {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn quantiles_are_the_upper_bound_of_their_bucket() {
        let mut snapshot = snapshot();
        assert_eq!(snapshot.wait_quantile_us(0.5), Some(1));
        assert_eq!(snapshot.wait_quantile_us(0.9), Some(8));
        assert_eq!(snapshot.wait_quantile_us(1.0), Some(1 << 39));
        snapshot.wait_us.fill(0);
        assert_eq!(snapshot.wait_quantile_us(0.5), None);
    }

    #[test]
    fn operations_have_the_names_of_the_format() {
        let names: Vec<_> = Operation::ALL.iter().map(|&op| operation_name(op)).collect();
        assert_eq!(names[..3], ["submit", "submit_ack", "register"]);
        assert_eq!(names.len(), Operation::ALL.len());
    }
}
