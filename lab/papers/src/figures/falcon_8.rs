//! Falcon, figure 8: scheduling delay against load.

use super::contenders::{
    ASIC_SAFE, Beside, Contender, FALCON, MIDFLIGHT, MIDFLIGHT_KERNEL, OURS, RunTime, SPARROW_JAVA, medians_plot,
    sixty, sw1, sw1_cases,
};
use super::results::{Case, Results, delay, job_delay};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Scheme, Work};
use crate::differences;
use crate::findings::Class::{Hypothetical, Measured, Seen, Set};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Share, Time};
use crate::findings::plot::{Hue, Mark};
use crate::findings::{Band, Estimate, Findings, Holds, Paper, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "falcon-8",
    title: "Scheduling delay against load, tasks that sleep",
    source: "Falcon (thesis, §3.5), figure 8",
    set_up: "SW1: two clients submit a job every 10 ms each, of tasks that sleep for 10 ms, to 60 executors on 10 nodes. The \
             tasks of a job set the utilisation. Sparrow is the Java original, with two schedulers on the clients' nodes. \
             Spark is a central scheduler with a cost for each task, and runs longer.",
    differs: differences::FALCON_8,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const UTILISATIONS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
const CONTENDERS: [Contender; 5] = [MIDFLIGHT, MIDFLIGHT_KERNEL, ASIC_SAFE, FALCON, SPARROW_JAVA];
const SPARK: Contender = Contender { key: "spark", label: "Spark", hue: Hue::Other, scheme: || Scheme::Spark };
const EVERYWHERE: [Contender; 4] = [MIDFLIGHT, MIDFLIGHT_KERNEL, FALCON, SPARROW_JAVA];
/// A pipeline's idle polls cannot be elided, so only the ends are run.
const ENDS: [f64; 2] = [0.5, 0.95];
/// Median at 95 % relative to 50 %.
const FLAT: f64 = 1.25;
const TASK_NS: f64 = 10e6;
/// Delay relative to that of a run a quarter as long.
const UNBOUNDED: f64 = 1.25;

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = sw1_cases(&EVERYWHERE, &UTILISATIONS, Work::Sleep, effort);
    cases.extend(sw1_cases(&[ASIC_SAFE], &ENDS, Work::Sleep, effort));
    let warmup_ms = effort.pick(5_000, 2_000);
    let seconds =
        |measured_s: u64| RunTime { warmup_ms, duration_ms: warmup_ms + measured_s * 1_000, drain_ms: 120_000 };
    let (short_s, long_s): (u64, u64) = effort.pick((20, 80), (5, 20));
    cases.push(SPARK.case("0.5", sixty(), sw1(0.5, Work::Sleep), seconds(long_s)));
    cases.push(SPARK.case("0.6-short", sixty(), sw1(0.6, Work::Sleep), seconds(short_s)));
    cases.push(SPARK.case("0.6", sixty(), sw1(0.6, Work::Sleep), seconds(long_s)));
    cases
}

