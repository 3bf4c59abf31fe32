//! The status of a switch: a [`Snapshot`], as JSON for `midflight status` and as Prometheus text. Its program adds a [`ProgramStatus`].

use crate::load::LoadReport;
use crate::tasks::TasksStatus;
use midflight_dataplane::program::{Class, Program, Verdict};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// Counters of the process around the core (socket, threads), by name, which includes the unit.
pub type ShellCounters = BTreeMap<String, u64>;

/// The counters and gauges of a program.
pub trait ProgramStatus: Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The program.
    type Program: Program;

    /// Counters whose rates are shown, by name.
    fn counts(&self) -> Vec<(String, u64)>;

    /// Writes its metrics; their names get the prefix `midflight_NAME_`.
    ///
    /// # Errors
    /// If the text cannot be written.
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result;
}

/// A switch at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot<S = TasksStatus> {
    /// Version of the software.
    pub version: String,
    /// Address where it serves.
    pub listen: SocketAddr,
    /// The engine.
    pub engine: EngineStatus,
    /// Drawn at random at its start.
    pub epoch: u32,
    /// Milliseconds since its start.
    pub uptime_ms: u64,
    /// Datagrams with a valid header, by operation.
    pub packets: BTreeMap<String, u64>,
    /// Datagrams and records that were refused, by drop reason; includes reasons at 0.
    pub drops: BTreeMap<String, u64>,
    /// Datagrams accepted.
    pub taken: u64,
    /// The part of its program.
    #[serde(flatten)]
    pub program: S,
    /// Counters of socket and threads.
    pub shell: ShellCounters,
}

/// The facts about a switch that do not depend on its program.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Address where it serves.
    pub listen: SocketAddr,
    /// The engine.
    pub engine: EngineStatus,
    /// Drawn at random at its start.
    pub epoch: u32,
    /// Milliseconds since its start.
    pub uptime_ms: u64,
    /// Counters of socket and threads.
    pub shell: ShellCounters,
}

/// The engine of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// Such as `user` or `kernel`.
    pub kind: String,
    /// Of the kernel engine: `native` or `generic`.
    pub mode: Option<String>,
    /// Of the kernel engine: the interfaces that it serves.
    pub interfaces: Vec<String>,
}

impl EngineStatus {
    /// An engine in user space, of this kind.
    #[must_use]
    pub fn in_process(kind: &str) -> Self {
        Self { kind: kind.into(), mode: None, interfaces: Vec::new() }
    }
}

/// The status of a process with metrics of its own.
pub trait ProcessStatus: Clone + fmt::Debug + Serialize + Send + Sync + 'static {
    /// The prefix of its metrics.
    const PREFIX: &'static str;

    /// Its counters of the process around the core.
    fn shell(&mut self) -> &mut ShellCounters;

    /// Writes its metrics.
    ///
    /// # Errors
    /// If the text cannot be written.
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result;

    /// The load report, if the process publishes one.
    fn load(&self) -> Option<LoadReport> {
        None
    }
}

impl<S: ProcessStatus> AnySnapshot for S {
    fn add_shell(&mut self, counters: ShellCounters) {
        self.shell().extend(counters);
    }

    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    fn to_prometheus(&self) -> String {
        let mut registry = Registry::with_prefix(S::PREFIX);
        registry.register_collector(Box::new(OfProcess(self.clone())));
        text_of(&registry)
    }

    fn load(&self) -> Option<LoadReport> {
        ProcessStatus::load(self)
    }
}

/// The status of any process.
pub trait AnySnapshot: Send {
    /// Adds counters of the process around the core.
    fn add_shell(&mut self, counters: ShellCounters);

    /// As JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    fn to_json(&self) -> serde_json::Result<String>;

    /// OpenMetrics text for Prometheus.
    fn to_prometheus(&self) -> String;

    /// The load report, if the process publishes one.
    fn load(&self) -> Option<LoadReport> {
        None
    }
}

