//! Bolt, figure 15: queueing by priority.

use super::contenders::{BOLT, MIDFLIGHT, SHARE_OF_TASKS, computing, trace, trace_time};
use super::results::{Case, Results, level_step, step};
use super::{Effort, Figure};
use crate::cell::{CellResult, Step, Work};
use crate::findings::Paper::{Is, Says};
use crate::findings::Unit::{Factor, Time};
use crate::findings::plot::{Axis, Curve, Hue, Mark, Plot, Scale};
use crate::findings::{Estimate, Findings, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-15",
    title: "Queueing by priority, in overload",
    source: "Bolt (thesis, §5.6), figure 15",
    set_up: "The trace on 176 executors with four levels, of which 1.2, 1.7, 64.6 and 32.2 % of the tasks are, and the same without \
             levels (FIFO). The thesis gives no load, only that it is higher than in figure 13a: it is chosen so that FIFO's \
             median is about the thesis's; the levels follow.",
    differs: "One number, the load, is set by the median of FIFO; what the levels make of it is the result. It matters who gets a level: in Google's trace the tasks of a job have one, so that bursts queue behind themselves, and the two upper levels wait longer here than published, because jobs of all levels are equally large. With a draw for each task instead, level 1 hardly waits at all.",
    cases,
    reduce,
};

/// See the set-up.
const LOAD: f64 = 0.62;
const LEVELS: &str = "levels";
const FIFO: &str = "fifo";
/// The thesis's medians, level by level, and without levels.
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

/// The median of a level, or of all tasks.
fn median(level: Option<u8>) -> Box<dyn Fn(&CellResult) -> f64> {
    match level {
        Some(level) => Box::new(level_step(level, Step::Queueing, 0.5)),
        None => Box::new(step(Step::Queueing, 0.5)),
    }
}

fn reduce(results: &Results) -> Findings {
    let level = |key: &str, level| results.estimate(&format!("{key}@{LEVELS}"), median(Some(level)));
    let fifo = results.estimate(&BOLT.at(FIFO), median(None));
    let mean = |estimate: Option<Estimate>| estimate.map_or(f64::NAN, |estimate| estimate.mean);
    let ordered = |key: &str| (1..4).all(|above| mean(level(key, above)) <= mean(level(key, above + 1)));
    let order = ordered(BOLT.key) && mean(level(BOLT.key, 3)) < mean(fifo) && mean(fifo) < mean(level(BOLT.key, 4));
    let levels = NAMES.into_iter().zip(PAPER).zip(1..);
    let mut rows: Vec<Row> = levels
        .map(|(((name, what), paper), number)| {
            Row::new(Time, name, what, Is(paper)).found(level(BOLT.key, number), order)
        })
        .collect();
    rows.push(Row::new(Time, "fifo-median", "Bolt without levels: sets the load", Is(PAPER_FIFO)).found(fifo, order));
    let widest =
        results.estimate(&MIDFLIGHT.at(LEVELS), |result| median(Some(4))(result) / median(Some(1))(result).max(1.0));
    rows.push(
        Row::new(Factor, "midflight-order", "Midflight: level 4 by level 1", Says("levels in order"))
            .found(widest, ordered(MIDFLIGHT.key)),
    );
    let notes = vec![format!("The trace asks for {:.0} % of the cluster's time.", LOAD * 100.0)];
    Findings { rows, plots: vec![plot(results)], notes }
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
