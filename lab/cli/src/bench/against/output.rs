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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ratio::Ratio;

    fn comparison() -> Comparison {
        let row = |name: &str, unit: &str, (this, other): (f64, f64), (value, low, high)| {
            let ratio = Ratio { value, low, high };
            Row { name: name.into(), unit: unit.into(), this, other, ratio }
        };
        let rows = vec![
            row("loop.rtt_p50_us", "us", (32.125, 25.7), (1.25, 1.2, 1.302)),
            row("loop.tasks_per_s", "tasks/s", (1_193_000.0, 1_000_000.0), (1.193, 1.1, 1.294)),
            row("loop.ratio", "", (1.5, 1.5), (1.0, 0.98, 1.02)),
        ];
        Comparison { rows, left: vec![Left { name: "loop.new".into(), why: "only in this".into() }] }
    }

    #[test]
    fn the_table_has_a_line_for_each_result_and_names_what_is_left() {
        let expected = "
                             this            other  ratio   95 % interval
loop.rtt_p50_us         32.125 us          25.7 us  1.250  1.200 to 1.302  slower
loop.tasks_per_s  1193000 tasks/s  1000000 tasks/s  1.193  1.100 to 1.294  faster
loop.ratio                    1.5              1.5  1.000  0.980 to 1.020    same
loop.new: only in this
";
        assert_eq!(table(&comparison()), expected[1..]);
    }

    #[test]
    fn each_result_has_a_ratio_and_its_interval_under_its_own_name() {
        let measures = measures(&comparison());
        let of = |name: &str| measures.iter().find(|measure| measure.name == name).unwrap();
        assert_eq!(of("against.loop.rtt_p50_us.ratio").value, 1.25);
        assert_eq!(of("against.loop.rtt_p50_us.low").value, 1.2);
        assert_eq!(of("against.loop.rtt_p50_us.high").value, 1.302);
        assert_eq!(of("against.loop.rtt_p50_us.verdict").value, "slower");
        assert_eq!(
            of("against.loop.rtt_p50_us.other"),
            &Measure::quantity("against.loop.rtt_p50_us.other", 25.7, "us")
        );
        assert_eq!(of("against.loop.new.not_compared").value, "only in this");
    }
}
