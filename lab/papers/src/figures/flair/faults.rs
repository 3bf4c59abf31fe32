//! Throughput while something fails.

use super::{FLAIR, Store};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::{Hypothetical, Seen};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Share, Time};
use crate::findings::plot::{Axis, Curve, Hue, Plot, Point, Scale};
use crate::findings::{Band, Estimate, Findings, Holds, RATIO_WITHIN, Row};
use crate::flair::{BUCKET_MS, CellResult, Fault, FaultKind};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-faults",
    title: "Throughput while something fails",
    source: "FLAIR, load balancing (§7.3), figures 12 to 14",
    set_up: "300 clients, workload C, three replicas; after 300 ms the switch loses its state, the leader dies, or a follower dies. The paper's \
             runs last 35 s; the store's times are shorter.",
    differs: differences::FLAIR_FAULTS,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const KINDS: [(&str, FaultKind, Hue); 3] = [
    ("switch", FaultKind::Switch, Hue::Nth(0)),
    ("leader", FaultKind::Leader, Hue::Nth(1)),
    ("follower", FaultKind::Follower, Hue::Nth(2)),
];
const AT_MS: u64 = 300;
const FAULT: usize = (AT_MS / BUCKET_MS) as usize;
/// Buckets at the end, and before the fault, that stand for undisturbed operation.
const STEADY: usize = 4;
/// Below this share of the throughput before, the store is out of service.
const OUT: f64 = 0.05;

fn cases(effort: Effort) -> Vec<Case> {
    let of = |(name, kind, _): (&str, FaultKind, Hue)| {
        FLAIR.case(name, effort, |cell| {
            (cell.reads, cell.keys) = (1.0, 10_000);
            (cell.warmup_ms, cell.duration_ms) = (50, effort.pick(1_200, 900));
            cell.fault = Some(Fault { kind, at_ms: AT_MS });
        })
    };
    KINDS.map(of).into()
}

fn mean(buckets: &[f64]) -> f64 {
    if buckets.is_empty() { f64::NAN } else { buckets.iter().sum::<f64>() / buckets.len() as f64 }
}

fn before(result: &CellResult) -> f64 {
    mean(result.over_time.get(FAULT - STEADY..FAULT).unwrap_or_default())
}

/// At the end, relative to before.
fn after(result: &CellResult) -> f64 {
    let from = result.over_time.len().saturating_sub(STEADY);
    mean(&result.over_time[from..]) / before(result)
}

/// In the first bucket after the fault, relative to before.
fn at_once(result: &CellResult) -> f64 {
    result.over_time.get(FAULT).map_or(f64::NAN, |rate| rate / before(result))
}

/// Buckets from the fault to the last one without service.
fn out(result: &CellResult) -> f64 {
    let is_out = |rate: &f64| *rate < OUT * before(result);
    let since = result.over_time.get(FAULT..).unwrap_or_default();
    if since.is_empty() { f64::NAN } else { since.iter().rposition(is_out).map_or(0.0, |last| last as f64 + 1.0) }
}

/// In nanoseconds.
fn outage(result: &CellResult) -> f64 {
    out(result) * BUCKET_MS as f64 * 1e6
}

fn reduce(results: &Store) -> Findings {
    let of = |kind: &str, quantity: fn(&CellResult) -> f64| -> Option<Estimate> {
        results.estimate(&FLAIR.at(kind), quantity)
    };
    let back = |whole: f64| Band::around(whole, RATIO_WITHIN);
    // Seen: the rows' rules stand as they were, but a first run had too few clients to keep all threads busy.
    let says = |name: &str, what: &str, statement, band, value| {
        Row::new(Seen, Factor, name, what, Says(statement, band)).found_alone(value)
    };
    let rows = vec![
        Row::new(
            Hypothetical,
            Time,
            "switch-outage",
            "Without service after the switch has lost its state, with this project's times",
            AtMost(750e6),
        )
        .found(of("switch", outage), Holds::within(of("switch", after), back(1.0))),
        says("switch-out", "the same in buckets of 50 ms", "drops to zero", Band::from(1.0), of("switch", out)),
        says("switch-back", "Afterwards by before, switch", "as before", back(1.0), of("switch", after)),
        says(
            "leader-goes-on",
            "First 50 ms after the leader has died, by before",
            "reads go on",
            Band::from(1.0 / 3.0),
            of("leader", at_once),
        ),
        says(
            "leader-out",
            "Without service after the leader's death, in buckets of 50 ms",
            "then zero",
            Band::from(1.0),
            of("leader", out),
        ),
        says(
            "leader-back",
            "Afterwards by before, two replicas of three",
            "resumes",
            back(2.0 / 3.0),
            of("leader", after),
        ),
        says(
            "follower-dip",
            "First 50 ms after a follower has died, by the end",
            "a dip",
            Band::up_to(0.95),
            of("follower", |result| at_once(result) / after(result)),
        ),
        Row::new(Seen, Share, "follower-loss", "Lower throughput without a follower", Is(0.33))
            .found_alone(of("follower", |result| 1.0 - after(result))),
    ];
    Findings { rows, plots: vec![plot(results)], ..Findings::default() }
}

fn plot(results: &Store) -> Plot {
    let curve = |(kind, _, hue): (&str, FaultKind, Hue)| {
        let buckets = results.of(&FLAIR.at(kind)).iter().map(|result| result.over_time.len()).min().unwrap_or(0);
        let point = |bucket: usize| {
            let rate = results.mean(&FLAIR.at(kind), |result| result.over_time[bucket]);
            Point::new((bucket as u64 * BUCKET_MS) as f64 / 1e3, rate)
        };
        Curve { name: kind.into(), hue, dashed: false, points: (0..buckets).map(point).collect(), dots: false }
    };
    Plot {
        name: "throughput",
        title: "Reads a second; a fault after 0.3 s".into(),
        x: Axis { label: "time", scale: Scale::Seconds },
        y: Axis { label: "reads a second", scale: Scale::Number },
        curves: KINDS.map(curve).into(),
        marks: Vec::new(),
    }
}
