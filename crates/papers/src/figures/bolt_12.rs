//! Bolt, figure 12: scheduling delay against load, with tasks that compute and the thesis's own Sparrow.

use super::contenders::{BOLT, Contender, MIDFLIGHT, SPARROW, medians_plot, sw1_cases};
use super::results::{Case, Results, delay};
use super::{Effort, Figure};
use crate::cell::{CellResult, Work};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::Mark;
use crate::findings::{Findings, Row};

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
    sw1_cases(&CONTENDERS, &UTILISATIONS, Work::Compute, effort)
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
        Row::new(Time, "bolt-median-95", "Bolt, median at 95 %", Is(0.09e6)).found(time("bolt@0.95", 0.5), bolt_first),
        Row::new(Time, "sparrow-median-95", "Sparrow, median at 95 %", Is(1.76e6))
            .found(time("sparrow@0.95", 0.5), bolt_first),
        Row::new(Factor, "factor-median-95", "Sparrow's median by Bolt's, 95 %", Is(18.0))
            .found(results.factor("sparrow@0.95", "bolt@0.95", delay(0.5)), bolt_first),
        Row::new(Factor, "factor-median-50", "medians, 50 %", Is(7.0))
            .found(results.factor("sparrow@0.5", "bolt@0.5", delay(0.5)), bolt_first),
        Row::new(Factor, "spread-95", "Sparrow's spread by Bolt's (5th to 95th percentile), 95 %", Says("far wider"))
            .found_if(wider, |mean| mean > 2.0),
        Row::new(Time, "midflight-median-95", "Midflight, median at 95 %", AtMost(0.09e6))
            .found(time("midflight@0.95", 0.5), below("midflight@0.95", "sparrow@0.95")),
    ];
    let marks = [(0.09e6, BOLT.hue), (1.76e6, SPARROW.hue)].map(|(y, hue)| Mark { x: 0.95, y, hue });
    let plot = medians_plot(results, &CONTENDERS, &UTILISATIONS, marks.into());
    Findings { rows, plots: vec![plot], notes: vec![] }
}
