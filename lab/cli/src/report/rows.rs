//! Rows of a figure, as named numbers or as a table.

use super::figures::{paper, ratio, told, value};
use midflight_papers::findings::{Class, Findings, Paper, Row, Unit, Verdict};
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::Measure;
use std::fmt::Write;

/// `PREFIX.paper` and so on: the paper's value, ours, half the width of its interval, the ratio, class and verdict.
pub(crate) fn measures(prefix: &str, row: &Row) -> [Measure; 6] {
    let name = |what| format!("{prefix}.{what}");
    let paper = match row.paper {
        Paper::Is(number) | Paper::AtLeast(number) | Paper::AtMost(number) => {
            quantity(&name("paper"), row.unit, number)
        }
        Paper::Says(words, _) => Measure::text(&name("paper"), words),
    };
    let ours = row.ours.map_or(f64::NAN, |ours| ours.mean);
    let half_width = row.ours.and_then(|ours| ours.half_width).unwrap_or(f64::NAN);
    [
        paper,
        quantity(&name("ours"), row.unit, ours),
        quantity(&name("ours_95"), row.unit, half_width),
        Measure::quantity(&name("ratio"), row.ratio().unwrap_or(f64::NAN), "x"),
        Measure::text(&name("class"), row.class.name()),
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

/// Number of rows with each verdict: `FIGURE.pass` and so on.
pub(crate) fn counts(figure: &str, findings: &Findings) -> [Measure; 4] {
    Verdict::ALL.map(|verdict| {
        let count = findings.rows.iter().filter(|row| row.verdict() == verdict).count();
        Measure::count(&format!("{figure}.{}", verdict.name()), count as u64, "rows")
    })
}

/// `PREFIX.predicted.total`, `.numbers.total`, `.numbers.pass`, `.statements.pass` and so on.
pub(crate) fn by_class(prefix: &str, rows: &[&Row]) -> Vec<Measure> {
    let count = |name: String, number: usize| Measure::count(&name, number as u64, "rows");
    let of = |class: Class| {
        let rows: Vec<&&Row> = rows.iter().filter(|row| row.class.name() == class.name()).collect();
        let name = |what: &str| format!("{prefix}.{}.{what}", class.name());
        let total = count(name("total"), rows.len());
        let verdicts = [("numbers", false), ("statements", true)].into_iter().flat_map(|(kind, is_statement)| {
            let rows = rows.iter().filter(move |row| row.is_statement() == is_statement);
            let total = count(name(&format!("{kind}.total")), rows.clone().count());
            let verdicts = Verdict::ALL.map(|verdict| {
                let of_verdict = rows.clone().filter(|row| row.verdict() == verdict).count();
                count(name(&format!("{kind}.{}", verdict.name())), of_verdict)
            });
            [total].into_iter().chain(verdicts)
        });
        [total].into_iter().chain(verdicts).collect::<Vec<_>>()
    };
    Class::ALL.into_iter().flat_map(of).collect()
}

pub(crate) fn table(name: &str, title: &str, findings: &Findings) -> String {
    let mut text = format!("{name}: {title}\n");
    let cells: Vec<[String; 7]> = findings.rows.iter().map(cells).collect();
    let notes = findings.notes.iter().map(|note| note.as_str());
    for line in aligned(&cells, "llrlrll").lines().chain(notes) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {line}");
    }
    text + "\n"
}

fn cells(row: &Row) -> [String; 7] {
    let ours = row.ours.map_or_else(|| "nothing".into(), |ours| value(row.unit, ours.mean));
    let ratio = ratio(row);
    let times = if ratio.is_empty() { ratio } else { format!("{ratio} of") };
    let off = row
        .ours
        .and_then(|ours| ours.half_width)
        .map_or_else(String::new, |half| format!("± {}", value(row.unit, half)));
    let what = row.column.map_or_else(|| row.what.clone(), |column| format!("{column}: {}", row.what));
    [told(row).into(), row.class.name().into(), ours, off, times, paper(row), what]
}
