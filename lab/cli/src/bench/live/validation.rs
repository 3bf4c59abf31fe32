//! The same cluster in the simulator, with costs measured live: is the simulator to be believed?

use super::arrivals::{Arrivals, SLEEP_NS};
use super::cluster::Ground;
use super::contender::Contender;
use super::falcon_8::{NODES, SLOTS, cell, run};
use super::rounds::{Quantity, Rounds};
use super::{Live, Point};
use crate::bench::ratio;
use crate::engines::LabEngine;
use crate::median::{at, median};
use anyhow::Result;
use midflight_endpoint::{MS, Nanos};
use midflight_papers::cell::{self, Cell, Linux, Load, Measured, Scheme, Work};
use midflight_terminal::envelope::Measure;
use midflight_terminal::machine::cores;
use std::collections::BTreeMap;

/// Loads that are compared.
const PLACES: [u32; 2] = [50, 80];
/// Tasks of the larger job.
const MANY: u32 = 30;
/// Idle jobs, and their interval. Each finds an idle cluster.
const JOBS: u64 = 100;
const APART: Nanos = 25 * MS;
/// The simulator's idle clusters: each gets one job.
const CLUSTERS: u64 = 9;

/// Times in a cluster that is otherwise idle, in nanoseconds: medians over jobs, but for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Idle {
    /// Delay of a task alone.
    alone: f64,
    /// Its 95th percentile.
    alone_p95: f64,
    /// Delay of the first task of [`MANY`] to start.
    first: f64,
    /// CPU time of an executor that is woken, by these jobs.
    turn: f64,
    /// Lateness of a sleep's end.
    late: f64,
}

impl Idle {
    pub(super) fn measure(ground: Ground<'_>) -> Result<Self> {
        let ran = |tasks| run(ground, &[Arrivals::apart(JOBS, tasks, APART)]);
        let (one, many) = (ran(1)?.begun, ran(MANY)?);
        let late = one.iter().filter_map(|begun| Some(begun.ran?.saturating_sub(SLEEP_NS) as f64)).collect();
        let alone: Vec<f64> = one.iter().map(|begun| begun.delay() as f64).collect();
        let mut firsts: BTreeMap<Nanos, f64> = BTreeMap::new();
        for task in &many.begun {
            let first = firsts.entry(task.submitted).or_insert(f64::MAX);
            *first = first.min(task.delay() as f64);
        }
        let (alone_p95, first) = (at(alone.clone(), 0.95), median(firsts.into_values().collect()));
        Ok(Self { alone: median(alone), alone_p95, first, turn: many.turn, late: median(late) })
    }

    fn of_rounds(rounds: &[Self]) -> Self {
        let of = |of: fn(&Self) -> f64| median(rounds.iter().map(of).collect());
        Self {
            alone: of(|idle| idle.alone),
            alone_p95: of(|idle| idle.alone_p95),
            first: of(|idle| idle.first),
            turn: of(|idle| idle.turn),
            late: of(|idle| idle.late),
        }
    }

    /// The costs with which the simulator's idle clusters take these times.
    fn costs(&self, is_process: bool) -> Result<Measured> {
        let turns = Measured { turn_ns: self.turn as u32, is_process, ..Measured::default() };
        let (alone, first) = (delay(turns, 1)?, delay(turns, MANY)?);
        let task = ((self.first - self.alone) - (first - alone)) / f64::from(MANY - 1);
        // The median of an exponential distribution is its mean times ln 2, and the 95th percentile exceeds it by its mean times ln 10.
        // A disturbed tail does not move the median.
        let jitter =
            ((self.alone_p95 - self.alone) / 10_f64.ln()).min((self.alone - alone - task) / 2_f64.ln()).max(0.0);
        // A task passes two ways before it starts. The turn of its end is a part of its lateness.
        let without_ways = delay(Measured { task_ns: task.max(0.0) as u32, ..turns }, 1)?;
        let way = (self.alone - without_ways - jitter * 2_f64.ln()) / 2.0;
        let [task_ns, way_ns, jitter_ns, late_ns] =
            [task, way, jitter, self.late - self.turn].map(|ns| ns.max(0.0) as u32);
        Ok(Measured { task_ns, way_ns, jitter_ns, late_ns, ..turns })
    }
}

