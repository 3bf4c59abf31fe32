//! Throughput against the number of replicas.

use super::{FLAIR, Store, per_second, plot, throughput_axis};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::{Predicted, Set};
use crate::findings::Paper::{AtMost, Is};
use crate::findings::Unit::{PerSecond, Share};
use crate::findings::{Estimate, Findings, Row};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-scale",
    title: "Throughput against the number of replicas",
    source: "FLAIR, load balancing (§7.4), figure 15",
    set_up: "Workload C (reads only), uniform; 3, 5 and 7 replicas, and 1,400 clients, which keep all threads busy.",
    differs: differences::FLAIR_SCALE,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const REPLICAS: [u8; 3] = [3, 5, 7];

fn cases(effort: Effort) -> Vec<Case> {
    let of = |replicas: u8| {
        FLAIR.case(replicas, effort, |cell| {
            (cell.replicas, cell.reads, cell.clients) = (replicas, 1.0, 1_400);
            cell.keys = 10_000;
            (cell.warmup_ms, cell.duration_ms) = effort.pick((200, 300), (20, 40));
        })
    };
    REPLICAS.map(of).into()
}

fn reduce(results: &Store) -> Findings {
    // Seed by seed, relative to three replicas.
    let of = |replicas: u8| results.of(&FLAIR.at(replicas)).iter().map(|result| result.per_second);
    let off = |replicas: u8| {
        of(replicas).zip(of(3)).map(move |(many, three)| (many / three * 3.0 / f64::from(replicas) - 1.0).abs())
    };
    let most: Vec<f64> = off(5).zip(off(7)).map(|(five, seven)| five.max(seven)).collect();
    let rows = vec![
        Row::new(Set("READ_NS"), PerSecond, "seven", "Reads a second with 7 replicas", Is(5.4e6))
            .found_alone(results.estimate(&FLAIR.at(7), per_second)),
        Row::new(Predicted, Share, "linear", "Deviation from linear, at most", AtMost(0.011))
            .found_alone(Estimate::of(&most)),
    ];
    let places = REPLICAS.map(|replicas| (replicas.to_string(), f64::from(replicas)));
    let mut plot = plot(
        results,
        ("throughput", "Reads a second against the number of replicas"),
        &[FLAIR],
        ("replicas", &places),
        throughput_axis(),
    );
    plot.marks = vec![crate::findings::plot::Mark { x: 7.0, y: 5.4e6, hue: FLAIR.hue }];
    Findings { rows, plots: vec![plot], ..Findings::default() }
}
