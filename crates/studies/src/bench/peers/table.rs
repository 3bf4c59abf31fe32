//! The rows for people: a table, what stands against what, and how each system was used.

use super::row::Row;
use midflight_terminal::columns::aligned;
use std::fmt::Write;

/// A peer that has no row, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Absent {
    pub name: String,
    /// It was there and failed; otherwise it could not be had here.
    pub failed: bool,
    /// Why, on one line.
    pub reason: String,
}

impl Absent {
    pub(super) fn line(&self) -> String {
        let word = if self.failed { "FAILED" } else { "SKIPPED" };
        format!("{word}: {}: {}", self.name, self.reason)
    }
}

/// How many times better Midflight is than a peer.
#[derive(Debug)]
pub(super) struct Ratios<'a> {
    ours: &'a Row,
}

impl<'a> Ratios<'a> {
    /// Against the kernel engine if it was measured, otherwise against user space.
    pub(super) fn new(rows: &'a [Row]) -> Option<Self> {
        let named = |name| rows.iter().find(|row| row.name == name);
        named("midflight-kernel").or_else(|| named("midflight-user")).map(|ours| Self { ours })
    }

    /// Throughput and latency; of peers only.
    pub(super) fn of(&self, row: &Row) -> Option<(f64, f64)> {
        let ratios = (self.ours.tasks_per_s / row.tasks_per_s, row.rtt_p50_us / self.ours.rtt_p50_us);
        (!row.is_ours()).then_some(ratios)
    }

    /// Of both ratios.
    pub(super) fn unit(&self) -> &'static str {
        if self.ours.name == "midflight-kernel" { "x (midflight-kernel)" } else { "x (midflight-user)" }
    }
}

/// The table, who is absent, and how each row was measured.
pub(super) fn render(rows: &[Row], absent: &[Absent], ratios: Option<&Ratios<'_>>) -> String {
    let mut text = aligned(&cells(rows, ratios), "llrrrrr");
    if let Some(ratios) = ratios {
        let _ = writeln!(text, "\n× throughput, × latency: how many times better {} is.", ratios.ours.name);
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

type Line = [String; 7];

fn cells(rows: &[Row], ratios: Option<&Ratios<'_>>) -> Vec<Line> {
    if rows.is_empty() {
        return Vec::new();
    }
    let against = if ratios.is_some() { ["× throughput", "× latency"] } else { ["", ""] };
    let mut lines = vec![["", "version", "tasks/s", "latency p50", "p99", against[0], against[1]].map(str::to_owned)];
    for row in rows {
        let (rate, p50, p99) = row.cells();
        let (throughput, latency) = match ratios.and_then(|ratios| ratios.of(row)) {
            Some((throughput, latency)) => (times(throughput), times(latency)),
            None => Default::default(),
        };
        lines.push([row.name.clone(), row.version.clone(), rate, p50, p99, throughput, latency]);
    }
    lines
}

/// Two digits are enough to compare by.
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
            Row::sample("ray", 1_250.0, 1_200.0),
        ]
    }

    #[test]
    fn the_kernel_engine_is_the_measure_and_else_user_space() {
        let rows = rows();
        let kernel = Ratios::new(&rows).unwrap();
        assert_eq!(kernel.unit(), "x (midflight-kernel)");
        assert_eq!(kernel.of(&rows[3]), Some((400.0, 40.0)));
        let (throughput, latency) = kernel.of(&rows[2]).unwrap();
        assert!(throughput < 1.0 && latency == 3.0, "a peer may be better: {throughput}, {latency}");
        assert_eq!(kernel.of(&rows[1]), None, "we are no peer of ours");
        let user = Ratios::new(&rows[1..]).unwrap();
        assert_eq!(user.unit(), "x (midflight-user)");
        assert_eq!(user.of(&rows[3]), Some((240.0, 20.0)));
        assert!(Ratios::new(&rows[2..]).is_none());
    }

    #[test]
    fn the_table_has_a_line_for_each_row_and_names_who_is_absent() {
        let rows = rows();
        let absent = [
            Absent { name: "dask".into(), failed: false, reason: "no python3".into() },
            Absent { name: "hyperqueue".into(), failed: true, reason: "tasks failed".into() },
        ];
        let text = render(&rows, &absent, Ratios::new(&rows).as_ref());
        let expected = "
                  version  tasks/s  latency p50      p99  × throughput  × latency
midflight-kernel  1.0      500,000      30.0 µs  60.0 µs
midflight-user    1.0      300,000      60.0 µs   120 µs
nats              1.0      600,000      90.0 µs   180 µs           0.8        3.0
ray               1.0        1,250      1.20 ms  2.40 ms           400         40

× throughput, × latency: how many times better midflight-kernel is.

SKIPPED: dask: no python3
FAILED: hyperqueue: tasks failed

midflight-kernel: how midflight-kernel was used
midflight-user: how midflight-user was used
nats: how nats was used
ray: how ray was used
";
        assert_eq!(text, expected[1..]);
    }

    #[test]
    fn without_midflight_nothing_is_compared() {
        let rows = rows();
        let text = render(&rows[3..], &[], Ratios::new(&rows[3..]).as_ref());
        assert_eq!(
            text.lines().next().map(str::split_whitespace).unwrap().collect::<Vec<_>>(),
            ["version", "tasks/s", "latency", "p50", "p99"]
        );
        assert!(!text.contains('×'), "{text}");
    }

    #[test]
    fn where_nothing_was_measured_the_reasons_remain() {
        let absent = [Absent { name: "nats".into(), failed: false, reason: "no go".into() }];
        assert_eq!(render(&[], &absent, None), "\nSKIPPED: nats: no go\n");
    }
}
