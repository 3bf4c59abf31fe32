//! Are results of earlier sources still valid? Even a changed comment changes the sources' hash. Cells are deterministic, so a sample of
//! each kind runs again; if its results are the same, the others stay valid.

use crate::cells::{Equal, Job, Kept, Pool, Store};
use anyhow::{Context, Result};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::stdout;
use midflight_terminal::usage;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Cells of each scheme and load that run again.
const OF_A_KIND: usize = 2;
/// Longer cells run again only without another of their kind.
const LONG_S: f64 = 60.0;

/// Fractions that differ by at most this, relatively, count as equal.
const RELATIVE_TOLERANCE: f64 = 1e-12;

/// Reports how many results are of other sources.
pub(super) fn warn(store: &Store) -> Result<()> {
    let outdated = store.outdated()?.len();
    if outdated > 0 {
        eprintln!(
            "{outdated} kept results are of other sources, and will be deleted; `--recheck --cells {}` finds out first whether they are \
             still valid",
            store.directory().display()
        );
    }
    Ok(())
}

pub(super) fn run(cells: &Path, traces: Option<&Path>, pool: &Pool, json: bool) -> Result<ExitCode> {
    if !cells.is_dir() {
        return Err(usage::error(format!("--cells {}: there is no such folder with kept results", cells.display())));
    }
    let mut store = Store::open(cells, traces)?;
    let again = Store::open(&cells.join("again"), traces)?;
    let outdated = store.outdated()?;
    if traces.is_none() && outdated.iter().any(needs_trace) {
        return Err(usage::error(
            "some of these results are of real traces: give their folder by --traces DIR or MIDFLIGHT_TRACES",
        ));
    }
    let mut report = Report::default();
    for ((old, new), outdated) in by_versions(outdated) {
        let sample = sample(&outdated);
        let jobs: Vec<Job> = sample.iter().map(|kept| job(kept)).collect();
        let results = pool.run(&jobs, &again)?;
        let differ: Vec<&str> = sample
            .iter()
            .zip(&results)
            .zip(&jobs)
            .filter(|((kept, result), _)| !same(&value(kept), &value(result)))
            .map(|(_, job)| job.name.as_str())
            .collect();
        report.add(&old, &new, outdated.len(), sample.len(), &differ);
        if differ.is_empty() {
            store.hold_equal(Equal { old, new, cells: sample.len(), of: outdated.len() })?;
        }
    }
    let folder = again.directory();
    std::fs::remove_dir_all(folder).with_context(|| format!("cannot delete {}", folder.display()))?;
    report.print(json)
}

/// Whether a cell reads a trace that `--traces` finds: one named without a folder.
fn needs_trace(kept: &Kept) -> bool {
    let cell = serde_json::to_value(&kept.cell).unwrap_or_default();
    cell.pointer("/load/file").and_then(Value::as_str).is_some_and(|file| !file.contains('/'))
}

/// Results by the version that computed them, and the current version of the same sources.
fn by_versions(outdated: Vec<Kept>) -> BTreeMap<(String, String), Vec<Kept>> {
    let mut groups: BTreeMap<_, Vec<Kept>> = BTreeMap::new();
    for kept in outdated {
        groups.entry((kept.sources().to_owned(), kept.cell.version().to_owned())).or_default().push(kept);
    }
    groups
}

/// A sample of each scheme and load: short cells, else the shortest. Sorted by the hash of the cells, which is independent of the results.
fn sample(outdated: &[Kept]) -> Vec<&Kept> {
    let mut kinds: BTreeMap<String, Vec<&Kept>> = BTreeMap::new();
    for kept in outdated {
        kinds.entry(kind(kept)).or_default().push(kept);
    }
    kinds.into_values().flat_map(of_a_kind).collect()
}

fn of_a_kind(kept: Vec<&Kept>) -> Vec<&Kept> {
    let short: Vec<&Kept> = kept.iter().copied().filter(|kept| kept.cost.wall_s <= LONG_S).take(OF_A_KIND).collect();
    let shortest = kept.into_iter().min_by(|a, b| a.cost.wall_s.total_cmp(&b.cost.wall_s));
    if short.is_empty() { shortest.into_iter().collect() } else { short }
}

/// Scheme, placement or system, and kind of load.
fn kind(kept: &Kept) -> String {
    let cell = serde_json::to_value(&kept.cell).unwrap_or_default();
    let texts = ["/scheme/name", "/scheme/program", "/placement", "/system", "/load/name", "/load/file"];
    let text = |path: &&str| cell.pointer(path).and_then(Value::as_str).map(str::to_owned);
    texts.iter().filter_map(text).collect::<Vec<_>>().join(" ")
}

/// Without the cost, which always differs.
fn value(kept: &Kept) -> Value {
    serde_json::to_value(&kept.result).unwrap_or_default()
}

/// Earlier releases changed the last digits when they parsed and wrote JSON.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= RELATIVE_TOLERANCE * a.abs().max(b.abs())
        }
        (a, b) => a == b,
    }
}

fn job(kept: &Kept) -> Job {
    Job { name: format!("{} seed {}", kind(kept), kept.cell.seed()), cell: kept.cell.clone() }
}

#[derive(Debug, Default)]
struct Report {
    text: String,
    cells: usize,
    differ: usize,
}

impl Report {
    fn add(&mut self, old: &str, new: &str, of: usize, cells: usize, differ: &[&str]) {
        let verdict = match differ {
            [] => "all are equal: the others stay valid".to_owned(),
            names => format!("these differ, and nothing of them is valid: {}", names.join(", ")),
        };
        self.text += &format!("{old} by {new}: {cells} of {of} cells were run again; {verdict}\n");
        self.cells += cells;
        self.differ += differ.len();
    }

    fn print(&self, json: bool) -> Result<ExitCode> {
        let count =
            |name: &str, number: usize| Measure::count(&format!("figures.rechecked.{name}"), number as u64, "cells");
        let measures = vec![count("cells", self.cells), count("equal", self.cells - self.differ)];
        let envelope = Envelope::new("figure", measures);
        if json {
            envelope.print(true)?;
        } else if self.cells == 0 {
            stdout::print("all kept results are of today's sources, or known to be equal\n")?;
        } else {
            stdout::print(&format!("{}{}", self.text, envelope.footer()))?;
        }
        Ok(if self.differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_last_digits_of_fractions_may_differ() {
        let result = json!({"ended": 3, "delay": {"mean_ms": 3.924_045_269_753_345, "quantiles_ms": [1.5, 2.5]}});
        let change = |path: &str, to: Value| {
            let mut other = result.clone();
            *other.pointer_mut(path).unwrap() = to;
            same(&result, &other)
        };
        assert!(change("/delay/mean_ms", json!(3.924_045_269_753_344_6)));
        assert!(!change("/delay/mean_ms", json!(3.924_045_27)) && !change("/delay/mean_ms", json!(null)));
        assert!(!change("/ended", json!(4)) && !change("/ended", json!(3.0)));
        assert!(!change("/delay/quantiles_ms", json!([1.5])) && !change("/delay/quantiles_ms/1", json!(2.6)));
        assert!(!change("/delay", json!({"mean_ms": 3.924_045_269_753_345})));
    }
}
