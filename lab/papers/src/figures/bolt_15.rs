//! Bolt, figure 15: queueing by priority.

use super::contenders::{BOLT, Contender, MIDFLIGHT, SHARE_OF_TASKS, computing, trace, trace_time};
use super::results::{Case, Results, level_step, step};
use super::traces::{TraceFile, shown};
use super::{Effort, Figure, Reduce};
use crate::cell::{CellResult, Step, Work};
use crate::differences;
use crate::findings::Class::{Hypothetical, Predicted, Seen, Set};
use crate::findings::Paper::{Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::{Axis, Curve, Hue, Mark, Plot, Scale};
use crate::findings::{Band, Estimate, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-15",
    title: "Queueing by priority, in overload",
    source: "Bolt (thesis, §5.6), figure 15",
    set_up: "The trace on 176 executors with four levels, of which 1.2, 1.7, 64.6 and 32.2 % of the tasks are, and the same without \
             levels (FIFO). The thesis gives no load, only that it is higher than in figure 13a: it is chosen so that FIFO's \
             median is about the thesis's; the levels follow.",
    differs: differences::BOLT_15,
    cases,
    columns,
    reduce: Reduce::Tasks(reduce),
};

const LOAD: f64 = 0.62;
const LEVELS: &str = "levels";
const FIFO: &str = "fifo";
/// From the thesis.
const PAPER: [f64; 4] = [1.4e6, 2.9e6, 13.3e6, 53.5e6];
const PAPER_FIFO: f64 = 39.5e6;
const NAMES: [(&str, &str); 4] = [
    ("level-1-median", "Bolt, median queueing at level 1"),
    ("level-2-median", "level 2"),
    ("level-3-median", "level 3"),
    ("level-4-median", "level 4"),
];

fn cases(effort: Effort) -> Vec<Case> {
    let time = trace_time(effort);
    let of = |place, priorities| {
        let load = trace(LOAD, Work::Compute, priorities);
        [BOLT, MIDFLIGHT].map(|contender| contender.case(place, computing(), load.clone(), time))
    };
    [of(LEVELS, true), of(FIFO, false)].concat()
}

fn median(level: Option<u8>) -> Box<dyn Fn(&CellResult) -> f64> {
    match level {
        Some(level) => Box::new(level_step(level, Step::Queueing, 0.5)),
        None => Box::new(step(Step::Queueing, 0.5)),
    }
}

/// Smallest factor between successive levels.
fn least_step(quantity: impl Fn(u8, &CellResult) -> f64) -> impl Fn(&CellResult) -> f64 {
    move |result| {
        (1..4).map(|level| quantity(level + 1, result) / quantity(level, result)).fold(f64::INFINITY, f64::min)
    }
}

/// The median would be 0 if waiting executors take most tasks at once.
fn mean_queueing(level: u8, result: &CellResult) -> f64 {
    let queueing = result.levels.get(&level).and_then(|level| level.steps.get(&Step::Queueing));
    queueing.map_or(f64::NAN, |queueing| queueing.mean_ms)
}

fn columns(effort: Effort, trace: &TraceFile) -> Vec<Case> {
    let of = |place: &str, priorities| {
        let load = trace.load(LOAD, Work::Compute, priorities);
        let case = |who: Contender| who.case(trace.place(place), computing(), load.clone(), trace_time(effort));
        [BOLT, MIDFLIGHT].map(case)
    };
    [of(LEVELS, true), of(FIFO, false)].concat()
}

fn reduce(results: &Results) -> Findings {
    let mut rows = rows(results, str::to_owned);
    let mut notes = vec![format!("The trace asks for {:.0} % of the cluster's time.", LOAD * 100.0)];
    for trace in shown(results, |trace| BOLT.at(trace.place(LEVELS))) {
        rows.extend(trace.column(Predicted, self::rows(results, |place| trace.place(place))));
        notes.push(trace.note(results, &BOLT.at(trace.place(LEVELS))));
    }
    Findings { rows, plots: vec![plot(results)], notes, ..Findings::default() }
}

/// With the generated workload or a real trace.
fn rows(results: &Results, place: impl Fn(&str) -> String) -> Vec<Row> {
    let [bolt, without] = [LEVELS, FIFO].map(|of| BOLT.at(place(of)));
    let level = |level| results.estimate(&bolt, median(Some(level)));
    let fifo = results.estimate(&without, median(None));
    let medians = results.estimate(&bolt, least_step(|level, result| median(Some(level))(result)));
    let pairs = results.of(&bolt).iter().zip(results.of(&without));
    // FIFO's median lies between those of levels 3 and 4.
    let between = pairs.map(|(levels, fifo)| {
        let [third, fourth] = [3, 4].map(|level| median(Some(level))(levels));
        (median(None)(fifo) / third).min(fourth / median(None)(fifo))
    });
    let between = Estimate::of(&between.collect::<Vec<_>>());
    let order = Holds::within(medians, Band::from(1.0)).and(Holds::within(between, Band::from(1.0)));
    let levels = NAMES.into_iter().zip(PAPER).zip(1..);
    let mut rows: Vec<Row> = levels
        .map(|(((name, what), paper), number)| Row::new(Seen, Time, name, what, Is(paper)).found(level(number), order))
        .collect();
    let fifo_row = Row::new(Set("LOAD of this figure"), Time, "fifo-median", "Bolt without levels", Is(PAPER_FIFO));
    rows.push(fifo_row.found(fifo, order));
    let ours = results.estimate(&MIDFLIGHT.at(place(LEVELS)), least_step(mean_queueing));
    let what = "Midflight at a Tofino's pass time: mean queueing of a level by that of the one above, the least";
    let ours_row = Row::new(Hypothetical, Factor, "midflight-order", what, Says("levels in order", Band::from(1.0)));
    rows.push(ours_row.found_alone(ours));
    rows
}

fn plot(results: &Results) -> Plot {
    let curve = |number: u8| {
        let name = format!("level {number}");
        results.distribution(&BOLT.at(LEVELS), &name, Hue::Nth(number - 1), |result| {
            result.levels.get(&number).and_then(|level| level.steps.get(&Step::Queueing))
        })
    };
    let mut curves: Vec<Curve> = (1..=4).map(curve).collect();
    curves.push(
        results.distribution(&BOLT.at(FIFO), "without levels (FIFO)", Hue::Other, |result| {
            result.steps.get(&Step::Queueing)
        }),
    );
    let marks = (0..4u8).zip(PAPER).map(|(index, x)| Mark { x, y: 0.5, hue: Hue::Nth(index) });
    Plot {
        name: "queueing",
        title: "Bolt: share of tasks that queued no longer than a time".into(),
        x: Axis { label: "queueing", scale: Scale::LogTime },
        y: SHARE_OF_TASKS,
        curves,
        marks: marks.chain([Mark { x: PAPER_FIFO, y: 0.5, hue: Hue::Other }]).collect(),
    }
}
