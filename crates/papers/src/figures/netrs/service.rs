//! NetRS, figure 7: how long requests are in service.

use super::utilisation::difference;
use super::{CLIRS, ILP, MEAN, Replicas, against, plots, range, reduction, rsnodes, sweep};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Predicted;
use crate::findings::Paper::{Is, Says};
use crate::findings::Unit::Share;
use crate::findings::{Band, Findings, Row};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-7",
    title: "Latency against the service time",
    source: "NetRS (section V-B4), figure 7",
    set_up: "As in figure 4, with 500 clients, where the mean service time of a slow server is 0.1 to 4 ms; as many more requests come as \
             servers can serve.",
    differs: differences::NETRS_7,
    cases,
    columns: traces::none,
    reduce: Reduce::Replicas(reduce),
};

/// Microseconds.
const SERVICES: [u32; 5] = [100, 500, 1_000, 2_000, 4_000];

fn cases(effort: Effort) -> Vec<Case> {
    sweep(effort, &SERVICES, |cell, service_us| cell.service_us = service_us)
}

fn reduce(results: &Replicas) -> Findings {
    let words = |us: u32| format!("{} ms", f64::from(us) / 1e3);
    let mut rows = vec![
        against(results, CLIRS, "100", &words(100), MEAN, Is(0.238)),
        against(results, CLIRS, "4000", &words(4_000), MEAN, Is(0.536)),
    ];
    for us in &SERVICES[1..4] {
        let paper = range("23.8 to 53.6 %", 0.238, 0.536);
        rows.push(against(results, CLIRS, &us.to_string(), &words(*us), MEAN, paper));
    }
    let at = |us: u32| reduction(results, &CLIRS.at(us), &ILP.at(us), MEAN);
    let what = "The reduction of the mean with 4 ms is above that with 0.1 ms by";
    rows.push(
        Row::new(Predicted, Share, "clirs-mean-growth", what, Says("more", Band::from(0.0)))
            .found_alone(difference(at(4_000), at(100))),
    );
    let places = SERVICES.map(|us| (us.to_string(), f64::from(us) / 1e3));
    let notes = SERVICES.map(|us| format!("RSNodes with {}: {}.", words(us), rsnodes(results, &ILP.at(us))));
    Findings { rows, plots: plots(results, "service time in ms", &places), notes: notes.into(), ..Findings::default() }
}