fn reduce(results: &Results) -> Findings {
    let time = |case: &str, quantile| results.estimate(case, delay(quantile));
    let factor = |case: &str, place: &str, quantile| {
        results.factor(&SPARROW_JAVA.at(place), &format!("{case}@{place}"), delay(quantile))
    };
    let first = |case: &str, place: &str, quantile| {
        results.is_above(&SPARROW_JAVA.at(place), &format!("{case}@{place}"), delay(quantile))
    };
    let falcon_first = first("bolt", "0.95", 0.5).and(first("bolt", "0.5", 0.5));
    let falcon_tail_first = first("bolt", "0.95", 0.95);
    let rise = |key: &str| results.factor(&format!("{key}@0.95"), &format!("{key}@0.5"), delay(0.5));
    let rows = vec![
        Row::new(Set("SPARROW_JAVA.worker"), Time, "falcon-median-95", "Falcon, median at 95 %", Is(0.09e6))
            .found(time("bolt@0.95", 0.5), falcon_first),
        Row::new(Seen, Time, "falcon-p95-95", "Falcon, 95th percentile at 95 %", Is(0.25e6))
            .found(time("bolt@0.95", 0.95), falcon_tail_first),
        Row::new(Seen, Time, "sparrow-median-95", "Sparrow, median at 95 %", Is(2.22e6))
            .found(time("sparrow@0.95", 0.5), falcon_first),
        Row::new(Seen, Time, "sparrow-p95-95", "Sparrow, 95th percentile at 95 %", Is(2.68e6))
            .found(time("sparrow@0.95", 0.95), falcon_tail_first),
        Row::new(Seen, Factor, "factor-median-95", "Sparrow's median by Falcon's, 95 %", Is(23.0))
            .found(factor("bolt", "0.95", 0.5), falcon_first),
        Row::new(Seen, Factor, "factor-p95-95", "95th percentiles, 95 %", Is(9.7))
            .found(factor("bolt", "0.95", 0.95), falcon_tail_first),
        Row::new(Set("SPARROW_JAVA.submit"), Factor, "factor-median-50", "medians, 50 %", Is(22.0))
            .found(factor("bolt", "0.5", 0.5), falcon_first),
        Row::new(Set("CLIENT_LATE_NS"), Factor, "falcon-flat", "Falcon's median at 95 % by that at 50 %", flat())
            .found_alone(rise("bolt")),
        Row::new(
            Set("SPARROW_JAVA.reserve, cancel, worker"),
            Factor,
            "sparrow-grows",
            "Sparrow's median at 95 % by that at 50 %",
            Says("grows with the load", Band::from(1.0)),
        )
        .found_alone(rise("sparrow")),
        Row::new(Set("SPARK_JOB_NS"), Time, "spark-median-50", "Spark, median at 50 %", Is(3e9))
            .found(time("spark@0.5", 0.5), results.is_above("spark@0.5", "sparrow@0.5", delay(0.5))),
        Row::new(
            Set("SPARK_TASK_NS"),
            Factor,
            "spark-unbounded",
            "Spark at 60 %: median of a run by that of one a quarter as long",
            Says("unbounded above 50 %", Band::from(UNBOUNDED)),
        )
        .found_alone(results.factor("spark@0.6", "spark@0.6-short", delay(0.5))),
        // Derived from two rows above, one seen and one set.
        Row::new(Seen, Share, "falcon-faster", "Sparrow's median time of a task by Falcon's, less one, 95 %", Is(0.25))
            .found(results.factor("sparrow@0.95", "bolt@0.95", time_of_a_task).map(less_one), falcon_first),
        Row::new(
            Hypothetical,
            Time,
            "midflight-median-95",
            "Midflight at a Tofino's pass time, median at 95 %",
            AtMost(0.09e6),
        )
        .found(time("midflight@0.95", 0.5), first("midflight", "0.95", 0.5)),
        Row::new(Hypothetical, Time, "midflight-p95-95", "the same, 95th percentile at 95 %", AtMost(0.25e6))
            .found(time("midflight@0.95", 0.95), first("midflight", "0.95", 0.95)),
        Row::new(Hypothetical, Factor, "midflight-flat", "the same, median at 95 % by that at 50 %", flat())
            .found_alone(rise("midflight")),
        Row::new(
            Measured,
            Time,
            "midflight-kernel-p95-95",
            "Midflight in the kernel, 95th percentile at 95 %",
            AtMost(0.25e6),
        )
        .found(time("midflight-kernel@0.95", 0.95), first("midflight-kernel", "0.95", 0.95)),
        Row::new(Measured, Factor, "midflight-kernel-flat", "the same, median at 95 % by that at 50 %", flat())
            .found_alone(rise("midflight-kernel")),
    ];
    let beside = Beside {
        published: &FALCON,
        paper_ns: 0.09e6,
        slower: &SPARROW_JAVA,
        place: "0.95",
        name_end: "-95",
        words_end: ", 95 %",
    };
    let ours = OURS.into_iter().flat_map(|who| beside.rows(results, who));
    let rows = rows.into_iter().chain(ours).chain(of_jobs(results)).collect();
    let marks = [(0.09e6, FALCON.hue), (2.22e6, SPARROW_JAVA.hue)].map(|(y, hue)| Mark { x: 0.95, y, hue });
    let plot = medians_plot(results, &CONTENDERS, &UTILISATIONS, marks.into());
    Findings { rows, plots: vec![plot], notes: vec![], ..Findings::default() }
}

/// The same for jobs, the figure's subject: the start of a job's last task. Class seen: constants were fitted to their tasks' delays.
fn of_jobs(results: &Results) -> Vec<Row> {
    let time = |case: &str, quantile| results.estimate(case, job_delay(quantile));
    let factor =
        |place: &str, quantile| results.factor(&SPARROW_JAVA.at(place), &FALCON.at(place), job_delay(quantile));
    let above = |place: &str, quantile| Holds::within(factor(place, quantile), Band::from(1.0));
    let first = above("0.95", 0.5).and(above("0.5", 0.5));
    let rise = |key: &str| results.factor(&format!("{key}@0.95"), &format!("{key}@0.5"), job_delay(0.5));
    let row = |unit, name, what, paper| Row::new(Seen, unit, name, what, paper);
    vec![
        row(Time, "falcon-job-median-95", "Jobs: Falcon, median at 95 %", Is(0.09e6))
            .found(time("bolt@0.95", 0.5), first),
        row(Time, "falcon-job-p95-95", "Jobs: Falcon, 95th percentile at 95 %", Is(0.25e6))
            .found(time("bolt@0.95", 0.95), above("0.95", 0.95)),
        row(Time, "sparrow-job-median-95", "Jobs: Sparrow, median at 95 %", Is(2.22e6))
            .found(time("sparrow@0.95", 0.5), first),
        row(Time, "sparrow-job-p95-95", "Jobs: Sparrow, 95th percentile at 95 %", Is(2.68e6))
            .found(time("sparrow@0.95", 0.95), above("0.95", 0.95)),
        row(Factor, "factor-job-median-95", "Jobs: Sparrow's median by Falcon's, 95 %", Is(23.0))
            .found(factor("0.95", 0.5), first),
        row(Factor, "factor-job-p95-95", "Jobs: 95th percentiles, 95 %", Is(9.7))
            .found(factor("0.95", 0.95), above("0.95", 0.95)),
        row(Factor, "factor-job-median-50", "Jobs: medians, 50 %", Is(22.0)).found(factor("0.5", 0.5), first),
        row(Factor, "falcon-job-flat", "Jobs: Falcon's median at 95 % by that at 50 %", flat())
            .found_alone(rise("bolt")),
        row(
            Factor,
            "sparrow-job-grows",
            "Jobs: Sparrow's median at 95 % by that at 50 %",
            Says("grows with the load", Band::from(1.0)),
        )
        .found_alone(rise("sparrow")),
    ]
}

fn flat() -> Paper {
    Says("flat", Band::around(1.0, FLAT))
}

fn time_of_a_task(result: &CellResult) -> f64 {
    delay(0.5)(result) + TASK_NS
}

fn less_one(factor: Estimate) -> Estimate {
    Estimate { mean: factor.mean - 1.0, ..factor }
}
