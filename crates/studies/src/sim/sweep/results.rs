//! The results of a sweep: a line for each cell, as CSV and as JSON; means over the seeds on stdout.

use super::spec::{Point, Spec};
use crate::cells::Kept;
use anyhow::Result;
use midflight_papers::cell::CellResult;
use midflight_papers::findings::Estimate;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::files;
use midflight_terminal::stdout;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A number of a result, its name in files and its unit.
type Column = (&'static str, fn(&CellResult) -> f64);

const COLUMNS: [Column; 10] = [
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
/// Those on stdout, with their units.
const SHOWN: [(&str, &str); 4] =
    [("delay_p50_us", "us"), ("delay_p95_us", "us"), ("delay_p99_us", "us"), ("started_per_s", "1/s")];

/// `kept` has each point's seeds side by side.
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
    let mut text = names.chain(COLUMNS.map(|(name, _)| name)).collect::<Vec<_>>().join(",") + "\n";
    for (point, kept) in points {
        for one in *kept {
            let values = point.parameters.iter().map(|(_, value)| field(value));
            let numbers = COLUMNS.iter().map(|(_, number)| plain(number(&one.result)));
            text += &values.chain([one.cell.seed.to_string()]).chain(numbers).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
    }
    text
}

/// A parameter as a field: RFC 4180's quotes where it has any of its own, or commas.
fn field(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Three decimals, none where there are none; nothing for what is not a number.
fn plain(number: f64) -> String {
    if number.is_finite() { ((number * 1e3).round() / 1e3).to_string() } else { String::new() }
}

fn lines(points: &[(&Point, &[Kept])]) -> Result<String> {
    let mut text = String::new();
    for (point, kept) in points {
        let parameters: Map<String, Value> = point.parameters.iter().cloned().collect();
        for one in *kept {
            let line = json!({"parameters": parameters, "seed": one.cell.seed, "result": one.result});
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
    }
    Ok(text)
}

fn mean(kept: &[Kept], column: &str) -> f64 {
    let number = COLUMNS.iter().find(|(name, _)| *name == column).map(|(_, number)| number);
    let values: Vec<f64> = kept.iter().filter_map(|one| number.map(|number| number(&one.result))).collect();
    Estimate::of(&values).map_or(f64::NAN, |estimate| estimate.mean)
}

fn measures(points: &[(&Point, &[Kept])], cells: u64) -> Vec<Measure> {
    let mut measures = vec![Measure::count("sweep.cells", cells, "cells")];
    for (index, (point, kept)) in points.iter().enumerate() {
        measures.push(Measure::text(&format!("sweep.{index}.parameters"), &point.name()));
        for (column, unit) in SHOWN {
            measures.push(Measure::quantity(&format!("sweep.{index}.{column}"), mean(kept, column), unit));
        }
    }
    measures
}

fn table(points: &[(&Point, &[Kept])]) -> String {
    let mut lines = vec![["", SHOWN[0].0, SHOWN[1].0, SHOWN[2].0, SHOWN[3].0].map(str::to_owned)];
    lines.extend(points.iter().map(|(point, kept)| {
        let [p50, p95, p99, rate] = SHOWN.map(|(column, _)| format!("{:.1}", mean(kept, column)));
        [point.name(), p50, p95, p99, rate]
    }));
    aligned(&lines, "lrrrr")
}
