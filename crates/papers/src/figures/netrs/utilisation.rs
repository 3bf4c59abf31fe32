//! NetRS, figure 6: how busy the servers are.

use super::{
    CLIRS, Contender, ILP, MEAN, P99, Quantity, Replicas, TOR, against, plots, range, reduction, rsnodes, sweep,
};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Predicted;
use crate::findings::Paper::Says;
use crate::findings::Unit::Share;
use crate::findings::{Band, Estimate, Findings, Row};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-6",
    title: "Latency against the utilisation of servers",
    source: "NetRS (section V-B3), figure 6",
    set_up: "As in figure 4, with 500 clients, at a utilisation of 30 to 90 %.",
    differs: differences::NETRS_6,
    cases,
    columns: traces::none,
    reduce: Reduce::Replicas(reduce),
};

/// Percent.
const UTILISATIONS: [u32; 7] = [30, 40, 50, 60, 70, 80, 90];

fn cases(effort: Effort) -> Vec<Case> {
    sweep(effort, &UTILISATIONS, |cell, percent| cell.utilisation = f64::from(percent) / 100.0)
}

fn reduce(results: &Replicas) -> Findings {
    let ranges = [
        (CLIRS, MEAN, 0.170, 0.536, "17.0 to 53.6 %"),
        (CLIRS, P99, 0.120, 0.657, "12.0 to 65.7 %"),
        (TOR, MEAN, 0.161, 0.364, "16.1 to 36.4 %"),
        (TOR, P99, 0.108, 0.421, "10.8 to 42.1 %"),
    ];
    let mut rows = Vec::new();
    for (other, quantity, least, most, words) in ranges {
        for percent in UTILISATIONS {
            let place = percent.to_string();
            rows.push(against(results, other, &place, &format!("at {place} %"), quantity, range(words, least, most)));
        }
        rows.push(growth(results, other, quantity));
    }
    let places = UTILISATIONS.map(|percent| (percent.to_string(), f64::from(percent)));
    let notes = [30, 90].map(|percent| format!("RSNodes at {percent} %: {}.", rsnodes(results, &ILP.at(percent))));
    Findings {
        rows,
        plots: plots(results, "utilisation in percent", &places),
        notes: notes.into(),
        ..Findings::default()
    }
}

/// The reduction is larger where servers are busier.
fn growth(results: &Replicas, other: Contender, quantity: Quantity) -> Row {
    let at = |percent: u32| reduction(results, &other.at(percent), &ILP.at(percent), quantity);
    let name = format!("{}-{}-growth", other.key, quantity.key);
    let what = format!(
        "The reduction of the {} against {} at 90 % is above that at 30 % by",
        quantity.label,
        super::short(other)
    );
    Row::new(Predicted, Share, name, what, Says("more", Band::from(0.0))).found_alone(difference(at(90), at(30)))
}

/// Of two estimates over the same seeds, as if they were independent: wider than it has to be.
pub(super) fn difference(one: Option<Estimate>, other: Option<Estimate>) -> Option<Estimate> {
    let (one, other) = (one?, other?);
    let half_width = one.half_width.zip(other.half_width).map(|(a, b)| a.hypot(b));
    Some(Estimate { mean: one.mean - other.mean, half_width, seeds: one.seeds.min(other.seeds) })
}
