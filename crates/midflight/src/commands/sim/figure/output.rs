//! What is told of figures: a table on stdout, or one JSON object; plots, and a report.

use crate::envelope::{Envelope, Measure};
use crate::report::chart::standalone;
use crate::report::figures::{HowRun, Shown, page, paper, ratio, value};
use crate::stdout;
use anyhow::{Context, Result};
use midflight_sim::figures::{Paper, Row, Unit, Verdict};
use std::fmt::Write;
use std::path::Path;

const VERDICTS: [Verdict; 3] = [Verdict::Pass, Verdict::Shape, Verdict::Fail];

pub(super) fn write(shown: &[Shown<'_>], how: &HowRun, out: &Path, json: bool) -> Result<()> {
    let envelope = Envelope::new("figure", measures(shown));
    for one in shown {
        for (plot, picture) in one.findings.plots.iter().zip(&one.pictures) {
            write_file(&out.join(format!("{}.{}.svg", one.figure.name, plot.name)), &standalone(picture))?;
        }
    }
    write_file(&out.join("results.json"), &format!("{}\n", serde_json::to_string_pretty(&envelope)?))?;
    let report = out.join("index.html");
    write_file(&report, &page(shown, how, &envelope))?;
    if json {
        envelope.print(true)?;
        eprintln!("report: {}", report.display());
        return Ok(());
    }
    let tables: String = shown.iter().map(table).collect();
    stdout::print(&format!("{tables}report: {}\n{}", report.display(), envelope.footer()))
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn measures(shown: &[Shown<'_>]) -> Vec<Measure> {
    let mut measures = Vec::new();
    for one in shown {
        let figure = one.figure.name;
        for row in &one.findings.rows {
            push_row(&mut measures, &format!("{figure}.{}", row.name), row);
        }
        for verdict in VERDICTS {
            let count = one.count(verdict) as u64;
            measures.push(Measure::count(&format!("{figure}.{}", verdict.name()), count, "rows"));
        }
    }
    measures
}

fn push_row(measures: &mut Vec<Measure>, prefix: &str, row: &Row) {
    let (by, unit) = match row.unit {
        Unit::Time => (1e-3, "us"),
        Unit::Factor => (1.0, "x"),
        Unit::Share => (100.0, "%"),
        Unit::PerSecond => (1.0, "1/s"),
        Unit::Count => (1.0, "tasks"),
    };
    let name = |what| format!("{prefix}.{what}");
    let quantity = |what, number: f64| Measure::quantity(&name(what), number * by, unit);
    measures.push(match row.paper {
        Paper::Is(number) | Paper::AtLeast(number) | Paper::AtMost(number) => quantity("paper", number),
        Paper::Says(words) => Measure::text(&name("paper"), words),
    });
    measures.push(quantity("ours", row.ours.map_or(f64::NAN, |ours| ours.mean)));
    measures.push(quantity("ours_95", row.ours.and_then(|ours| ours.half_width).unwrap_or(f64::NAN)));
    measures.push(Measure::quantity(&name("ratio"), row.ratio().unwrap_or(f64::NAN), "x"));
    measures.push(Measure::text(&name("verdict"), row.verdict().name()));
}

/// A figure's rows for a terminal.
fn table(shown: &Shown<'_>) -> String {
    let mut text = format!("{}: {}\n", shown.figure.name, shown.figure.title);
    let cells: Vec<[String; 5]> = shown.findings.rows.iter().map(cells).collect();
    let width = |column: usize| cells.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    for [verdict, ours, ratio, paper, what] in &cells {
        let [w0, w1, w2, w3, _] = widths;
        // A String takes everything that is written.
        let _ = writeln!(text, "  {verdict:w0$}  {ours:>w1$}  {ratio:>w2$}  {paper:w3$}  {what}");
    }
    for note in &shown.findings.notes {
        let _ = writeln!(text, "  {note}");
    }
    text + "\n"
}

fn cells(row: &Row) -> [String; 5] {
    let ours = row.ours.map_or_else(|| "nothing".into(), |ours| value(row.unit, ours.mean));
    let ratio = ratio(row);
    let times = if ratio.is_empty() { ratio } else { format!("{ratio} of") };
    [row.verdict().name().into(), ours, times, paper(row), row.what.into()]
}
