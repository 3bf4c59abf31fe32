//! NetRS, figure 5: skew of clients' demand.

use super::{CLIRS, Cache, ILP, MEAN, P99, against, growth, plots, rsnodes, sweep};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::{Band, Findings, RATIO_WITHIN};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-5",
    title: "Latency against the skew of demand",
    source: "NetRS (section V-B2), figure 5",
    set_up: "As in figure 4, with 500 clients, of which the first fifth has 20 % (no skew), 70, 80 or 90 % of all requests.",
    differs: differences::NETRS_5,
    cases,
    columns: traces::none,
    reduce: Reduce::Cache(reduce),
};

/// Percent of requests from a fifth of the clients.
const SKEWS: [u32; 4] = [20, 70, 80, 90];

fn cases(effort: Effort) -> Vec<Case> {
    sweep(effort, &SKEWS, |cell, percent| cell.of_first_fifth = f64::from(percent) / 100.0)
}

fn reduce(results: &Cache) -> Findings {
    let paper = [(20, 0.536, 0.657), (70, 0.458, 0.589), (90, 0.337, 0.369)];
    let mut rows = Vec::new();
    for (percent, mean, p99) in paper {
        let words =
            if percent == 20 { "no skew".into() } else { format!("{percent} % of requests by a fifth of the clients") };
        for (quantity, share) in [(MEAN, mean), (P99, p99)] {
            rows.push(against(results, CLIRS, &percent.to_string(), &words, quantity, share));
        }
    }
    let words = "with a skew of 90 % by that without";
    let row = |contender, quantity, says| growth(results, contender, quantity, ("20", "90"), words, says);
    for quantity in [MEAN, P99] {
        rows.push(row(CLIRS, quantity, ("falls", Band::up_to(1.0))));
        rows.push(row(ILP, quantity, ("no benefit", Band::around(1.0, RATIO_WITHIN))));
    }
    let places = SKEWS.map(|percent| (percent.to_string(), f64::from(percent)));
    let notes = SKEWS.map(|percent| format!("RSNodes at {percent} %: {}.", rsnodes(results, &ILP.at(percent))));
    Findings {
        rows,
        plots: plots(results, "percent of requests by a fifth of the clients", &places),
        notes: notes.into(),
        ..Findings::default()
    }
}
