//! Bolt, figure 12: scheduling delay against load, with tasks that compute and the thesis's own Sparrow.

use super::contenders::{
    BOLT, Contender, DELAY, MIDFLIGHT, SPARROW, UTILISATION, factor_row, medians, sixty, sw1, sw1_time, time_row,
};
use super::results::{Case, Results, delay};
use super::{Effort, Figure};
use crate::cell::{CellResult, Work};
use crate::findings::plot::{Mark, Plot};
use crate::findings::{Findings, Paper};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-12",
    title: "Scheduling delay against load, tasks that compute",
    source: "Bolt (thesis, §5.3), figure 12",
    set_up: "SW1 as in figure 8 of Falcon, with tasks that compute, and Sparrow as the thesis rewrote it in C++, with one \
             scheduler. (The thesis speaks of 60 tasks a job at 100 %, which 60 executors cannot run: 30 a job and client fill them.)",
    differs: "Both medians and their factor come out at 95 %; at 50 % Bolt's is lower than published and the factor with it is larger. The thesis's Sparrow spends its time on locks between its threads, which are a cost for each task here.",
    cases,
    reduce,
};

const UTILISATIONS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
const CONTENDERS: [Contender; 3] = [MIDFLIGHT, BOLT, SPARROW];

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for utilisation in UTILISATIONS {
        let load = || sw1(utilisation, Work::Compute);
        cases.extend(CONTENDERS.map(|contender| contender.case(utilisation, sixty(), load(), sw1_time(effort))));
    }
    cases
}

/// From the 5th to the 95th percentile.
fn spread(result: &CellResult) -> f64 {
    delay(0.95)(result) - delay(0.05)(result)
}

fn reduce(results: &Results) -> Findings {
    let time = |case: &str, quantile| results.estimate(case, delay(quantile));
    let below = |case: &str, than: &str| results.mean(case, delay(0.5)) < results.mean(than, delay(0.5));
    let bolt_first = below("bolt@0.95", "sparrow@0.95") && below("bolt@0.5", "sparrow@0.5");
    let wider = results.factor("sparrow@0.95", "bolt@0.95", spread);
    let rows = vec![
        time_row("bolt-median-95", "Bolt, median at 95 %", Paper::Is(0.09e6), time("bolt@0.95", 0.5), bolt_first),
        time_row(
            "sparrow-median-95",
            "Sparrow, median at 95 %",
            Paper::Is(1.76e6),
            time("sparrow@0.95", 0.5),
            bolt_first,
        ),
        factor_row(
            "factor-median-95",
            "Sparrow's median by Bolt's, 95 %",
            Paper::Is(18.0),
            results.factor("sparrow@0.95", "bolt@0.95", delay(0.5)),
            bolt_first,
        ),
        factor_row(
            "factor-median-50",
            "medians, 50 %",
            Paper::Is(7.0),
            results.factor("sparrow@0.5", "bolt@0.5", delay(0.5)),
            bolt_first,
        ),
        factor_row(
            "spread-95",
            "Sparrow's spread by Bolt's (5th to 95th percentile), 95 %",
            Paper::Says("far wider"),
            wider,
            wider.is_some_and(|factor| factor.mean > 2.0),
        ),
        time_row(
            "midflight-median-95",
            "Midflight, median at 95 %",
            Paper::AtMost(0.09e6),
            time("midflight@0.95", 0.5),
            below("midflight@0.95", "sparrow@0.95"),
        ),
    ];
    Findings { rows, plots: vec![plot(results)], notes: vec![] }
}

fn plot(results: &Results) -> Plot {
    let mark = |y, hue| Mark { x: 0.95, y, hue };
    Plot {
        name: "delay",
        title: "Median delay; whiskers from the 5th to the 95th percentile".into(),
        x: UTILISATION,
        y: DELAY,
        curves: CONTENDERS.iter().map(|contender| medians(results, contender, &UTILISATIONS)).collect(),
        marks: vec![mark(0.09e6, BOLT.hue), mark(1.76e6, SPARROW.hue)],
    }
}