impl<S: ProgramStatus> Snapshot<S> {
    /// A snapshot of a switch's counters.
    #[must_use]
    pub fn new(surroundings: Surroundings, stats: &<S::Program as Program>::Stats, program: S) -> Self {
        let Surroundings { listen, engine, epoch, uptime_ms, shell } = surroundings;
        let (packets, verdicts) = (S::Program::packets(stats), S::Program::verdicts(stats));
        let verdicts = || <S::Program as Program>::Verdict::ALL.iter().zip(verdicts);
        let (taken, dropped) = (|class| class == Class::Taken, |class| class != Class::Taken);
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            listen,
            engine,
            epoch,
            uptime_ms,
            // The first is VERSION, which no switch accepts.
            packets: S::Program::OPERATIONS.iter().zip(packets).skip(1).map(|(name, &n)| ((*name).into(), n)).collect(),
            drops: verdicts().filter(|(v, _)| dropped(v.class())).map(|(v, &n)| (v.name().into(), n)).collect(),
            taken: verdicts().filter(|(v, _)| taken(v.class())).map(|(_, n)| n).sum(),
            program,
            shell,
        }
    }

    /// OpenMetrics text for Prometheus.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut registry = Registry::with_prefix("midflight");
        registry.register_collector(Box::new(OfSwitch(self.clone())));
        let of_program = registry.sub_registry_with_prefix(S::Program::NAME);
        of_program.register_collector(Box::new(OfProgram(self.program.clone())));
        text_of(&registry)
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let labels = [("version", self.version.as_str()), ("listen", &self.listen.to_string())];
        info(e, "build", "The software", &labels)?;
        self.encode_engine(e)?;
        counters(e, "packets", "Datagrams with a valid header, by operation", "operation", &self.packets)?;
        counter(e, "packets_taken", "Datagrams that were taken", self.taken)?;
        counters(e, "drops", "Datagrams and records that were not taken, by reason", "reason", &self.drops)?;
        gauge(e, "uptime_seconds", "Time since the start", self.uptime_ms as f64 / 1e3)?;
        gauge(e, "epoch", "Epoch of the switch, random at its start", i64::from(self.epoch))?;
        counters(e, "shell", "Counts of the process around the program, by name", "name", &self.shell)
    }

    fn encode_engine(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let EngineStatus { kind, mode, interfaces } = &self.engine;
        let interfaces = interfaces.join(",");
        let (program, mode) = (S::Program::NAME, mode.as_deref().unwrap_or_default());
        let labels = [("program", program), ("kind", kind), ("mode", mode), ("interfaces", &interfaces)];
        info(encoder, "engine", "Who decides", &labels)
    }
}

impl<S: ProgramStatus> AnySnapshot for Snapshot<S> {
    fn add_shell(&mut self, counters: ShellCounters) {
        self.shell.extend(counters);
    }

    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    fn to_prometheus(&self) -> String {
        Snapshot::to_prometheus(self)
    }
}

fn text_of(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, registry);
    text
}

#[derive(Debug)]
struct OfProcess<S>(S);

impl<S: ProcessStatus> Collector for OfProcess<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(&mut encoder)
    }
}

#[derive(Debug)]
struct OfSwitch<S>(Snapshot<S>);

impl<S: ProgramStatus> Collector for OfSwitch<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(&mut encoder)
    }
}

#[derive(Debug)]
struct OfProgram<S>(S);

impl<S: ProgramStatus> Collector for OfProgram<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(&mut encoder)
    }
}

/// Counters with this prefix before their names.
pub fn named<'a>(
    prefix: &'a str,
    counters: impl IntoIterator<Item = (&'static str, u64)> + 'a,
) -> impl Iterator<Item = (String, u64)> + 'a {
    counters.into_iter().map(move |(name, count)| (format!("{prefix}{name}"), count))
}

/// Writes a counter.
///
/// # Errors
/// If the text cannot be written.
pub fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

/// Writes counters by a label.
///
/// # Errors
/// If the text cannot be written.
pub fn counters(
    encoder: &mut DescriptorEncoder<'_>,
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

/// Writes a gauge.
///
/// # Errors
/// If the text cannot be written.
pub fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

/// Writes gauges, each with its name and help.
///
/// # Errors
/// If the text cannot be written.
pub fn numbers<const N: usize>(encoder: &mut DescriptorEncoder<'_>, all: [(&str, &str, u64); N]) -> fmt::Result {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    all.into_iter().try_for_each(|(name, help, value)| gauge(encoder, name, help, number(value)))
}

/// Writes labels without a value.
///
/// # Errors
/// If the text cannot be written.
pub fn info(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, labels: &impl EncodeLabelSet) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(labels)
}

/// Writes a histogram of times. Bucket b counts those of 2^(b-1) to 2^b µs; those from `last` on are written as `+Inf`.
///
/// # Errors
/// If the text cannot be written.
pub fn histogram(metric: &mut MetricEncoder<'_>, last: usize, us: &[u64], sum: f64) -> fmt::Result {
    let bounded = us.iter().take(last).enumerate();
    let mut buckets: Vec<(f64, u64)> = bounded.map(|(b, &n)| ((1u64 << b) as f64 / 1e6, n)).collect();
    buckets.push((f64::INFINITY, us.iter().skip(last).sum()));
    metric.encode_histogram::<NoLabelSet>(sum, us.iter().sum(), &buckets, None)
}

/// Writes gauges by a label.
///
/// # Errors
/// If the text cannot be written.
pub fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
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

fn encode_one(family: &mut MetricEncoder<'_>, labels: &impl EncodeLabelSet, value: i64) -> fmt::Result {
    family.encode_family(labels)?.encode_gauge(&value)
}
