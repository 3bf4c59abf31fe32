//! Bolt, figure 13a: delays of a real workload with tasks that compute.

use super::contenders::{
    ASIC_SAFE, BOLT, BOLT_SERVER, Beside, Contender, MIDFLIGHT, MIDFLIGHT_KERNEL, MIDFLIGHT_SERVER, RunTime, SPARROW,
    TRACE_LOAD, computing, delays_plot, trace, trace_time,
};
use super::results::{Case, Results, delay};
use super::traces::{TraceFile, shown};
use super::{Effort, Figure, Reduce};
use crate::cell::{CellResult, Work};
use crate::differences;
use crate::findings::Class::{Hypothetical, Measured, Seen, Set};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::Mark;
use crate::findings::{Band, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-13a",
    title: "A bursty workload on 176 executors",
    source: "Bolt (thesis, §5.4), figure 13a",
    set_up: "A trace with a median task of 5 ms, on 176 executors on 11 nodes, for three minutes; tasks compute. Sparrow is the C++ one with one \
             scheduler. The thesis gives no load: it is chosen so that bursts begin to wait between the 90th and the 95th percentile of \
             the tasks, as there.",
    differs: differences::BOLT_13A,
    cases,
    columns,
    reduce: Reduce::Tasks(reduce),
};

pub(super) const PLACE: &str = "176";
const CONTENDERS: [Contender; 6] = [MIDFLIGHT, MIDFLIGHT_KERNEL, MIDFLIGHT_SERVER, BOLT, BOLT_SERVER, SPARROW];
/// Short enough for a pipeline, whose idle polls, five million events a second, cannot be elided.
const SHORT: &str = "176-short";
const SHORTLY: [Contender; 3] = [ASIC_SAFE, BOLT, SPARROW];
/// 95th percentile of Bolt's delay, which determined the load.
const TAIL: f64 = 5e6;
const CLOSE: f64 = 3.0;

fn cases(effort: Effort) -> Vec<Case> {
    let load = || trace(TRACE_LOAD, Work::Compute, false);
    let mut cases = CONTENDERS.map(|contender| contender.case(PLACE, computing(), load(), trace_time(effort))).to_vec();
    let short = RunTime { warmup_ms: 1_000, duration_ms: effort.pick(6_000, 2_000), drain_ms: 20_000 };
    cases.extend(SHORTLY.map(|contender| contender.case(SHORT, computing(), load(), short)));
    cases
}

fn columns(effort: Effort, trace: &TraceFile) -> Vec<Case> {
    let load = || trace.load(TRACE_LOAD, Work::Compute, false);
    CONTENDERS.map(|contender| contender.case(trace.place(PLACE), computing(), load(), trace_time(effort))).to_vec()
}

fn reduce(results: &Results) -> Findings {
    let mut rows = rows(results, PLACE);
    let beside = Beside { words_end: ", a short run", ..beside(SHORT) };
    rows.extend(beside.rows(results, (ASIC_SAFE, Hypothetical)));
    let mut notes = vec![format!("The trace asks for {:.1} % of the cluster's time.", TRACE_LOAD * 100.0)];
    for trace in shown(results, |trace| BOLT.at(trace.place(PLACE))) {
        let place = trace.place(PLACE);
        rows.extend(trace.column(trace.class_of_13a(), self::rows(results, &place)));
        notes.push(trace.note(results, &BOLT.at(&place)));
    }
    let marks = vec![
        Mark { x: 0.04e6, y: 0.5, hue: BOLT.hue },
        Mark { x: TAIL, y: 0.95, hue: BOLT.hue },
        Mark { x: 1.6e6, y: 0.5, hue: SPARROW.hue },
    ];
    let plot = delays_plot(results, &CONTENDERS, PLACE, marks);
    Findings { rows, plots: vec![plot], notes, ..Findings::default() }
}

fn beside(place: &str) -> Beside<'_> {
    Beside { published: &BOLT, paper_ns: 0.04e6, slower: &SPARROW, place, name_end: "", words_end: "" }
}

/// With the generated workload or a real trace.
fn rows(results: &Results, place: &str) -> Vec<Row> {
    let median = |contender: &Contender| results.estimate(&contender.at(place), delay(0.5));
    let by = |over: &Contender, under: &Contender, quantile| {
        results.factor(&over.at(place), &under.at(place), delay(quantile))
    };
    let above =
        |over: &Contender, under: &Contender, quantile| Holds::within(by(over, under, quantile), Band::from(1.0));
    let order = above(&SPARROW, &BOLT, 0.5);
    // The tail's factor is closer to one than the median's.
    let tail = |result: &CellResult| delay(0.5)(result) / delay(0.95)(result);
    let kernel = beside(place).rows(results, (MIDFLIGHT_KERNEL, Measured));
    let rows = vec![
        Row::new(Seen, Time, "bolt-median", "Bolt, median", Is(0.04e6)).found(median(&BOLT), order),
        Row::new(Set("SAMPLE_TASKS"), Time, "sparrow-median", "Sparrow, median", Is(1.6e6))
            .found(median(&SPARROW), order),
        Row::new(Seen, Factor, "factor-median", "Sparrow's median by Bolt's", Is(40.0))
            .found(by(&SPARROW, &BOLT, 0.5), order),
        Row::new(Set("TRACE_LOAD"), Factor, "factor-p90", "90th percentiles", Is(13.0))
            .found(by(&SPARROW, &BOLT, 0.9), above(&SPARROW, &BOLT, 0.9)),
        Row::new(Set("TRACE_LOAD"), Factor, "factor-p95", "95th percentiles: bursts", Is(1.0))
            .found(by(&SPARROW, &BOLT, 0.95), results.is_above(&SPARROW.at(place), &BOLT.at(place), tail)),
        Row::new(Set("TRACE_LOAD"), Time, "bolt-p95", "Bolt, 95th percentile", Is(TAIL))
            .found(results.estimate(&BOLT.at(place), delay(0.95)), order),
        Row::new(
            Seen,
            Factor,
            "bolt-server-median",
            "Bolt-Server's median by Bolt's",
            Says("close", Band::up_to(CLOSE)),
        )
        .found(by(&BOLT_SERVER, &BOLT, 0.5), above(&SPARROW, &BOLT_SERVER, 0.5)),
        Row::new(Hypothetical, Time, "midflight-median", "Midflight at a Tofino's pass time, median", AtMost(0.04e6))
            .found(median(&MIDFLIGHT), above(&SPARROW, &MIDFLIGHT, 0.5)),
    ];
    rows.into_iter().chain(kernel).collect()
}
