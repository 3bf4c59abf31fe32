//! Bolt, figure 13b: the same load on a cluster 12.5 times as large.

use super::contenders::{
    BOLT, BOLT_SERVER, Beside, Contender, MIDFLIGHT, MIDFLIGHT_KERNEL, MIDFLIGHT_SERVER, RunTime, SPARROW, SPARROW_TWO,
    TRACE_LOAD, delays_plot, sleeping, trace,
};
use super::results::{Case, Results, delay};
use super::traces::{TraceFile, shown};
use super::{Effort, Figure, Reduce};
use crate::cell::Work;
use crate::differences;
use crate::findings::Class::{Hypothetical, Measured, Predicted, Seen};
use crate::findings::Paper::{AtMost, Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::Mark;
use crate::findings::{Band, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-13b",
    title: "A bursty workload on 2,200 executors",
    source: "Bolt (thesis, §5.4), figure 13b",
    set_up: "The trace at the load of figure 13a, for three minutes, on 2,200 executors on 11 nodes, whose tasks sleep: the sample is 12.5 times as \
             large, and with it the jobs. Executors of Bolt and Bolt-Server that find nothing ask again after 50 µs. Asic-safe is left out: its \
             2,200 executors poll 44 million times a second, and as none of its polls is left out, a run would take hours.",
    differs: differences::BOLT_13B,
    cases,
    columns,
    reduce: Reduce::Tasks(reduce),
};

const PLACE: &str = "2200";
const CONTENDERS: [Contender; 7] =
    [MIDFLIGHT, MIDFLIGHT_KERNEL, MIDFLIGHT_SERVER, BOLT, BOLT_SERVER, SPARROW, SPARROW_TWO];
const OTHERS: [Contender; 3] = [BOLT_SERVER, SPARROW, SPARROW_TWO];

fn cases(effort: Effort) -> Vec<Case> {
    let time = effort.pick(
        RunTime { warmup_ms: 5_000, duration_ms: 185_000, drain_ms: 60_000 },
        RunTime { warmup_ms: 500, duration_ms: 2_500, drain_ms: 20_000 },
    );
    let load = || trace(TRACE_LOAD, Work::Sleep, false);
    CONTENDERS.map(|contender| contender.case(PLACE, sleeping(), load(), time)).to_vec()
}

/// A trace ends after seconds and is then sampled again.
fn columns(effort: Effort, trace: &TraceFile) -> Vec<Case> {
    let time = effort.pick(
        RunTime { warmup_ms: 5_000, duration_ms: 65_000, drain_ms: 60_000 },
        RunTime { warmup_ms: 500, duration_ms: 2_500, drain_ms: 20_000 },
    );
    let load = || trace.load(TRACE_LOAD, Work::Sleep, false);
    CONTENDERS.map(|contender| contender.case(trace.place(PLACE), sleeping(), load(), time)).to_vec()
}

fn reduce(results: &Results) -> Findings {
    let mut rows = rows(results, PLACE);
    let mut notes =
        vec![format!("The trace asks for {:.1} % of the cluster's time, as in bolt-13a.", TRACE_LOAD * 100.0)];
    for trace in shown(results, |trace| BOLT.at(trace.place(PLACE))) {
        let place = trace.place(PLACE);
        rows.extend(trace.column(Predicted, self::rows(results, &place)));
        notes.push(trace.note(results, &BOLT.at(&place)));
    }
    let mark = |x, hue| Mark { x, y: 0.5, hue };
    let marks = vec![
        mark(0.14e6, BOLT.hue),
        mark(40e6, SPARROW.hue),
        mark(14e6, SPARROW_TWO.hue),
        mark(370e6, BOLT_SERVER.hue),
    ];
    let plot = delays_plot(results, &CONTENDERS, PLACE, marks);
    Findings { rows, plots: vec![plot], notes, ..Findings::default() }
}

/// With the generated workload or a real trace.
fn rows(results: &Results, place: &str) -> Vec<Row> {
    let median = |contender: &Contender| results.estimate(&contender.at(place), delay(0.5));
    let above = |over: &Contender, under: &Contender| results.is_above(&over.at(place), &under.at(place), delay(0.5));
    let by = |under: &Contender| {
        let at = |contender: &Contender| results.mean(&contender.at(place), delay(0.5));
        let least = OTHERS.iter().min_by(|a, b| at(a).total_cmp(&at(b)))?;
        results.factor(&least.at(place), &under.at(place), delay(0.5))
    };
    let bolt_first = OTHERS.iter().fold(Holds::Yes, |first, other| first.and(above(other, &BOLT)));
    let collapsed = above(&BOLT_SERVER, &SPARROW).and(above(&SPARROW, &SPARROW_TWO));
    let beside =
        Beside { published: &BOLT, paper_ns: 0.14e6, slower: &SPARROW_TWO, place, name_end: "", words_end: "" };
    let kernel = beside.rows(results, (MIDFLIGHT_KERNEL, Measured));
    let rows = vec![
        Row::new(Seen, Time, "bolt-median", "Bolt, median", Is(0.14e6)).found(median(&BOLT), bolt_first),
        Row::new(Seen, Time, "sparrow-median", "Sparrow, median", Is(40e6)).found(median(&SPARROW), collapsed),
        Row::new(Seen, Time, "sparrow-2-median", "Sparrow with two schedulers, median", Is(14e6))
            .found(median(&SPARROW_TWO), collapsed),
        Row::new(Seen, Time, "bolt-server-median", "Bolt-Server, median: it collapses under polls", Is(370e6))
            .found(median(&BOLT_SERVER), collapsed),
        Row::new(Seen, Factor, "factor-median", "The best of the others by Bolt, medians", Is(100.0))
            .found(by(&BOLT), bolt_first),
        Row::new(Hypothetical, Time, "midflight-median", "Midflight at a Tofino's pass time, median", AtMost(0.14e6))
            .found(median(&MIDFLIGHT), above(&SPARROW_TWO, &MIDFLIGHT)),
        Row::new(
            Hypothetical,
            Factor,
            "midflight-server-beats",
            "The best of the others by Midflight as a server with Bolt-Server's costs, medians",
            Says("a server that parks beats all others", Band::from(1.0)),
        )
        .found_alone(by(&MIDFLIGHT_SERVER)),
    ];
    rows.into_iter().chain(kernel).collect()
}
