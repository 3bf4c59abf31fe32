//! Who serves reads.

use super::{Contender, FLAIR, LEASES, SKEW, Store, light_note, with_light};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::{self, Predicted, Seen};
use crate::findings::Paper::Is;
use crate::findings::Unit::Share;
use crate::findings::{Band, Findings, Row};
use crate::flair::{CellResult, Shares};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-share",
    title: "Who serves reads",
    source: "FLAIR (NSDI '20, §7.1 and 7.2)",
    set_up: "300 clients; workload B (95 % reads), uniform and by Zipf's law (0.99), and workload A (50 %) by Zipf's law.",
    differs: differences::FLAIR_SHARE,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const WORKLOADS: [(&str, f64, f64); 3] = [("b-uniform", 0.95, 0.0), ("b-zipf", 0.95, SKEW), ("a-zipf", 0.5, SKEW)];

type Part = (&'static str, &'static str, fn(&Shares) -> f64);
const LEADER: Part = ("leader", "the leader serves", |shares| shares.by_leader);
const UNSTABLE: Part = ("unstable", "find their key group unstable", |shares| shares.unstable);
const REDIRECTED: Part = ("redirected", "are sent on to the leader", |shares| shares.redirected);

/// System, workload, part of the reads, the paper's share.
const ROWS: [(Contender, &str, Class, Part, f64); 11] = [
    (FLAIR, "b-uniform", Seen, LEADER, 0.02),
    (FLAIR, "b-uniform", Seen, UNSTABLE, 0.02),
    (LEASES, "b-uniform", Seen, LEADER, 0.34),
    (FLAIR, "b-zipf", Predicted, LEADER, 0.21),
    // 1 % of these 21 %.
    (FLAIR, "b-zipf", Seen, REDIRECTED, 0.0021),
    (LEASES, "b-zipf", Predicted, LEADER, 0.37),
    (LEASES, "b-zipf", Predicted, REDIRECTED, 0.04),
    (FLAIR, "a-zipf", Predicted, UNSTABLE, 0.29),
    (FLAIR, "a-zipf", Predicted, LEADER, 0.29),
    (LEASES, "a-zipf", Predicted, LEADER, 0.37),
    (LEASES, "a-zipf", Predicted, REDIRECTED, 0.04),
];

fn cases(effort: Effort) -> Vec<Case> {
    let of = |(workload, reads, zipf)| {
        [FLAIR, LEASES].map(|who| who.case(workload, effort, |cell| (cell.reads, cell.zipf) = (reads, zipf)))
    };
    with_light(WORKLOADS.into_iter().flat_map(of).collect())
}

fn rows(results: &Store) -> Vec<Row> {
    let row = |(who, workload, class, (key, words, of), paper): (Contender, &str, Class, Part, f64)| {
        let what = format!("{}, {workload}: share of reads that {words}", who.label);
        Row::new(class, Share, format!("{}-{workload}-{key}", who.key), what, Is(paper))
            .found_alone(results.estimate(&who.at(workload), |result: &CellResult| of(&result.shares)))
    };
    let mut rows: Vec<Row> = ROWS.into_iter().map(row).collect();
    for (workload, _, _) in WORKLOADS {
        let class = if workload == "b-uniform" { Seen } else { Predicted };
        let value =
            results.factor(&FLAIR.at(workload), &LEASES.at(workload), |result: &CellResult| result.shares.by_leader);
        let what = format!("{workload}: reads that FlairKV's leader serves, by FLeases' leader");
        rows.push(super::says(class, &format!("lighter-{workload}"), &what, ("fewer", Band::up_to(1.0)), value));
    }
    rows
}

fn reduce(results: &Store) -> Findings {
    Findings { rows: rows(results), notes: vec![light_note(results, rows)], ..Findings::default() }
}
