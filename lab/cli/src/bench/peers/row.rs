//! A row of the table, and its parser.

use anyhow::{Context, Result, ensure};
use midflight_terminal::envelope::Envelope;
use midflight_terminal::units;
use serde::Deserialize;

/// The longest accepted name, version or description.
const TEXT_MAX: usize = 400;

/// Only rows of one kind are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A no-op inside a process, in batches or by a client that does not wait, in Rust or Go.
    Batch,
    /// A call of a Python function, submitted by Python.
    Call,
    Program,
}

impl Kind {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Batch => "no-op",
            Self::Call => "Python call",
            Self::Program => "program",
        }
    }

    /// The first measured one of these is the reference.
    pub(super) fn references(self) -> &'static [&'static str] {
        match self {
            Self::Batch => &["midflight-kernel", "midflight-user"],
            Self::Call => &["midflight-python"],
            Self::Program => &["midflight-exec"],
        }
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The system, possibly with a suffix: `nats-jetstream`.
    pub name: String,
    pub version: String,
    /// How it was used.
    pub interface: String,
    pub tasks_per_s: f64,
    pub rtt_p50_us: f64,
    pub rtt_p99_us: f64,
}

impl Row {
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with("midflight-")
    }

    pub(super) fn kind(&self) -> Kind {
        match self.name.as_str() {
            "midflight-python" | "dask" => Kind::Call,
            "midflight-exec" | "hyperqueue" => Kind::Program,
            name if name.starts_with("ray") => Kind::Call,
            _ => Kind::Batch,
        }
    }

    /// One line after the measurement.
    pub(super) fn summary(&self) -> String {
        let (rate, p50, p99) = self.cells();
        format!("{} {}: {rate} tasks/s, p50 {p50}, p99 {p99}", self.name, self.version)
    }

    /// Throughput, median and 99th percentile.
    pub(super) fn cells(&self) -> (String, String, String) {
        let latency = |us: f64| units::time((us * 1e3).round() as u64);
        (units::thousands(self.tasks_per_s.round() as u64), latency(self.rtt_p50_us), latency(self.rtt_p99_us))
    }

    fn check(&self) -> Result<()> {
        for text in [&self.name, &self.version, &self.interface] {
            let fits = (1..=TEXT_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
            ensure!(fits, "{text:?} is no name, version or description of an interface");
        }
        for number in [self.tasks_per_s, self.rtt_p50_us, self.rtt_p99_us] {
            ensure!(number > 0.0 && number.is_finite(), "{number} was not measured");
        }
        ensure!(self.rtt_p50_us <= self.rtt_p99_us, "p99 {} is below p50 {}", self.rtt_p99_us, self.rtt_p50_us);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn sample(name: &str, tasks_per_s: f64, rtt_p50_us: f64) -> Self {
        let interface = format!("how {name} was used");
        let rtt_p99_us = 2.0 * rtt_p50_us;
        Self { name: name.into(), version: "1.0".into(), interface, tasks_per_s, rtt_p50_us, rtt_p99_us }
    }
}

/// Parses a system's rows, a line of JSON each.
pub(super) fn of_lines(peer: &str, said: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        let what = || format!("`run {peer}` printed what is no row: {line:.200}");
        let row: Row = serde_json::from_str(line).with_context(what)?;
        row.check().with_context(what)?;
        let variant = row.name.strip_prefix(peer).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        ensure!(variant, "`run {peer}` printed a row of {}", row.name);
        ensure!(rows.iter().all(|other| other.name != row.name), "`run {peer}` printed {} twice", row.name);
        rows.push(row);
    }
    ensure!(!rows.is_empty(), "`run {peer}` printed no row");
    Ok(rows)
}

/// The row of one of Midflight's own benchmarks, from its JSON results; their names begin with `prefix`.
pub(super) fn of_envelope(name: &str, prefix: &str, interface: &str, said: &str) -> Result<Row> {
    let envelope = Envelope::parse(said)?;
    let number = |what: &str| {
        let wanted = format!("{prefix}.{what}");
        envelope.number(&wanted).with_context(|| format!("the benchmark printed no {wanted}"))
    };
    let row = Row {
        name: name.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        interface: interface.into(),
        tasks_per_s: number("tasks_per_s")?,
        rtt_p50_us: number("rtt_p50_us")?,
        rtt_p99_us: number("rtt_p99_us")?,
    };
    row.check()?;
    Ok(row)
}
