//! Bolt, figure 16: the cost of searching several levels in a retrieval.

use super::contenders::{ASIC_PUBLISHED, ASIC_SAFE, BOLT, Contender, MIDFLIGHT, RunTime, computing, trace, trace_time};
use super::results::{Case, Results, level_step};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Step, Work};
use crate::differences;
use crate::findings::Class::{Hypothetical, Seen, Set};
use crate::findings::Paper::{AtMost, Is};
use crate::findings::Unit::Time;
use crate::findings::plot::{Axis, Curve, Plot, Point, Scale};
use crate::findings::{Band, Estimate, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-16",
    title: "Retrieval by priority",
    source: "Bolt (thesis, §5.6), figure 16",
    set_up: "The run of figure 15 with levels: the time of get_task by the level of the task it got. Bolt's switch looks at one \
             level in each pass and recirculates to the next, in a model that charges for it; Midflight's core looks at all levels in one. \
             The asic engines are programs of a pipeline, packet by packet, with executors that poll: asic-published recirculates \
             from level to level, asic-safe finds all levels in one pass. They run for 20 s, as each idle poll is simulated; a seed without a task of level 1 in that time is left out.",
    differs: differences::BOLT_16,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const PLACE: &str = "levels";
/// As in figure 15.
const LOAD: f64 = 0.62;
const CONTENDERS: [Contender; 2] = [BOLT, MIDFLIGHT];
/// The same, for a shorter time.
const SHORT: &str = "levels-short";
const PIPELINES: [Contender; 2] = [ASIC_PUBLISHED, ASIC_SAFE];

fn cases(effort: Effort) -> Vec<Case> {
    let time = trace_time(effort);
    let load = || trace(LOAD, Work::Compute, true);
    let short = RunTime { warmup_ms: 2_000, duration_ms: effort.pick(20_000, 6_000), drain_ms: 60_000 };
    let long = CONTENDERS.map(|contender| contender.case(PLACE, computing(), load(), time));
    let short = PIPELINES.map(|contender| contender.case(SHORT, computing(), load(), short));
    [long, short].concat()
}

fn get_task(level: u8, quantile: f64) -> impl Fn(&CellResult) -> f64 {
    level_step(level, Step::GetTask, quantile)
}

fn longer(level: u8, than: u8, quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| get_task(level, quantile)(result) - get_task(than, quantile)(result)
}

fn reduce(results: &Results) -> Findings {
    let bolt = |quantity: &dyn Fn(&CellResult) -> f64| results.estimate(&BOLT.at(PLACE), quantity);
    let median = bolt(&longer(4, 1, 0.5));
    let step = bolt(&|result| longer(4, 1, 0.9)(result) / 3.0);
    // Level 1 may have no job within 18 s.
    let pipeline = |contender: &Contender| results.estimate_where_it_occurs(&contender.at(SHORT), longer(4, 1, 0.5));
    let (published, safe) = (pipeline(&ASIC_PUBLISHED), pipeline(&ASIC_SAFE));
    let grows = |estimate: Option<Estimate>| Holds::within(estimate, Band::from(0.0));
    let rows = vec![
        Row::new(
            Set("RECIRCULATION_NS"),
            Time,
            "median-level-4",
            "Bolt: median at level 4, less that at level 1",
            Is(2e3),
        )
        .found(median, grows(median)),
        Row::new(Seen, Time, "p90-by-level", "Bolt: 90th percentile, more by each level", Is(1.5e3))
            .found(step, grows(step)),
        Row::new(
            Hypothetical,
            Time,
            "midflight-level-4",
            "Midflight at a Tofino's pass time: median at level 4, less that at level 1",
            AtMost(2e3),
        )
        .found_alone(results.estimate(&MIDFLIGHT.at(PLACE), longer(4, 1, 0.5))),
        Row::new(
            Hypothetical,
            Time,
            "asic-published-level-4",
            "asic-published: median at level 4, less that at level 1",
            Is(2e3),
        )
        .found(published, grows(published)),
        Row::new(
            Hypothetical,
            Time,
            "asic-safe-level-4",
            "asic-safe: median at level 4, less that at level 1",
            AtMost(2e3),
        )
        .found_alone(safe),
    ];
    Findings { rows, plots: vec![plot(results)], notes: vec![], ..Findings::default() }
}

fn plot(results: &Results) -> Plot {
    let curve = |contender: &Contender, place: &str, quantile: f64, name: &str, dashed| {
        let found = |level: u8| results.estimate_where_it_occurs(&contender.at(place), get_task(level, quantile));
        let at = |level: u8| found(level).map_or(f64::NAN, |estimate| estimate.mean);
        let points = (1..=4u8).map(|level| Point::new(f64::from(level), at(level)));
        Curve { dashed, ..Curve::measured(format!("{}, {name}", contender.label), contender.hue, points) }
    };
    let all = CONTENDERS.iter().map(|contender| (contender, PLACE));
    let curves = all.chain(PIPELINES.iter().map(|contender| (contender, SHORT))).flat_map(|(contender, place)| {
        [curve(contender, place, 0.5, "median", false), curve(contender, place, 0.9, "90th percentile", true)]
    });
    Plot {
        name: "get-task",
        title: "Time of a retrieval by the level of its task".into(),
        x: Axis { label: "priority level (1 is the highest)", scale: Scale::Whole },
        y: Axis { label: "get_task", scale: Scale::Time },
        curves: curves.collect(),
        marks: vec![],
    }
}
