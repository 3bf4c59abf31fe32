//! Distribution of the latency of reads.

use super::{Contender, FLAIR, LEASES, OPT_RAFT, RAFT, SKEW, Store, light_note, with_light};
use crate::cell::QUANTILES;
use crate::differences;
use crate::figures::results::{Case, NS_PER_MS};
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::{Predicted, Seen};
use crate::findings::Paper::{AtLeast, AtMost, Is};
use crate::findings::Unit::{Factor, Share};
use crate::findings::plot::{Axis, Curve, Plot, Scale};
use crate::findings::{Estimate, Findings, Row};
use crate::flair::CellResult;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-cdf",
    title: "Latency of reads",
    source: "FLAIR (NSDI '20, §7.1), figure 13",
    set_up: "300 clients, workload B, uniform and by Zipf's law (0.99).",
    differs: differences::FLAIR_CDF,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const WORKLOADS: [(&str, f64); 2] = [("uniform", 0.0), ("zipf", SKEW)];
const CONTENDERS: [Contender; 4] = [FLAIR, LEASES, OPT_RAFT, RAFT];

fn cases(effort: Effort) -> Vec<Case> {
    let of = |(workload, zipf)| CONTENDERS.map(|who| who.case(workload, effort, |cell| cell.zipf = zipf));
    with_light(WORKLOADS.into_iter().flat_map(of).collect())
}

fn read(quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| result.reads.at(quantile)
}

/// By how much a quantile is lower than that of FLeases.
fn lower(results: &Store, workload: &str, quantile: f64) -> Option<Estimate> {
    results.reduction(&LEASES.at(workload), &FLAIR.at(workload), read(quantile))
}

fn rows(results: &Store) -> Vec<Row> {
    let slowest = |workload: &str, from: f64| {
        // Beyond it a few reads decide.
        let quantiles = QUANTILES.into_iter().filter(move |&quantile| (from..=0.99).contains(&quantile));
        let mut all: Vec<Estimate> = quantiles.filter_map(|quantile| lower(results, workload, quantile)).collect();
        all.sort_by(|one, two| one.mean.total_cmp(&two.mean));
        all
    };
    let mut rows = vec![
        Row::new(
            Seen,
            Share,
            "leases-uniform",
            "FlairKV's reads are faster than those of FLeases by, slowest 40 %, uniform, smallest",
            AtLeast(0.38),
        )
        .found_alone(slowest("uniform", 0.6).first().copied()),
        Row::new(Seen, Share, "leases-zipf", "the same, slowest 50 %, Zipf, largest", Is(0.35))
            .found_alone(slowest("zipf", 0.5).last().copied()),
    ];
    for (workload, class) in [("uniform", Seen), ("zipf", Predicted)] {
        let of = |rival: Contender| results.factor(&FLAIR.at(workload), &rival.at(workload), read(0.5));
        let what = |rival: Contender| format!("FlairKV's median by that of {}, {workload}", rival.label);
        rows.push(Row::new(class, Factor, format!("raft-{workload}"), what(RAFT), Is(0.02)).found_alone(of(RAFT)));
        rows.push(
            Row::new(class, Factor, format!("opt-raft-{workload}"), what(OPT_RAFT), AtMost(0.08))
                .found_alone(of(OPT_RAFT)),
        );
    }
    rows
}

fn reduce(results: &Store) -> Findings {
    let plots = WORKLOADS.map(|(workload, _)| {
        let curve = |who: Contender| {
            let points = results.cumulative(&who.at(workload), |result| Some(&result.reads));
            Curve { name: who.label.into(), hue: who.hue, dashed: false, points, dots: false }
        };
        Plot {
            name: workload,
            title: format!("Latency of reads, {workload}"),
            x: Axis { label: "latency", scale: Scale::LogTime },
            y: Axis { label: "share of reads", scale: Scale::Share },
            curves: CONTENDERS.map(curve).into(),
            marks: Vec::new(),
        }
    });
    let note = |(workload, _): (&str, f64)| {
        let at = |quantile| lower(results, workload, quantile).map_or(f64::NAN, |lower| lower.mean * 100.0);
        format!(
            "FlairKV's reads are faster than those of FLeases, {workload}: median {:.0} %, 90th percentile {:.0} %, 99th {:.0} %; FlairKV's median is {:.2} ms.",
            at(0.5),
            at(0.9),
            at(0.99),
            results.mean(&FLAIR.at(workload), |result| result.reads.at(0.5) * NS_PER_MS) / NS_PER_MS
        )
    };
    let notes = WORKLOADS.into_iter().map(note).chain([light_note(results, rows)]).collect();
    Findings { rows: rows(results), plots: plots.into(), notes, ..Findings::default() }
}
