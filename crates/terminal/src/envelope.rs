//! The JSON object that every measuring command prints with `--json`: the results, the machine and the commit.

use crate::columns::aligned;
use crate::machine::cores;
use crate::stdout;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// One JSON object on stdout; progress and everything else goes to stderr.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Envelope {
    bench: String,
    machine: Machine,
    commit: Cow<'static, str>,
    results: Vec<Measure>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Machine {
    cpu: String,
    cores: u32,
    kernel: String,
}

/// One number; the name is dotted and stable, a count is an integer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// For example `loop.rtt_p50_us`.
    pub name: String,
    /// Integer or decimal.
    pub value: Value,
    /// For example `us`.
    pub unit: Cow<'static, str>,
}

impl Measure {
    /// A measured quantity, rounded to three decimals; null if it is not a number.
    pub fn quantity(name: &str, value: f64, unit: impl Into<Cow<'static, str>>) -> Self {
        let value = Number::from_f64(rounded(value)).map_or(Value::Null, Value::Number);
        Self { name: name.into(), value, unit: unit.into() }
    }

    /// A text, such as a version.
    pub fn text(name: &str, text: &str) -> Self {
        Self { name: name.into(), value: text.into(), unit: "".into() }
    }

    /// A count, as an integer.
    pub fn count(name: &str, value: u64, unit: &'static str) -> Self {
        Self { name: name.into(), value: value.into(), unit: unit.into() }
    }
}

impl Envelope {
    /// The results of `bench` on this machine.
    pub fn new(bench: &str, results: Vec<Measure>) -> Self {
        Self { bench: bench.into(), machine: Machine::this(), commit: commit().into(), results }
    }

    /// Parses what a benchmark in another process printed with `--json`.
    pub fn parse(printed: &str) -> Result<Self> {
        serde_json::from_str(printed).context("the benchmark printed no results")
    }

    /// The commit of the build that measured.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// All results.
    pub fn results(&self) -> &[Measure] {
        &self.results
    }

    /// Appends results.
    pub fn extend(&mut self, results: impl IntoIterator<Item = Measure>) {
        self.results.extend(results);
    }

    /// The number of this name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.results.iter().find(|result| result.name == name)?.value.as_f64()
    }

    /// Prints the results to stdout, as one JSON object or as text.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            return stdout::print(&format!("{}\n", serde_json::to_string(self)?));
        }
        let line = |result: &Measure| [result.name.clone(), format!("{} {}", result.value, result.unit)];
        let lines: Vec<_> = self.results.iter().map(line).collect();
        let text = aligned(&lines, "ll");
        stdout::print(&format!("{text}\n{}", self.footer()))
    }

    /// One line: the benchmark, the machine and the commit.
    pub fn footer(&self) -> String {
        let Machine { cpu, cores, kernel } = &self.machine;
        format!("{} · {cores} cores of {cpu} · {kernel} · commit {}\n", self.bench, self.commit)
    }
}

/// Rounds to three decimals.
pub fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The commit of this build, "unknown" outside a repository.
pub fn commit() -> &'static str {
    env!("MIDFLIGHT_COMMIT")
}

impl Machine {
    fn this() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|line| line.starts_with("model name") || line.starts_with("CPU part"));
        let cpu = model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim());
        let uname = rustix::system::uname();
        Self {
            cpu: cpu.into(),
            cores: cores(),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_the_keys_of_the_house_rule() {
        let results =
            vec![Measure::quantity("loop.rtt_p50_us", 12.34567, "us"), Measure::count("replay.lost", 0, "tasks")];
        let json = serde_json::to_value(Envelope::new("loop", results)).unwrap();
        assert_eq!(json["bench"], "loop");
        assert_eq!(json["results"][0]["value"], 12.346);
        assert_eq!(json["results"][1], serde_json::json!({"name": "replay.lost", "value": 0, "unit": "tasks"}));
        for key in ["cpu", "cores", "kernel"] {
            assert!(!json["machine"][key].is_null(), "{key}");
        }
        assert!(json["commit"].as_str().is_some_and(|commit| !commit.is_empty()));
    }

    #[test]
    fn what_one_build_prints_another_reads() {
        let results = vec![Measure::quantity("loop.rtt_p50_us", 12.34567, "us"), Measure::text("a.version", "1.0")];
        let printed = serde_json::to_string(&Envelope::new("loop", results.clone())).unwrap();
        let read = Envelope::parse(&printed).unwrap();
        assert_eq!(read.commit, commit());
        assert_eq!(read.results, results);
        assert_eq!((read.number("loop.rtt_p50_us"), read.number("a.version")), (Some(12.346), None));
        assert!(Envelope::parse("error: no").is_err());
    }

    #[test]
    fn what_is_not_a_number_is_null() {
        assert_eq!(Measure::quantity("a.b", f64::NAN, "us").value, Value::Null);
    }
}
