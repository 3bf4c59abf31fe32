//! Falcon, figure 8: scheduling delay against load.

use super::contenders::{Contender, FALCON, MIDFLIGHT, RunTime, SPARROW_JAVA, medians_plot, sixty, sw1, sw1_cases};
use super::results::{Case, Results, delay};
use super::{Effort, Figure};
use crate::cell::{Scheme, Work};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::{Hue, Mark};
use crate::findings::{Findings, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "falcon-8",
    title: "Scheduling delay against load, tasks that sleep",
    source: "Falcon (thesis, §3.5), figure 8",
    set_up: "SW1: two clients submit a job every 10 ms each, of tasks that sleep for 10 ms, to 60 executors on 10 nodes. The \
             tasks of a job set the utilisation. Sparrow is the Java original, with two schedulers on the clients' nodes. \
             Spark is a central scheduler with a cost for each task, and runs longer.",
    differs: "Medians, their factors and the order come out. The 95th percentiles do not: Falcon's is half of the published 0.25 ms, which neither polling (at most 50 µs) nor the costs of its programs explain, and none was added for it; Sparrow's is higher, as its executors fall behind between two jobs at 95 %. Midflight does not wait for a poll: a task that finds a parked executor starts a network's way later, at any load.",
    cases,
    reduce,
};

const UTILISATIONS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
const CONTENDERS: [Contender; 3] = [MIDFLIGHT, FALCON, SPARROW_JAVA];
const SPARK: Contender = Contender { key: "spark", label: "Spark", hue: Hue::Other, scheme: || Scheme::Spark };
/// A median that is this much higher at 95 % than at 50 % is not flat any more.
const FLAT: f64 = 1.25;
/// Delay of the longer run by that of one a quarter as long, from which on it grows without a bound.
const UNBOUNDED: f64 = 1.25;

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = sw1_cases(&CONTENDERS, &UTILISATIONS, Work::Sleep, effort);
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
    let below =
        |case: &str, than: &str, quantile| results.mean(case, delay(quantile)) < results.mean(than, delay(quantile));
    let falcon_first = below("bolt@0.95", "sparrow@0.95", 0.5) && below("bolt@0.5", "sparrow@0.5", 0.5);
    let falcon_tail_first = below("bolt@0.95", "sparrow@0.95", 0.95);
    let grows = results.factor("sparrow@0.95", "sparrow@0.5", delay(0.5));
    let flat = |key: &str| results.factor(&format!("{key}@0.95"), &format!("{key}@0.5"), delay(0.5));
    let is_flat = |key: &str| flat(key).is_some_and(|factor| factor.mean <= FLAT);
    let unbounded = results.factor("spark@0.6", "spark@0.6-short", delay(0.5));
    let rows = vec![
        Row::new(Time, "falcon-median-95", "Falcon, median at 95 %", Is(0.09e6))
            .found(time("bolt@0.95", 0.5), falcon_first),
        Row::new(Time, "falcon-p95-95", "Falcon, 95th percentile at 95 %", Is(0.25e6))
            .found(time("bolt@0.95", 0.95), falcon_tail_first),
        Row::new(Time, "sparrow-median-95", "Sparrow, median at 95 %", Is(2.22e6))
            .found(time("sparrow@0.95", 0.5), falcon_first),
        Row::new(Time, "sparrow-p95-95", "Sparrow, 95th percentile at 95 %", Is(2.68e6))
            .found(time("sparrow@0.95", 0.95), falcon_tail_first),
        Row::new(Factor, "factor-median-95", "Sparrow's median by Falcon's, 95 %", Is(23.0))
            .found(factor("bolt", "0.95", 0.5), falcon_first),
        Row::new(Factor, "factor-p95-95", "95th percentiles, 95 %", Is(9.7))
            .found(factor("bolt", "0.95", 0.95), falcon_tail_first),
        Row::new(Factor, "factor-median-50", "medians, 50 %", Is(22.0)).found(factor("bolt", "0.5", 0.5), falcon_first),
        Row::new(Factor, "falcon-flat", "Falcon's median at 95 % by that at 50 %", Says("flat"))
            .found(flat("bolt"), is_flat("bolt")),
        Row::new(Factor, "sparrow-grows", "Sparrow's median at 95 % by that at 50 %", Says("grows with the load"))
            .found_if(grows, |mean| mean > 1.0),
        Row::new(Time, "spark-median-50", "Spark, median at 50 %", Is(3e9))
            .found(time("spark@0.5", 0.5), below("sparrow@0.5", "spark@0.5", 0.5)),
        Row::new(
            Factor,
            "spark-unbounded",
            "Spark at 60 %: median of a run by that of one a quarter as long",
            Says("unbounded above 50 %"),
        )
        .found_if(unbounded, |mean| mean >= UNBOUNDED),
        Row::new(Time, "midflight-median-95", "Midflight, median at 95 %", AtMost(0.09e6))
            .found(time("midflight@0.95", 0.5), below("midflight@0.95", "sparrow@0.95", 0.5)),
        Row::new(Time, "midflight-p95-95", "Midflight, 95th percentile at 95 %", AtMost(0.25e6))
            .found(time("midflight@0.95", 0.95), below("midflight@0.95", "sparrow@0.95", 0.95)),
        Row::new(Factor, "midflight-flat", "Midflight's median at 95 % by that at 50 %", Says("flat"))
            .found(flat("midflight"), is_flat("midflight")),
    ];
    let marks = [(0.09e6, FALCON.hue), (2.22e6, SPARROW_JAVA.hue)].map(|(y, hue)| Mark { x: 0.95, y, hue });
    let plot = medians_plot(results, &CONTENDERS, &UTILISATIONS, marks.into());
    Findings { rows, plots: vec![plot], notes: vec![] }
}
