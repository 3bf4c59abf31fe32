//! NetRS, figure 5: how unevenly clients ask.

use super::{CLIRS, MEAN, P99, Replicas, against, plots, rsnodes, sweep};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Findings;
use crate::findings::Paper::Is;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-5",
    title: "Latency against the skew of demand",
    source: "NetRS (section V-B2), figure 5",
    set_up: "As in figure 4, with 500 clients, of which the first fifth has 20 % (no skew), 70, 80 or 90 % of all requests.",
    differs: differences::NETRS_5,
    cases,
    columns: traces::none,
    reduce: Reduce::Replicas(reduce),
};

/// Percent of requests that a fifth of the clients has.
const SKEWS: [u32; 4] = [20, 70, 80, 90];

fn cases(effort: Effort) -> Vec<Case> {
    sweep(effort, &SKEWS, |cell, percent| cell.of_first_fifth = f64::from(percent) / 100.0)
}

fn reduce(results: &Replicas) -> Findings {
    let paper = [(20, 0.536, 0.657), (70, 0.458, 0.589), (90, 0.337, 0.369)];
    let rows = paper.iter().flat_map(|&(percent, mean, p99)| {
        let words =
            if percent == 20 { "no skew".into() } else { format!("{percent} % of requests by a fifth of the clients") };
        [(MEAN, mean), (P99, p99)]
            .map(|(quantity, share)| against(results, CLIRS, &percent.to_string(), &words, quantity, Is(share)))
    });
    let rows = rows.collect();
    let places = SKEWS.map(|percent| (percent.to_string(), f64::from(percent)));
    let notes = SKEWS.map(|percent| format!("RSNodes at {percent} %: {}.", rsnodes(results, &super::ILP.at(percent))));
    Findings {
        rows,
        plots: plots(results, "percent of requests by a fifth of the clients", &places),
        notes: notes.into(),
        ..Findings::default()
    }
}
