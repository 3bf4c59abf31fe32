//! The paper's claim about a new plan: latency may rise for a time, as new RSNodes know nothing.

use super::{Cache, ILP, NS_PER_MS, TOR};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Seen;
use crate::findings::Paper::Says;
use crate::findings::Unit::Factor;
use crate::findings::plot::{Axis, Curve, Plot, Point, Scale};
use crate::findings::{Band, Estimate, Findings, Row};
use crate::netrs::{BUCKET_MS, CellResult};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-change",
    title: "Latency while the plan changes",
    source: "NetRS (section II), in words",
    set_up: "As in figure 4 with 500 clients. NetRS-ToR chooses for the first half; from then on requests go to the RSNodes of the integer \
             program, which know nothing at first.",
    differs: differences::NETRS_CHANGE,
    cases,
    columns: traces::none,
    reduce: Reduce::Cache(reduce),
};

const CHANGES: &str = "ilp@change";
/// RSNodes that have selected from the beginning.
const SETTLED: &str = "ilp@settled";
/// About the middle of the run.
const CHANGE_MS: u32 = 3_400;
/// Milliseconds after and before the change, to measure its cost.
const FIRST_MS: u64 = 100;
const BEFORE_MS: u64 = 200;
/// The cost should be gone.
const LATER_MS: (u64, u64) = (1_000, 2_000);

/// Quick runs are as long: it takes a second, and the windows need it.
fn cases(_effort: Effort) -> Vec<Case> {
    let at = |place, ms| ILP.case(place, Effort::Full, |cell| cell.change_at_ms = Some(ms));
    vec![at("change", CHANGE_MS), at("settled", 0)]
}

/// In milliseconds of the run.
fn mean(result: &CellResult, (from, until): (u64, u64)) -> f64 {
    let bucket = |ms: u64| (ms / BUCKET_MS) as usize;
    let window = result.over_time_ms.get(bucket(from)..bucket(until)).unwrap_or_default();
    window.iter().sum::<f64>() / window.len() as f64
}

/// The rule of `rise` was made after its result was known. An earlier rule compared only with settled RSNodes, which have shorter queues.
fn reduce(results: &Cache) -> Findings {
    let change = u64::from(CHANGE_MS);
    let (first, later) = ((change, change + FIRST_MS), (change + LATER_MS.0, change + LATER_MS.1));
    let rise =
        results.of(CHANGES).iter().map(|result| mean(result, first) / mean(result, (change - BEFORE_MS, change)));
    let rise = Estimate::of(&rise.collect::<Vec<_>>());
    let rows = vec![
        Row::new(
            Seen,
            Factor,
            "rise",
            "Mean latency in the first 100 ms of the new plan by that in the 200 ms before",
            Says("may rise for a time", Band::from(1.0)),
        )
        .found_alone(rise),
        Row::new(
            Seen,
            Factor,
            "later",
            "Mean latency from 1 to 2 s after the change by that of RSNodes that chose from the beginning",
            Says("is stable again", Band::around(1.0, STABLE)),
        )
        .found_alone(results.factor(CHANGES, SETTLED, |result| mean(result, later))),
    ];
    let unknowing =
        results.factor(CHANGES, SETTLED, |result| mean(result, first)).map_or(f64::NAN, |factor| factor.mean);
    let note = format!(
        "In its first 100 ms the new plan's mean is {unknowing:.2} times that of RSNodes that chose from the beginning: they know the \
         servers, and meet no queues that others have made."
    );
    Findings { rows, plots: vec![plot(results)], notes: vec![note], ..Findings::default() }
}

const STABLE: f64 = 1.05;

fn plot(results: &Cache) -> Plot {
    let curve = |case: &str, name: &str, hue| {
        let of_seeds = results.of(case);
        let buckets = of_seeds.iter().map(|result| result.over_time_ms.len()).min().unwrap_or(0);
        let points = (0..buckets).map(|bucket| {
            let sum: f64 = of_seeds.iter().map(|result| result.over_time_ms[bucket]).sum();
            Point::new((bucket as u64 * BUCKET_MS) as f64 / 1e3, sum / of_seeds.len() as f64 * NS_PER_MS)
        });
        Curve { name: name.into(), hue, dashed: false, points: points.collect(), dots: false }
    };
    Plot {
        name: "latency",
        title: "Mean latency of the requests of 20 ms, mean of all seeds".into(),
        x: Axis { label: "seconds", scale: Scale::Seconds },
        y: Axis { label: "latency", scale: Scale::Time },
        curves: vec![
            curve(CHANGES, "NetRS-ToR, then NetRS-ILP", TOR.hue),
            curve(SETTLED, "NetRS-ILP from the beginning", ILP.hue),
        ],
        marks: Vec::new(),
    }
}
