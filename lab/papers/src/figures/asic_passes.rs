//! The asic engine's passes: the cost of searching the queue, by its length.

use super::results::{Case, Results};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{Cell, CellResult, Cluster, Load, Program, Scheme};
use crate::differences;
use crate::findings::Class::Hypothetical;
use crate::findings::Paper::{AtMost, Says};
use crate::findings::Unit::{Count, Factor};
use crate::findings::plot::{Axis, Curve, Hue, Plot, Point, Scale};
use crate::findings::{Band, Findings, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "asic-passes",
    title: "Passes of a retrieval",
    source: "the swap search of Bolt (thesis, §3.4.3), on this project's programs",
    set_up: "The asic engine's two programs on their machine, one packet after the other. A queue of one level is kept at a length, \
             and each of its tasks is one that the asking executor may not run with some probability. Mixed: each retrieval finds \
             the queue as it was drawn. Emptied: the executor goes on until it has had all that it may run, and nothing comes; what \
             it may not run stays at the head. In vain: it may run none of the tasks.",
    differs: differences::ASIC_PASSES,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const LENGTHS: [u32; 9] = [1, 2, 8, 32, 128, 512, 2_048, 8_192, 32_768];
const LONGEST: u32 = 32_768;
/// Emptying takes a number of passes quadratic in the length.
const EMPTIED: u32 = 8_192;
/// Percent of tasks that the executor may not run.
const MIXES: [u32; 5] = [0, 10, 50, 90, 99];
/// With the passes of a retrieval from level 4.
const PROGRAMS: [(&str, Program, f64); 2] = [("safe", Program::Safe, 1.0), ("published", Program::Published, 4.0)];
const NEAR: f64 = 1.1;

fn place(length: u32, mix: u32) -> String {
    format!("{length}-{mix}")
}

fn case((key, program, _): (&str, Program, f64), length: u32, mix: u32, retrievals: u32) -> Case {
    let load = Load::Queue { length, unfit: f64::from(mix) / 100.0, retrievals, emptied: length <= EMPTIED };
    let (scheme, cluster) = (Scheme::AsicPasses { program }, Cluster::uniform(1, 1));
    let cell = Cell { scheme, cluster, load, seed: 0, warmup_ms: 0, duration_ms: 1, drain_ms: 0 };
    Case { name: format!("{key}@{}", place(length, mix)), cell: cell.into() }
}

fn cases(effort: Effort) -> Vec<Case> {
    let retrievals = effort.pick(5_000, 200);
    let of =
        |program| LENGTHS.into_iter().flat_map(move |length| MIXES.map(|mix| case(program, length, mix, retrievals)));
    PROGRAMS.into_iter().flat_map(of).collect()
}

fn counter(result: &CellResult, name: &str) -> f64 {
    result.counters.get(name).map_or(f64::NAN, |&number| number as f64)
}

fn each(part: &'static str) -> impl Fn(&CellResult) -> f64 {
    move |result| counter(result, &format!("{part}.passes")) / counter(result, &format!("{part}.tasks"))
}

fn passes(part: &'static str) -> impl Fn(&CellResult) -> f64 {
    move |result| counter(result, &format!("{part}.passes"))
}

fn reduce(results: &Results) -> Findings {
    let at = |key: &str, length, mix| format!("{key}@{}", place(length, mix));
    let mean = |key: &str, length, mix, part| results.mean(&at(key, length, mix), each(part));
    let near = |value: f64, of: f64| (value / of - 1.0).abs() < NEAR - 1.0;
    let mut rows = Vec::new();
    for (key, _, of_level_4) in PROGRAMS {
        let row = |unit, name: &str, what: &str, paper| {
            Row::new(Hypothetical, unit, format!("{key}-{name}"), format!("{key}: {what}"), paper)
        };
        let expected = |mix| 100.0 / f64::from(100 - mix);
        let flat = LENGTHS
            .iter()
            .filter(|&&length| length >= 2_048)
            .all(|&length| MIXES.iter().all(|&mix| near(mean(key, length, mix, "mixed"), expected(mix))));
        let mixed = results.estimate(&at(key, LONGEST, 99), each("mixed"));
        let what = "passes a task, where one of 100 may be run, of 32,768";
        rows.push(row(Count, "mixed", what, Says("100, however long", Band::around(100.0, NEAR))).found(mixed, flat));
        let slope = results.estimate(&at(key, LONGEST, 0), |result| passes("vain")(result) / f64::from(LONGEST));
        let linear = LENGTHS
            .iter()
            .filter(|&&length| length >= 128)
            .all(|&length| near(results.mean(&at(key, length, 0), passes("vain")), f64::from(length)));
        let what = "passes of a search in vain, by the length";
        let says = Says("to the end of the queue", Band::around(1.0, NEAR));
        rows.push(row(Factor, "in-vain", what, says).found(slope, linear));
        let emptied = results.estimate(&at(key, EMPTIED, 50), |result| each("emptied")(result) / f64::from(EMPTIED));
        let halves = MIXES
            .iter()
            .filter(|&&mix| mix > 0)
            .all(|&mix| near(mean(key, EMPTIED, mix, "emptied"), f64::from(EMPTIED * mix) / 200.0));
        let what = "passes a task as a queue is emptied, by the length, half may be run";
        rows.push(row(Factor, "emptied", what, Says("linear", Band::around(0.25, NEAR))).found(emptied, halves));
        let submit = results.estimate(&at(key, LONGEST, 0), each("submit"));
        let once = Says("one", Band::between(1.0, NEAR));
        rows.push(row(Factor, "submit", "passes of a submission, a task", once).found_alone(submit));
        let level = results.estimate(&at(key, 1, 0), passes("level4"));
        let level_row = row(Count, "level-4", "passes of a retrieval from level 4", AtMost(of_level_4));
        rows.push(level_row.found_alone(level));
    }
    Findings { rows, plots: vec![mixed_plot(results), linear_plot(results)], notes: vec![], ..Findings::default() }
}

/// Omits what was not counted.
fn curve(results: &Results, key: &str, mix: u32, looks: (String, Hue), quantity: impl Fn(&CellResult) -> f64) -> Curve {
    let point =
        |length: u32| Point::new(f64::from(length), results.mean(&format!("{key}@{}", place(length, mix)), &quantity));
    let points = LENGTHS.into_iter().map(point).filter(|point| point.y > 0.0);
    Curve { dashed: key != PROGRAMS[0].0, ..Curve::measured(looks.0, looks.1, points) }
}

const LENGTH: Axis = Axis { label: "tasks in the queue", scale: Scale::LogNumber };

fn mixed_plot(results: &Results) -> Plot {
    let of = |(mix, number): (u32, u8)| {
        let looks = (format!("may not run {mix} %"), if mix == 0 { Hue::Other } else { Hue::Nth(number - 1) });
        curve(results, "safe", mix, looks, each("mixed"))
    };
    Plot {
        name: "mixed",
        title: "Passes a task, from a mixed queue (both programs)".into(),
        x: LENGTH,
        y: Axis { label: "passes a task", scale: Scale::LogNumber },
        curves: MIXES.into_iter().zip(0..).map(of).collect(),
        marks: vec![],
    }
}

fn linear_plot(results: &Results) -> Plot {
    let emptied = MIXES.into_iter().zip(0..).skip(1).map(|(mix, number): (u32, u8)| {
        curve(results, "safe", mix, (format!("emptied, may not run {mix} %"), Hue::Nth(number - 1)), each("emptied"))
    });
    let vain = |key: &str, hue| curve(results, key, 0, (format!("in vain, {key}"), hue), passes("vain"));
    let curves = [vain("safe", Hue::Other), vain("published", Hue::Published)];
    Plot {
        name: "linear",
        title: "Passes of searches that grow with the queue".into(),
        x: LENGTH,
        y: Axis { label: "passes", scale: Scale::LogNumber },
        curves: curves.into_iter().chain(emptied).collect(),
        marks: vec![],
    }
}
