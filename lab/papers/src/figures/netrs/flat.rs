//! Checks selectors without a network against a port of C3's public simulator.

use super::{Cache, MEAN, P99};
use crate::differences;
use crate::figures::results::{Case, NS_PER_MS};
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Seen;
use crate::findings::Paper::Is;
use crate::findings::Unit::Time;
use crate::findings::{Findings, Row};
use crate::netrs::{Cell, Placement, Selects};
use midflight_cache::select::Algorithm;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-flat",
    title: "Selectors without a network",
    source: "A port of C3's public simulator, 120,000 requests, one seed",
    set_up: "100 servers as in NetRS's evaluation, without any network; 10 or 500 clients choose.",
    differs: differences::NETRS_FLAT,
    cases,
    columns: traces::none,
    reduce: Reduce::Cache(reduce),
};

/// The selector, the number of selectors, and the port's mean and 99th percentile in milliseconds.
const ROWS: [(Selects, u32, f64, f64); 5] = [
    (Selects::Really(Algorithm::C3RateControl), 500, 7.3, 43.8),
    (Selects::Really(Algorithm::C3), 500, 7.0, 41.5),
    (Selects::Really(Algorithm::C3), 10, 2.82, 15.9),
    (Selects::Really(Algorithm::LeastOutstanding), 10, 3.64, 18.8),
    (Selects::Oracle, 10, 2.30, 12.7),
];

fn name(selector: Selects, clients: u32) -> String {
    format!("{selector}@{clients}")
}

fn cases(effort: Effort) -> Vec<Case> {
    let case = |(selector, clients, _, _)| {
        let (placement, requests) = (Placement::Clients, effort.pick(120_000, 30_000));
        let cell = Cell { selector, clients, placement, requests, network: None, seed: 0, ..Cell::default() };
        Case { name: name(selector, clients), cell: cell.into() }
    };
    ROWS.map(case).into()
}

fn reduce(results: &Cache) -> Findings {
    let rows = ROWS.iter().flat_map(|&(selector, clients, mean, p99)| {
        [(MEAN, mean), (P99, p99)].map(|(quantity, ms)| {
            let row_name = format!("{selector}-{clients}-{}", quantity.key);
            let what = format!("{selector}, {clients} of them, {}", quantity.label);
            Row::new(Seen, Time, row_name, what, Is(ms * NS_PER_MS))
                .found_alone(results.estimate(&name(selector, clients), quantity.of))
        })
    });
    Findings { rows: rows.collect(), ..Findings::default() }
}
