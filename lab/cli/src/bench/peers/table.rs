//! Prints the table, the ratios, and how each system was used.

use super::row::Row;
use midflight_terminal::columns::aligned;
use std::fmt::Write;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Absent {
    pub name: String,
    /// It failed; otherwise it was not available here.
    pub failed: bool,
    /// On one line.
    pub reason: String,
}

impl Absent {
    pub(super) fn line(&self) -> String {
        let word = if self.failed { "FAILED" } else { "SKIPPED" };
        format!("{word}: {}: {}", self.name, self.reason)
    }
}

/// Advantage of Midflight's row of the same kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratios<'a> {
    pub ours: &'a str,
    pub throughput: f64,
    pub latency: f64,
}

impl<'a> Ratios<'a> {
    /// `None` for Midflight's own rows, or without one of this kind.
    pub(super) fn of(row: &Row, rows: &'a [Row]) -> Option<Self> {
        let named = |name: &&str| rows.iter().find(|row| row.name == **name);
        let ours = row.kind().references().iter().find_map(named)?;
        let (throughput, latency) = (ours.tasks_per_s / row.tasks_per_s, row.rtt_p50_us / ours.rtt_p50_us);
        (!row.is_ours()).then_some(Self { ours: &ours.name, throughput, latency })
    }
}

/// The table, the absent systems, and how each row was measured.
pub(super) fn render(rows: &[Row], absent: &[Absent]) -> String {
    let mut text = if rows.is_empty() { String::new() } else { aligned(&cells(rows), "lllrrrrr") };
    if rows.iter().any(|row| Ratios::of(row, rows).is_some()) {
        text.push_str("\n× throughput, × latency: how many times better Midflight is with tasks of the same kind.\n");
    }
    if !absent.is_empty() {
        text.push('\n');
    }
    for absent in absent {
        let _ = writeln!(text, "{}", absent.line());
    }
    if !rows.is_empty() {
        text.push('\n');
    }
    for row in rows {
        let _ = writeln!(text, "{}: {}", row.name, row.interface);
    }
    text
}

type Line = [String; 8];

fn cells(rows: &[Row]) -> Vec<Line> {
    let head = ["", "task", "version", "tasks/s", "latency p50", "p99", "× throughput", "× latency"].map(str::to_owned);
    [head].into_iter().chain(rows.iter().map(|row| line(row, rows))).collect()
}

fn line(row: &Row, rows: &[Row]) -> Line {
    let (rate, p50, p99) = row.cells();
    let (throughput, latency) =
        Ratios::of(row, rows).map_or_else(Default::default, |ratios| (times(ratios.throughput), times(ratios.latency)));
    [row.name.clone(), row.kind().label().into(), row.version.clone(), rate, p50, p99, throughput, latency]
}

/// With two significant digits.
fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            Row::sample("midflight-kernel", 500_000.0, 30.0),
            Row::sample("midflight-user", 300_000.0, 60.0),
            Row::sample("nats", 600_000.0, 90.0),
            Row::sample("midflight-python", 25_000.0, 120.0),
            Row::sample("ray", 1_250.0, 1_200.0),
        ]
    }

    #[test]
    fn only_tasks_of_one_kind_are_compared() {
        let rows = rows();
        let of = |name: &str, rows: &[Row]| {
            let row = rows.iter().find(|row| row.name == name)?;
            Ratios::of(row, rows).map(|ratios| (ratios.ours.to_owned(), ratios.throughput, ratios.latency))
        };
        assert_eq!(of("ray", &rows), Some(("midflight-python".into(), 20.0, 10.0)));
        let (ours, throughput, latency) = of("nats", &rows).unwrap();
        assert!(ours == "midflight-kernel" && throughput < 1.0 && latency == 3.0, "a peer may be better: {throughput}");
        assert_eq!(of("midflight-user", &rows), None, "we are no peer of ours");
        assert_eq!(of("nats", &rows[1..]), Some(("midflight-user".into(), 0.5, 1.5)), "without the kernel engine");
        assert_eq!(of("ray", &rows[4..]), None, "nothing of its kind");
    }

    #[test]
    fn without_midflight_nothing_is_compared() {
        let text = render(&rows()[4..], &[]);
        assert!(!text.contains("how many times"), "{text}");
    }
}
