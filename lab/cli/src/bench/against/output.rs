use super::build::Build;
use super::comparison::{Comparison, Left, Row, Runs};
use anyhow::Result;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::{Envelope, Measure, rounded};
use midflight_terminal::stdout;

/// One JSON object, or a table.
pub(super) fn print(bench: &str, comparison: &Comparison, runs: &Runs, other: &Build, json: bool) -> Result<()> {
    let (commit, rounds) = (runs.other.first().map_or("unknown", Envelope::commit), runs.other.len());
    let mut results =
        vec![Measure::text("against.commit", commit), Measure::count("against.rounds", rounds as u64, "rounds")];
    results.extend(measures(comparison));
    let envelope = Envelope::new(&format!("against.{bench}"), results);
    if json {
        return envelope.print(true);
    }
    let about = format!("other: commit {commit}, {} · {rounds} rounds", other.path().display());
    stdout::print(&format!("{}\n{}{about}\n", table(comparison), envelope.footer()))
}

/// `against.NAME.ratio` and so on.
fn measures(comparison: &Comparison) -> Vec<Measure> {
    let mut measures = Vec::new();
    for row in &comparison.rows {
        let name = |what| format!("against.{}.{what}", row.name);
        measures.extend([
            Measure::quantity(&name("ratio"), row.ratio.value, "x"),
            Measure::quantity(&name("low"), row.ratio.low, "x"),
            Measure::quantity(&name("high"), row.ratio.high, "x"),
            Measure::text(&name("verdict"), row.verdict()),
            Measure::quantity(&name("this"), row.this, row.unit.clone()),
            Measure::quantity(&name("other"), row.other, row.unit.clone()),
        ]);
    }
    for Left { name, why } in &comparison.left {
        measures.push(Measure::text(&format!("against.{name}.not_compared"), why));
    }
    measures
}

fn table(comparison: &Comparison) -> String {
    let mut lines = vec![["", "this", "other", "ratio", "95 % interval", ""].map(str::to_owned)];
    lines.extend(comparison.rows.iter().map(cells));
    let mut text = aligned(&lines, "lrrrrr");
    for Left { name, why } in &comparison.left {
        text += &format!("{name}: {why}\n");
    }
    text
}

fn cells(row: &Row) -> [String; 6] {
    let value = |value: f64| format!("{} {}", rounded(value), row.unit).trim_end().to_owned();
    let interval = format!("{:.3} to {:.3}", row.ratio.low, row.ratio.high);
    let ratio = format!("{:.3}", row.ratio.value);
    [row.name.clone(), value(row.this), value(row.other), ratio, interval, row.verdict().into()]
}
