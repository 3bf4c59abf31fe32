//! NetRS, figure 6: utilisation of the servers.

use super::{ALL, CLIRS, Cache, ILP, MEAN, P99, TOR, growth, plots, range, reduction_growth, rsnodes, sweep};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::{Band, Findings, Row};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-6",
    title: "Latency against the utilisation of servers",
    source: "NetRS (section V-B3), figure 6",
    set_up: "As in figure 4, with 500 clients, at a utilisation of 30 to 90 %.",
    differs: differences::NETRS_6,
    cases,
    columns: traces::none,
    reduce: Reduce::Cache(reduce),
};

/// Percent.
const UTILISATIONS: [u32; 7] = [30, 40, 50, 60, 70, 80, 90];

fn cases(effort: Effort) -> Vec<Case> {
    sweep(effort, &UTILISATIONS, |cell, percent| cell.utilisation = f64::from(percent) / 100.0)
}

fn reduce(results: &Cache) -> Findings {
    let ranges = [
        (CLIRS, MEAN, (0.170, 0.536)),
        (CLIRS, P99, (0.120, 0.657)),
        (TOR, MEAN, (0.161, 0.364)),
        (TOR, P99, (0.108, 0.421)),
    ];
    let places = UTILISATIONS.map(|percent| percent.to_string());
    let mut rows: Vec<Row> =
        ranges.into_iter().flat_map(|(other, quantity, ends)| range(results, other, &places, quantity, ends)).collect();
    let ends = ("30", "90");
    for quantity in [MEAN, P99] {
        for contender in ALL {
            rows.push(growth(
                results,
                contender,
                quantity,
                ends,
                "at 90 % by that at 30 %",
                ("grows", Band::from(1.0)),
            ));
        }
        for pair in [(CLIRS, ILP), (TOR, ILP), (CLIRS, TOR)] {
            rows.push(reduction_growth(results, pair, quantity, ends, "at 90 % than at 30 %"));
        }
    }
    let places = UTILISATIONS.map(|percent| (percent.to_string(), f64::from(percent)));
    let notes = [30, 90].map(|percent| format!("RSNodes at {percent} %: {}.", rsnodes(results, &ILP.at(percent))));
    let plots = plots(results, "utilisation in percent", &places);
    Findings { rows, plots, notes: notes.into(), ..Findings::default() }
}
