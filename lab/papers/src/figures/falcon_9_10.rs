//! Falcon, figures 9 and 10: where the delay comes from, step by step.

use super::contenders::{
    ASIC_SAFE, Contender, DELAY, FALCON, MIDFLIGHT, MIDFLIGHT_KERNEL, OURS, SHARE_OF_TASKS, SPARROW_JAVA, sixty, sw1,
    sw1_time,
};
use super::results::{Case, Results, step};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Step, Work};
use crate::differences;
use crate::findings::Class::{Hypothetical, Seen};
use crate::findings::Paper::{AtMost, Is};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::{Axis, Hue, Plot};
use crate::findings::{Findings, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "falcon-9-10",
    title: "Delay by step of the protocol",
    source: "Falcon (thesis, §3.5), figures 9 and 10",
    set_up: "SW1 at 80 %, as in figure 8. Submission: until the scheduler has the task. Reservation: until Sparrow's probe is in \
             its worker's queue. Queueing: until an executor is free for it. Retrieval (get_task): from the executor's request to \
             the task.",
    differs: differences::FALCON_9_10,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const PLACE: &str = "0.8";
const CONTENDERS: [Contender; 5] = [MIDFLIGHT, MIDFLIGHT_KERNEL, ASIC_SAFE, FALCON, SPARROW_JAVA];
/// Quantile that defines a step's length.
const MOST: f64 = 0.99;

fn cases(effort: Effort) -> Vec<Case> {
    let cases = CONTENDERS.map(|contender| contender.case(PLACE, sixty(), sw1(0.8, Work::Sleep), sw1_time(effort)));
    cases.to_vec()
}

fn longest(result: &CellResult) -> f64 {
    let steps = Step::ALL.into_iter().map(|which| step(which, MOST)(result));
    steps.filter(|ns| ns.is_finite()).fold(f64::NAN, f64::max)
}

/// What both protocols have.
fn common(result: &CellResult) -> f64 {
    step(Step::Queueing, 0.5)(result) + step(Step::GetTask, 0.5)(result)
}

fn reduce(results: &Results) -> Findings {
    let longest_of = |contender: &Contender| results.estimate(&contender.at(PLACE), longest);
    let first = |contender: &Contender| results.is_above(&SPARROW_JAVA.at(PLACE), &contender.at(PLACE), longest);
    let retrieval = "Sparrow's retrieval and queueing by Falcon's (medians)";
    let rows = vec![
        Row::new(Seen, Time, "falcon-longest-step", "Falcon, longest step (99th percentile)", AtMost(0.1e6))
            .found(longest_of(&FALCON), first(&FALCON)),
        Row::new(Seen, Time, "sparrow-longest-step", "Sparrow, longest step (99th percentile)", Is(2.5e6))
            .found(longest_of(&SPARROW_JAVA), first(&FALCON)),
        Row::new(Seen, Factor, "factor-retrieval-and-queueing", retrieval, Is(42.0)).found(
            results.factor(&SPARROW_JAVA.at(PLACE), &FALCON.at(PLACE), common),
            results.is_above(&SPARROW_JAVA.at(PLACE), &FALCON.at(PLACE), common),
        ),
        Row::new(
            Hypothetical,
            Time,
            "midflight-longest-step",
            "Midflight at a Tofino's pass time, longest step (99th percentile)",
            AtMost(0.1e6),
        )
        .found(longest_of(&MIDFLIGHT), first(&MIDFLIGHT)),
    ];
    let ours = OURS.into_iter().map(|(who, class)| {
        let what = format!("{}, longest step (99th percentile)", who.label);
        let row = Row::new(class, Time, format!("{}-longest-step", who.key), what, AtMost(0.1e6));
        row.found(longest_of(&who), first(&who))
    });
    let rows = rows.into_iter().chain(ours).collect();
    let plots = CONTENDERS.iter().map(|contender| steps_plot(results, contender, PLACE)).collect();
    Findings { rows, plots, notes: vec![], ..Findings::default() }
}

pub(super) fn steps_plot(results: &Results, contender: &Contender, place: &str) -> Plot {
    const NAMES: [(Step, &str, Hue); 4] = [
        (Step::Submit, "submission", Hue::Nth(4)),
        (Step::Reservation, "reservation", Hue::Nth(0)),
        (Step::Queueing, "queueing", Hue::Nth(1)),
        (Step::GetTask, "retrieval (get_task)", Hue::Nth(2)),
    ];
    let case = contender.at(place);
    let curves =
        NAMES.map(|(which, name, hue)| results.distribution(&case, name, hue, |result| result.steps.get(&which)));
    Plot {
        name: contender.key,
        title: format!("{}: share of tasks that had a step done within a time", contender.label),
        x: Axis { label: "time of the step", ..DELAY },
        y: SHARE_OF_TASKS,
        curves: curves.into_iter().filter(|curve| !curve.points.is_empty()).collect(),
        marks: vec![],
    }
}
