//! What the paper says of a new plan: latency may rise for a time, as new RSNodes know nothing.

use super::{ILP, NS_PER_MS, Replicas, TOR};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Predicted;
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
    reduce: Reduce::Replicas(reduce),
};

const CHANGES: &str = "ilp@change";
/// The same requests, for which RSNodes have chosen from the beginning.
const SETTLED: &str = "ilp@settled";
/// When the plan changes: at about the middle of all requests.
const CHANGE_MS: u32 = 3_400;
/// Windows after the change: what it costs at first, and whether it is over. In milliseconds.
const FIRST: (u64, u64) = (0, 100);
const LATER: (u64, u64) = (1_000, 2_000);

/// A quick run is as long: it takes a second, and windows need their time.
fn cases(_effort: Effort) -> Vec<Case> {
    let at = |place, ms| ILP.case(place, Effort::Full, |cell| cell.change_at_ms = Some(ms));
    vec![at("change", CHANGE_MS), at("settled", 0)]
}

/// The mean latency of the requests that come in a window after the change by that of the same requests where RSNodes are settled, seed by
/// seed.
fn by_settled(results: &Replicas, (from, until): (u64, u64)) -> Option<Estimate> {
    let bucket = |after: u64| ((u64::from(CHANGE_MS) + after) / BUCKET_MS) as usize;
    let mean = |result: &CellResult| {
        let window = result.over_time_ms.get(bucket(from)..bucket(until)).unwrap_or_default();
        window.iter().sum::<f64>() / window.len() as f64
    };
    results.factor(CHANGES, SETTLED, mean)
}

fn reduce(results: &Replicas) -> Findings {
    let row = |name, what, words, band| Row::new(Predicted, Factor, name, what, Says(words, band));
    let rows = vec![
        row(
            "first",
            "Mean latency in the first 100 ms of new RSNodes by that of settled ones",
            "rises for a time",
            Band::from(1.0),
        )
        .found_alone(by_settled(results, FIRST)),
        row("later", "The same from 1 to 2 s after the change", "is stable again", Band::around(1.0, STABLE))
            .found_alone(by_settled(results, LATER)),
    ];
    Findings { rows, plots: vec![plot(results)], ..Findings::default() }
}

/// Within this factor latency is stable.
const STABLE: f64 = 1.05;

fn plot(results: &Replicas) -> Plot {
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
