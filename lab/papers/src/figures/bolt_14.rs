//! Bolt, figure 14: the steps of figure 13a.

use super::bolt_13a::PLACE;
use super::contenders::{BOLT, Contender, MIDFLIGHT, SPARROW, TRACE_LOAD, computing, trace, trace_time};
use super::falcon_9_10::steps_plot;
use super::results::{Case, Results, delay, mean_step, step};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Step, Work};
use crate::differences;
use crate::findings::Class::Seen;
use crate::findings::Paper::{Is, Says};
use crate::findings::Unit::{Factor, Share};
use crate::findings::{Band, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-14",
    title: "Delay by step, in a bursty workload",
    source: "Bolt (thesis, §5.5), figure 14",
    set_up: "The runs of figure 13a by step. What the thesis calls the reason for 37 % of Sparrow's delay is taken to be the median time of \
             submission and reservation together by the median delay: it divides all of the delay into this, retrieval and queueing.",
    differs: differences::BOLT_14,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const CONTENDERS: [Contender; 3] = [MIDFLIGHT, BOLT, SPARROW];
/// 90th percentile relative to the median; beyond it, retrieval takes more than a round trip.
const ROUND_TRIP: f64 = 1.25;

fn cases(effort: Effort) -> Vec<Case> {
    let load = || trace(TRACE_LOAD, Work::Compute, false);
    CONTENDERS.map(|contender| contender.case(PLACE, computing(), load(), trace_time(effort))).to_vec()
}

fn reduce(results: &Results) -> Findings {
    let queueing = |result: &CellResult| {
        let sum: f64 = Step::ALL.into_iter().map(|which| mean_step(result, which)).sum();
        mean_step(result, Step::Queueing) / sum
    };
    let dominates = results.estimate(&BOLT.at(PLACE), queueing);
    let get_task = |result: &CellResult| step(Step::GetTask, 0.9)(result) / step(Step::GetTask, 0.5)(result);
    let round_trip = results.estimate(&BOLT.at(PLACE), get_task);
    let probing = |result: &CellResult| {
        (step(Step::Submit, 0.5)(result) + step(Step::Reservation, 0.5)(result)) / delay(0.5)(result)
    };
    let by_submit = |result: &CellResult| step(Step::Reservation, 0.5)(result) / step(Step::Submit, 0.5)(result);
    let rows = vec![
        Row::new(
            Seen,
            Share,
            "bolt-queueing",
            "Bolt: queueing's share of the mean delay",
            Says("dominates", Band::from(0.5)),
        )
        .found_alone(dominates),
        Row::new(
            Seen,
            Factor,
            "bolt-get-task",
            "Bolt: 90th percentile of retrieval by its median",
            Says("a round trip for 90 %", Band::up_to(ROUND_TRIP)),
        )
        .found_alone(round_trip),
        Row::new(Seen, Share, "sparrow-probing", "Sparrow: probing's share of the median delay", Is(0.37)).found(
            results.estimate(&SPARROW.at(PLACE), probing),
            Holds::within(results.estimate(&SPARROW.at(PLACE), by_submit), Band::from(1.0)),
        ),
    ];
    let plots = CONTENDERS.iter().map(|contender| steps_plot(results, contender, PLACE)).collect();
    Findings { rows, plots, notes: vec![], ..Findings::default() }
}
