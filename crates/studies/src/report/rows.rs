//! The rows of a figure, simulated or live: as numbers with names, and as a table for a terminal.

use super::figures::{paper, ratio, value};
use midflight_papers::findings::{Findings, Paper, Row, Unit, Verdict};
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::Measure;
use std::fmt::Write;

const VERDICTS: [Verdict; 3] = [Verdict::Pass, Verdict::Shape, Verdict::Fail];

/// The paper's value, ours, the ratio and the verdict of a row, in this order: `PREFIX.paper` and so on.
pub(crate) fn measures(prefix: &str, row: &Row) -> [Measure; 4] {
    let name = |what| format!("{prefix}.{what}");
    let paper = match row.paper {
        Paper::Is(number) | Paper::AtLeast(number) | Paper::AtMost(number) => {
            quantity(&name("paper"), row.unit, number)
        }
        Paper::Says(words) => Measure::text(&name("paper"), words),
    };
    let ours = row.ours.map_or(f64::NAN, |ours| ours.mean);
    [
        paper,
        quantity(&name("ours"), row.unit, ours),
        Measure::quantity(&name("ratio"), row.ratio().unwrap_or(f64::NAN), "x"),
        Measure::text(&name("verdict"), row.verdict().name()),
    ]
}

/// A value of a row, in the unit of results.
pub(crate) fn quantity(name: &str, unit: Unit, value: f64) -> Measure {
    let (by, unit) = match unit {
        Unit::Time => (1e-3, "us"),
        Unit::Factor => (1.0, "x"),
        Unit::Share => (100.0, "%"),
        Unit::PerSecond => (1.0, "1/s"),
        Unit::Count => (1.0, "tasks"),
    };
    Measure::quantity(name, value * by, unit)
}

/// How many rows have each verdict: `FIGURE.pass` and so on.
pub(crate) fn counts(figure: &str, findings: &Findings) -> [Measure; 3] {
    VERDICTS.map(|verdict| {
        let count = findings.rows.iter().filter(|row| row.verdict() == verdict).count();
        Measure::count(&format!("{figure}.{}", verdict.name()), count as u64, "rows")
    })
}

/// The rows and notes for a terminal.
pub(crate) fn table(name: &str, title: &str, findings: &Findings) -> String {
    let mut text = format!("{name}: {title}\n");
    let cells: Vec<[String; 5]> = findings.rows.iter().map(cells).collect();
    let notes = findings.notes.iter().map(|note| note.as_str());
    for line in aligned(&cells, "lrrll").lines().chain(notes) {
        // A String takes everything that is written.
        let _ = writeln!(text, "  {line}");
    }
    text + "\n"
}

fn cells(row: &Row) -> [String; 5] {
    let ours = row.ours.map_or_else(|| "nothing".into(), |ours| value(row.unit, ours.mean));
    let ratio = ratio(row);
    let times = if ratio.is_empty() { ratio } else { format!("{ratio} of") };
    [row.verdict().name().into(), ours, times, paper(row), row.what.clone()]
}
