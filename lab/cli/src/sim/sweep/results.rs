//! Results of a sweep: a line per cell, as CSV and as JSON; means over the seeds on stdout.

use super::spec::{Point, Spec};
use crate::cells::Kept;
use anyhow::Result;
use midflight_papers::cell::CellResult;
use midflight_papers::experiment::Outcome;
use midflight_papers::findings::Estimate;
use midflight_papers::{flair, netrs};
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::files;
use midflight_terminal::stdout;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A number of a result and its name in files.
type Column<R> = (&'static str, fn(&R) -> f64);

const TASKS: [Column<CellResult>; 10] = [
    ("submitted", |result| result.submitted as f64),
    ("started", |result| result.started as f64),
    ("ended", |result| result.ended as f64),
    ("delay_mean_us", |result| result.delay.mean_ms * 1e3),
    ("delay_p50_us", |result| result.delay.at(0.5) * 1e3),
    ("delay_p95_us", |result| result.delay.at(0.95) * 1e3),
    ("delay_p99_us", |result| result.delay.at(0.99) * 1e3),
    ("started_per_s", |result| result.started_per_s),
    ("last_end_ms", |result| result.last_end_ms),
    ("events", |result| result.events as f64),
];
const CACHE: [Column<netrs::CellResult>; 8] = [
    ("latency_mean_ms", |result| result.latency.mean_ms),
    ("latency_p50_ms", |result| result.latency.at(0.5)),
    ("latency_p95_ms", |result| result.latency.at(0.95)),
    ("latency_p99_ms", |result| result.latency.at(0.99)),
    ("rsnodes", |result| f64::from(result.rsnodes.all())),
    ("extra_hops", |result| result.extra_hops),
    ("waited", |result| result.waited as f64),
    ("events", |result| result.events as f64),
];
const STORE: [Column<flair::CellResult>; 10] = [
    ("per_second", |result| result.per_second),
    ("read_mean_us", |result| result.reads.mean_ms * 1e3),
    ("read_p50_us", |result| result.reads.at(0.5) * 1e3),
    ("read_p99_us", |result| result.reads.at(0.99) * 1e3),
    ("write_mean_us", |result| result.writes.mean_ms * 1e3),
    ("by_leader", |result| result.shares.by_leader),
    ("unstable", |result| result.shares.unstable),
    ("redirected", |result| result.shares.redirected),
    ("failed", |result| result.failed as f64),
    ("events", |result| result.events as f64),
];
/// Columns on stdout, with their units; for tasks, the cache and the store.
const SHOWN: [[(&str, &str); 4]; 3] = [
    [("delay_p50_us", "us"), ("delay_p95_us", "us"), ("delay_p99_us", "us"), ("started_per_s", "1/s")],
    [("latency_mean_ms", "ms"), ("latency_p95_ms", "ms"), ("latency_p99_ms", "ms"), ("rsnodes", "operators")],
    [("per_second", "1/s"), ("read_mean_us", "us"), ("read_p99_us", "us"), ("by_leader", "share")],
];

fn numbers(outcome: &Outcome) -> Vec<(&'static str, f64)> {
    match outcome {
        Outcome::Tasks(result) => TASKS.iter().map(|(name, of)| (*name, of(result))).collect(),
        Outcome::Cache(result) => CACHE.iter().map(|(name, of)| (*name, of(result))).collect(),
        Outcome::Store(result) => STORE.iter().map(|(name, of)| (*name, of(result))).collect(),
    }
}

/// All cells of a sweep are of one program.
fn shown(kept: &[Kept]) -> [(&'static str, &'static str); 4] {
    SHOWN[match kept.first().map(|one| &one.result) {
        Some(Outcome::Tasks(_)) | None => 0,
        Some(Outcome::Cache(_)) => 1,
        Some(Outcome::Store(_)) => 2,
    }]
}

/// In `kept`, a point's seeds are adjacent.
pub(super) fn write(spec: &Spec, points: &[Point], kept: &[Kept], out: &Path, json: bool) -> Result<()> {
    let seeds = usize::try_from(spec.seeds)?;
    let of_points: Vec<(&Point, &[Kept])> = points.iter().zip(kept.chunks(seeds)).collect();
    files::write(&out.join("results.csv"), &csv(&of_points))?;
    files::write(&out.join("results.jsonl"), &lines(&of_points)?)?;
    let envelope = Envelope::new("sweep", measures(&of_points, kept.len() as u64));
    if json {
        return envelope.print(true);
    }
    let table = table(&of_points);
    stdout::print(&format!("{table}\nresults: {}\n{}", out.join("results.csv").display(), envelope.footer()))
}

fn csv(points: &[(&Point, &[Kept])]) -> String {
    let parameters = points.first().map_or(&[][..], |(point, _)| &point.parameters);
    let names = parameters.iter().map(|(path, _)| path.as_str()).chain(["seed"]);
    let first = points.first().and_then(|(_, kept)| kept.first());
    let columns = first.map_or_else(Vec::new, |one| numbers(&one.result));
    let mut text = names.chain(columns.iter().map(|(name, _)| *name)).collect::<Vec<_>>().join(",") + "\n";
    for (point, kept) in points {
        for one in *kept {
            let values = point.parameters.iter().map(|(_, value)| field(value));
            let numbers = numbers(&one.result).into_iter().map(|(_, number)| plain(number));
            text += &values.chain([one.cell.seed().to_string()]).chain(numbers).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
    }
    text
}

/// Quoted as in RFC 4180.
fn field(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Up to three decimals; empty for NaN.
fn plain(number: f64) -> String {
    if number.is_finite() { ((number * 1e3).round() / 1e3).to_string() } else { String::new() }
}

fn lines(points: &[(&Point, &[Kept])]) -> Result<String> {
    let mut text = String::new();
    for (point, kept) in points {
        let parameters: Map<String, Value> = point.parameters.iter().cloned().collect();
        for one in *kept {
            let line = json!({"parameters": parameters, "seed": one.cell.seed(), "result": one.result});
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
    }
    Ok(text)
}

fn mean(kept: &[Kept], column: &str) -> f64 {
    let number = |one: &Kept| numbers(&one.result).into_iter().find(|(name, _)| *name == column);
    let values: Vec<f64> = kept.iter().filter_map(number).map(|(_, number)| number).collect();
    Estimate::of(&values).map_or(f64::NAN, |estimate| estimate.mean)
}

fn measures(points: &[(&Point, &[Kept])], cells: u64) -> Vec<Measure> {
    let mut measures = vec![Measure::count("sweep.cells", cells, "cells")];
    for (index, (point, kept)) in points.iter().enumerate() {
        measures.push(Measure::text(&format!("sweep.{index}.parameters"), &point.name()));
        for (column, unit) in shown(kept) {
            measures.push(Measure::quantity(&format!("sweep.{index}.{column}"), mean(kept, column), unit));
        }
    }
    measures
}

fn table(points: &[(&Point, &[Kept])]) -> String {
    let shown = points.first().map_or(SHOWN[0], |(_, kept)| shown(kept));
    let [first, second, third, fourth] = shown.map(|(column, _)| column.to_owned());
    let mut lines = vec![[String::new(), first, second, third, fourth]];
    lines.extend(points.iter().map(|(point, kept)| {
        let [first, second, third, fourth] = shown.map(|(column, _)| format!("{:.1}", mean(kept, column)));
        [point.name(), first, second, third, fourth]
    }));
    aligned(&lines, "lrrrr")
}
