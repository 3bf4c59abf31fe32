//! The status of an executor.

use crate::metrics::{ProcessStatus, ShellCounters, counters, gauge, gauges, histogram, info};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// 2^26 µs, about a minute. Longer runs are in `+Inf`.
const LAST_BUCKET: usize = 26;

/// An executor at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorStatus {
    /// Version of the software.
    pub version: String,
    /// Its UDP address.
    pub address: SocketAddr,
    /// The switch in use.
    pub switch: SocketAddr,
    /// Milliseconds since its start.
    pub uptime_ms: u64,
    /// Current slots by state: `registered`, `registered_ahead`, `running`, `waiting`, `ready`.
    pub slots: BTreeMap<String, u32>,
    /// Counters of the protocol, by name.
    pub counters: BTreeMap<String, u64>,
    /// Counted resources, by name.
    pub resources: BTreeMap<String, ResourceStatus>,
    /// Functions that have run, by name.
    pub functions: BTreeMap<String, FunctionStatus>,
    /// Counters of socket and threads.
    pub shell: ShellCounters,
}

/// A counted resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceStatus {
    /// All bundles.
    pub total: u32,
    /// Bundles that tasks hold.
    pub held: u32,
    /// Bundles that waiting slots offer.
    pub offered: u32,
}

/// The runs of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionStatus {
    /// Bucket b counts runs of 2^(b-1) to 2^b µs, bucket 0 those below 1 µs.
    pub run_us: Vec<u64>,
    /// Sum of the run times in nanoseconds.
    pub sum_ns: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were stopped.
    pub stopped: u64,
}

impl ProcessStatus for ExecutorStatus {
    const PREFIX: &'static str = "midflight_executor";

    fn shell(&mut self) -> &mut ShellCounters {
        &mut self.shell
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (address, switch) = (self.address.to_string(), self.switch.to_string());
        let labels = [("version", self.version.as_str()), ("address", &address), ("switch", &switch)];
        info(e, "build", "The software, and the switch in use", &labels)?;
        gauge(e, "uptime_seconds", "Time since the start", self.uptime_ms as f64 / 1e3)?;
        let slots = || self.slots.iter().map(|(name, &n)| (name.clone(), i64::from(n)));
        gauges(e, "slots", "Slots now, by what they do", "state", slots())?;
        counters(e, "events", "Counts of the protocol, by name", "name", &self.counters)?;
        self.encode_resources(e)?;
        self.encode_functions(e)?;
        counters(e, "shell", "Counts of the process around the protocol, by name", "name", &self.shell)
    }
}

impl ExecutorStatus {
    fn encode_resources(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.resources.is_empty() {
            return Ok(());
        }
        let help = "Bundles of counted resources now: held by tasks, offered by slots that wait, free";
        let mut family = e.encode_descriptor("bundles", help, None, MetricType::Gauge)?;
        for (resource, ResourceStatus { total, held, offered }) in &self.resources {
            let free = total.saturating_sub(held + offered);
            for (state, bundles) in [("held", *held), ("offered", *offered), ("free", free)] {
                let labels = [("resource", resource.as_str()), ("state", state)];
                family.encode_family(&labels)?.encode_gauge(&i64::from(bundles))?;
            }
        }
        Ok(())
    }

    fn encode_functions(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.functions.is_empty() {
            return Ok(());
        }
        let by = |count: fn(&FunctionStatus) -> u64| {
            self.functions.iter().map(|(name, function)| (name.clone(), count(function))).collect::<BTreeMap<_, _>>()
        };
        counters(e, "runs_failed", "Runs that failed, by function", "function", &by(|function| function.failed))?;
        counters(
            e,
            "runs_stopped",
            "Runs that were stopped, by function",
            "function",
            &by(|function| function.stopped),
        )?;
        let help = "From the start of a function to its end";
        let mut family = e.encode_descriptor("run_seconds", help, None, MetricType::Histogram)?;
        for (name, function) in &self.functions {
            let labels = [("function", name.as_str())];
            let sum = function.sum_ns as f64 / 1e9;
            histogram(&mut family.encode_family(&labels)?, LAST_BUCKET + 1, &function.run_us, sum)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::AnySnapshot;

    fn status() -> ExecutorStatus {
        let mut run_us = vec![0; 40];
        (run_us[0], run_us[3], run_us[39]) = (5, 4, 1);
        ExecutorStatus {
            version: "1".into(),
            address: "127.0.0.1:9".parse().unwrap(),
            switch: "127.0.0.1:7700".parse().unwrap(),
            uptime_ms: 1_500,
            slots: [("registered".into(), 4), ("running".into(), 1)].into(),
            counters: [("runs".into(), 10)].into(),
            resources: [("gpu".into(), ResourceStatus { total: 4, held: 1, offered: 2 })].into(),
            functions: [("my \"fn\"".into(), FunctionStatus { run_us, sum_ns: 2_000_000_000, failed: 1, stopped: 0 })]
                .into(),
            shell: ShellCounters::from([("workers".into(), 2)]),
        }
    }

    #[test]
    fn metrics_are_named_and_checked() {
        let text = status().to_prometheus();
        for line in [
            "midflight_executor_slots{state=\"registered\"} 4",
            "midflight_executor_events_total{name=\"runs\"} 10",
            "midflight_executor_bundles{resource=\"gpu\",state=\"held\"} 1",
            "midflight_executor_bundles{resource=\"gpu\",state=\"free\"} 1",
            "midflight_executor_runs_failed_total{function=\"my \\\"fn\\\"\"} 1",
            "midflight_executor_run_seconds_count{function=\"my \\\"fn\\\"\"} 10",
            "midflight_executor_run_seconds_bucket{le=\"0.000008\",function=\"my \\\"fn\\\"\"} 9",
            "midflight_executor_run_seconds_bucket{le=\"+Inf\",function=\"my \\\"fn\\\"\"} 10",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn an_executor_that_counts_and_runs_nothing_has_neither_family() {
        let text =
            ExecutorStatus { resources: BTreeMap::new(), functions: BTreeMap::new(), ..status() }.to_prometheus();
        assert!(!text.contains("bundles") && !text.contains("run_seconds"), "{text}");
    }

    #[test]
    fn promtool_takes_the_metrics() {
        crate::http::tests::promtool::assert_promtool_takes(&status());
    }
}
