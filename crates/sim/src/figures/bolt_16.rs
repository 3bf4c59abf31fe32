//! Bolt, figure 16: what looking at several levels costs a retrieval.

use super::contenders::{BOLT, Contender, MIDFLIGHT, computing, trace, trace_time};
use super::plot::{Axis, Curve, Plot, Point, Scale};
use super::results::{Case, Results, level_step};
use super::{Effort, Estimate, Figure, Findings, Paper, Row, Unit};
use crate::cell::{CellResult, Step, Work};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-16",
    title: "Retrieval by priority",
    source: "Bolt (thesis, §5.6), figure 16",
    set_up: "The run of figure 15 with levels: the time of get_task by the level of the task it got. Bolt's switch looks at one \
             level in each pass and recirculates to the next; Midflight's core looks at all levels in one.",
    differs: "A recirculation always takes the same time in the simulated switch, so that the 90th percentile grows as the median does; the thesis's grows faster. Midflight's core finds the level in one pass.",
    cases,
    reduce,
};

const PLACE: &str = "levels";
/// As in figure 15.
const LOAD: f64 = 0.62;
const CONTENDERS: [Contender; 2] = [BOLT, MIDFLIGHT];

fn cases(effort: Effort) -> Vec<Case> {
    let time = trace_time(effort);
    let load = || trace(LOAD, Work::Compute, true);
    CONTENDERS.map(|contender| contender.case(PLACE, computing(), load(), time)).to_vec()
}

fn get_task(level: u8, quantile: f64) -> impl Fn(&CellResult) -> f64 {
    level_step(level, Step::GetTask, quantile)
}

/// How much longer one level's takes than another's.
fn longer(level: u8, than: u8, quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| get_task(level, quantile)(result) - get_task(than, quantile)(result)
}

fn reduce(results: &Results) -> Findings {
    let bolt = |quantity: &dyn Fn(&CellResult) -> f64| results.estimate(&BOLT.at(PLACE), quantity);
    let median = bolt(&longer(4, 1, 0.5));
    let step = bolt(&|result| longer(4, 1, 0.9)(result) / 3.0);
    let grows = |estimate: Option<Estimate>| estimate.is_some_and(|estimate| estimate.mean > 0.0);
    let row = |name, what, paper, ours, holds| Row { name, what, unit: Unit::Time, paper, ours, holds };
    let rows = vec![
        row("median-level-4", "Bolt: median at level 4, less that at level 1", Paper::Is(2e3), median, grows(median)),
        row("p90-by-level", "Bolt: 90th percentile, more by each level", Paper::Is(1.5e3), step, grows(step)),
        row(
            "midflight-level-4",
            "Midflight: median at level 4, less that at level 1",
            Paper::AtMost(2e3),
            results.estimate(&MIDFLIGHT.at(PLACE), longer(4, 1, 0.5)),
            true,
        ),
    ];
    Findings { rows, plots: vec![plot(results)], notes: vec![] }
}

fn plot(results: &Results) -> Plot {
    let curve = |contender: &Contender, quantile: f64, name: &str, dashed| {
        let at = |level: u8| results.mean(&contender.at(PLACE), get_task(level, quantile));
        let points = (1..=4u8).map(|level| Point::new(f64::from(level), at(level))).filter(|point| point.y.is_finite());
        Curve {
            name: format!("{}, {name}", contender.label),
            hue: contender.hue,
            dashed,
            points: points.collect(),
            dots: true,
        }
    };
    let curves = CONTENDERS
        .iter()
        .flat_map(|contender| [curve(contender, 0.5, "median", false), curve(contender, 0.9, "90th percentile", true)]);
    Plot {
        name: "get-task",
        title: "Time of a retrieval by the level of its task".into(),
        x: Axis { label: "priority level (1 is the highest)", scale: Scale::Whole },
        y: Axis { label: "get_task", scale: Scale::Time },
        curves: curves.collect(),
        marks: vec![],
    }
}
