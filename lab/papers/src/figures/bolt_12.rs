//! Bolt, figure 12: scheduling delay against load, with tasks that compute and the thesis's own Sparrow.

use super::contenders::{
    ASIC_SAFE, BOLT, Beside, Contender, MIDFLIGHT, MIDFLIGHT_KERNEL, OURS, SPARROW, SPARROW_JAVA, medians_plot,
    sw1_cases,
};
use super::results::{Case, Results, delay, job_delay};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Sampling, Scheme, Work};
use crate::differences;
use crate::findings::Class::{Hypothetical, Predicted, Seen, Set};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::Mark;
use crate::findings::{Band, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-12",
    title: "Scheduling delay against load, tasks that compute",
    source: "Bolt (thesis, §5.3), figure 12",
    set_up: "SW1 as in figure 8 of Falcon, with tasks that compute, and Sparrow as the thesis rewrote it in C++, with one \
             scheduler. (The thesis speaks of 60 tasks a job at 100 %, which 60 executors cannot run: 30 a job and client fill them.)",
    differs: differences::BOLT_12,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const UTILISATIONS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
const FAR: f64 = 2.0;
const CONTENDERS: [Contender; 5] = [MIDFLIGHT, MIDFLIGHT_KERNEL, ASIC_SAFE, BOLT, SPARROW];
const EVERYWHERE: [Contender; 4] = [MIDFLIGHT, MIDFLIGHT_KERNEL, BOLT, SPARROW];
/// A pipeline's idle polls cannot be elided, so only the ends are run.
const ENDS: [f64; 2] = [0.5, 0.95];
/// The thesis says what its rewrite gains over the original (§5.1.2), without naming the load.
const JAVA: Contender =
    Contender { key: "sparrow-java", scheme: || Scheme::SparrowJava(Sampling::default()), ..SPARROW_JAVA };

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = sw1_cases(&EVERYWHERE, &UTILISATIONS, Work::Compute, effort);
    cases.extend(sw1_cases(&[ASIC_SAFE], &ENDS, Work::Compute, effort));
    cases.extend(sw1_cases(&[JAVA], &[0.5], Work::Compute, effort));
    cases
}

/// From the 5th to the 95th percentile.
fn spread(result: &CellResult) -> f64 {
    delay(0.95)(result) - delay(0.05)(result)
}

fn reduce(results: &Results) -> Findings {
    let time = |case: &str, quantile| results.estimate(case, delay(quantile));
    let first = |who: &Contender, place: f64| results.is_above(&SPARROW.at(place), &who.at(place), delay(0.5));
    let bolt_first = first(&BOLT, 0.95).and(first(&BOLT, 0.5));
    let factor = |place: f64| results.factor(&SPARROW.at(place), &BOLT.at(place), delay(0.5));
    let java = results.factor(&JAVA.at(0.5), &SPARROW.at(0.5), delay(0.5));
    let rows = vec![
        Row::new(Seen, Time, "bolt-median-95", "Bolt, median at 95 %", Is(0.09e6))
            .found(time("bolt@0.95", 0.5), bolt_first),
        Row::new(Set("SPARROW_CPP.reserve"), Time, "sparrow-median-95", "Sparrow, median at 95 %", Is(1.76e6))
            .found(time("sparrow@0.95", 0.5), bolt_first),
        Row::new(Seen, Factor, "factor-median-95", "Sparrow's median by Bolt's, 95 %", Is(18.0))
            .found(factor(0.95), bolt_first),
        Row::new(Seen, Factor, "factor-median-50", "medians, 50 %", Is(7.0)).found(factor(0.5), bolt_first),
        Row::new(
            Seen,
            Factor,
            "spread-95",
            "Sparrow's spread by Bolt's (5th to 95th percentile), 95 %",
            Says("far wider", Band::from(FAR)),
        )
        .found_alone(results.factor("sparrow@0.95", "bolt@0.95", spread)),
        Row::new(
            Predicted,
            Factor,
            "java-by-cpp",
            "The Java Sparrow's median delay by that of the C++ one, 50 %",
            Is(2.0),
        )
        .found(java, Holds::within(java, Band::from(1.0))),
        Row::new(
            Hypothetical,
            Time,
            "midflight-median-95",
            "Midflight at a Tofino's pass time, median at 95 %",
            AtMost(0.09e6),
        )
        .found(time("midflight@0.95", 0.5), first(&MIDFLIGHT, 0.95)),
    ];
    let beside = Beside {
        published: &BOLT,
        paper_ns: 0.09e6,
        slower: &SPARROW,
        place: "0.95",
        name_end: "-95",
        words_end: ", 95 %",
    };
    let ours = OURS.into_iter().flat_map(|who| beside.rows(results, who));
    let rows = rows.into_iter().chain(ours).chain(of_jobs(results)).collect();
    let marks = [(0.09e6, BOLT.hue), (1.76e6, SPARROW.hue)].map(|(y, hue)| Mark { x: 0.95, y, hue });
    let plot = medians_plot(results, &CONTENDERS, &UTILISATIONS, marks.into());
    Findings { rows, plots: vec![plot], notes: vec![], ..Findings::default() }
}

/// The same for jobs, the figure's subject: the start of a job's last task. Class seen: a constant was fitted to their tasks' delays.
fn of_jobs(results: &Results) -> Vec<Row> {
    let factor = |place: f64, quantity: &dyn Fn(&CellResult) -> f64| {
        results.factor(&SPARROW.at(place), &BOLT.at(place), quantity)
    };
    let above = |place| Holds::within(factor(place, &job_delay(0.5)), Band::from(1.0));
    let first = above(0.95).and(above(0.5));
    let row = |unit, name, what, paper| Row::new(Seen, unit, name, what, paper);
    let spread = |result: &CellResult| job_delay(0.95)(result) - job_delay(0.05)(result);
    vec![
        row(Time, "bolt-job-median-95", "Jobs: Bolt, median at 95 %", Is(0.09e6))
            .found(results.estimate(&BOLT.at(0.95), job_delay(0.5)), first),
        row(Time, "sparrow-job-median-95", "Jobs: Sparrow, median at 95 %", Is(1.76e6))
            .found(results.estimate(&SPARROW.at(0.95), job_delay(0.5)), first),
        row(Factor, "factor-job-median-95", "Jobs: Sparrow's median by Bolt's, 95 %", Is(18.0))
            .found(factor(0.95, &job_delay(0.5)), first),
        row(Factor, "factor-job-median-50", "Jobs: medians, 50 %", Is(7.0)).found(factor(0.5, &job_delay(0.5)), first),
        row(
            Factor,
            "spread-job-95",
            "Jobs: Sparrow's spread by Bolt's (5th to 95th percentile), 95 %",
            Says("far wider", Band::from(FAR)),
        )
        .found_alone(factor(0.95, &spread)),
    ]
}