/// The median over idle clusters of the smallest delay in a job, in nanoseconds.
fn delay(costs: Measured, tasks: u32) -> Result<f64> {
    let utilisation = f64::from(tasks) / f64::from(NODES as u32 * SLOTS);
    let load = Load::Sw1 { clients: 1, utilisation, work: Work::Compute };
    // Executors register in the first milliseconds. The second job would come after the end.
    let cell = |seed| Cell { load: load.clone(), seed, warmup_ms: 3, duration_ms: 10, ..cell(&Point::default()) };
    let delays = (0..CLUSTERS).map(|seed| Ok(cell::run(&with(costs, cell(seed)))?.delay.at(0.0) * 1e6));
    let delays: Vec<f64> = delays.collect::<Result<_>>()?;
    Ok(median(delays.into_iter().filter(|delay| delay.is_finite()).collect()))
}

fn with(costs: Measured, cell: Cell) -> Cell {
    let linux = Linux { shared_cores: cores(), measured: Some(costs), ..Linux::default() };
    Cell { scheme: Scheme::MidflightKernel(linux), ..cell }
}

/// `validation.falcon-8.ENGINE.…`: live by simulated, over the rounds, and the costs.
pub(super) fn measures(
    figure: &Live,
    rounds: &Rounds,
    idle: &[(Contender, Idle)],
    points: impl Fn(u32) -> Vec<Point>,
) -> Result<Vec<Measure>> {
    let mut measures = Vec::new();
    for contender in rounds.contenders() {
        let Some(engine) = contender.engine() else { continue };
        let own: Vec<Idle> = idle.iter().filter(|(who, _)| *who == contender).map(|(_, idle)| *idle).collect();
        let idle = Idle::of_rounds(&own);
        let costs = idle.costs(engine == LabEngine::User)?;
        let name = format!("validation.{}.{}", figure.name, contender.key());
        for (what, ns) in [
            ("alone", idle.alone),
            ("alone_p95", idle.alone_p95),
            ("first", idle.first),
            ("late", idle.late),
            ("turn", costs.turn_ns.into()),
            ("task", costs.task_ns.into()),
            ("way", costs.way_ns.into()),
            ("jitter", costs.jitter_ns.into()),
        ] {
            measures.push(Measure::quantity(&format!("{name}.{what}_us"), ns / 1e3, "us"));
        }
        for place in PLACES {
            let cells = points(place).into_iter().map(|point| with(costs, cell(&point)));
            let simulated = cells.map(|cell| Ok(cell::run(&cell)?.delay)).collect::<Result<Vec<_>>>()?;
            let quantiles = [("p50", Quantity::P50, 0.5), ("p95", Quantity::P95, 0.95), ("p99", Quantity::P99, 0.99)];
            for (what, quantity, quantile) in quantiles {
                let simulated: Vec<f64> = simulated.iter().map(|delay| delay.at(quantile) * 1e6).collect();
                let (name, live) = (format!("{name}.{place}.{what}"), rounds.of(contender, place, quantity));
                measures.extend(ratio::measures(&name, ".ratio", live, &simulated));
            }
        }
    }
    Ok(measures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_found_again_from_the_delays_that_they_make() {
        for is_process in [false, true] {
            let given = Measured { turn_ns: 30_000, task_ns: 2_000, way_ns: 20_000, is_process, ..Measured::default() };
            let (alone, first) = (delay(given, 1).unwrap(), delay(given, MANY).unwrap());
            assert!(
                alone > 70_000.0 && first > alone + 50_000.0,
                "two ways and a turn, then 29 tasks: {alone}, {first}"
            );
            let idle = Idle { alone, alone_p95: alone, first, turn: 30_000.0, late: 70_000.0 };
            let found = idle.costs(is_process).unwrap();
            for (given, found) in [(30_000, found.turn_ns), (2_000, found.task_ns), (20_000, found.way_ns)] {
                assert!((f64::from(found) / f64::from(given) - 1.0).abs() < 0.05, "{given} ns, found {found}");
            }
            assert_eq!(found.late_ns, 40_000, "the turn of an end is counted once");
        }
    }
}
