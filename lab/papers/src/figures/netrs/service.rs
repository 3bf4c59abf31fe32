//! NetRS, figure 7: service times.

use super::{CLIRS, Cache, ILP, MEAN, P99, against, plots, range, reduction, reduction_growth, rsnodes, sweep};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Findings;
use crate::netrs::Selects;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-7",
    title: "Latency against the service time",
    source: "NetRS (section V-B4), figure 7",
    set_up: "As in figure 4, with 500 clients, where the mean service time of a slow server is 0.1 to 4 ms; as many more requests come as \
             servers can serve.",
    differs: differences::NETRS_7,
    cases,
    columns: traces::none,
    reduce: Reduce::Cache(reduce),
};

/// Microseconds.
const SERVICES: [u32; 5] = [100, 500, 1_000, 2_000, 4_000];

/// The abstract's maximum reduction of the 99th percentile. The text does not locate it; figures 4 to 6 have lower ones.
const MOST_OF_ALL: f64 = 0.871;
/// The possible gain at the shortest service time.
const ORACLE: &str = "ilp@oracle";

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = sweep(effort, &SERVICES, |cell, service_us| cell.service_us = service_us);
    cases.push(ILP.case("oracle", effort, |cell| (cell.service_us, cell.selector) = (100, Selects::Oracle)));
    cases
}

fn reduce(results: &Cache) -> Findings {
    let words = |us: u32| format!("{} ms", f64::from(us) / 1e3);
    let names = SERVICES.map(|us| us.to_string());
    let [_, most_of_all] = range(results, CLIRS, &names, P99, (0.0, MOST_OF_ALL));
    let rows = vec![
        against(results, CLIRS, "100", &words(100), MEAN, 0.238),
        against(results, CLIRS, "4000", &words(4_000), MEAN, 0.536),
        reduction_growth(results, (CLIRS, ILP), MEAN, ("100", "4000"), "with 4 ms than with 0.1 ms"),
        most_of_all,
    ];
    let places = SERVICES.map(|us| (us.to_string(), f64::from(us) / 1e3));
    let mut notes =
        SERVICES.map(|us| format!("RSNodes with {}: {}.", words(us), rsnodes(results, &ILP.at(us)))).to_vec();
    let oracle = reduction(results, &CLIRS.at(100), ORACLE, MEAN);
    if let Some(oracle) = oracle {
        notes.push(format!(
            "With 0.1 ms, the oracle at the RSNodes is below CliRS in the mean by {:.1} %.",
            oracle.mean * 100.0
        ));
    }
    let plots = plots(results, "service time in ms", &places);
    Findings { rows, plots, notes, ..Findings::default() }
}
