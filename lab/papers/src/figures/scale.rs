//! Beyond the papers: a cluster that grows to a million executors.

use super::contenders::{Contender, DELAY, MIDFLIGHT, RunTime};
use super::results::{Case, Results, delay};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Cluster, Load};
use crate::differences;
use crate::findings::Class::Hypothetical;
use crate::findings::Paper::{AtMost, Says};
use crate::findings::Unit::{Count, Factor, PerSecond};
use crate::findings::plot::{Axis, Curve, Hue, Plot, Point, Scale};
use crate::findings::{Band, Findings, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "scale",
    title: "Clusters of up to a million executors",
    source: "beyond the papers",
    set_up: "Midflight's switch and endpoints as they are shipped, at a Tofino's pass time (hypothetical), tasks of 5 ms at 80 % of the cluster's time, for 50 ms; nodes of \
             64 executors. A switch serves up to 15,625 executors; beyond, nodes and jobs are shared among switches, up to 64. With \
             --quick up to 64,000 executors only.",
    differs: differences::SCALE,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

/// Executors and switches.
const SIZES: [(u32, u32); 4] = [(1_000, 1), (10_000, 1), (100_000, 7), (1_000_000, 64)];
const QUICK: [(u32, u32); 3] = [(1_000, 1), (8_000, 1), (64_000, 5)];
const EXECUTORS_PER_NODE: u32 = 64;
/// Largest cluster relative to smallest.
const FLAT: f64 = 1.5;
/// Packets a second of the papers' switch (Bolt §5.2).
const SWITCH_LIMIT: f64 = 4.7e9;
const PACKETS: &str = "switch.packets";

fn cases(effort: Effort) -> Vec<Case> {
    let sizes = effort.pick(&SIZES[..], &QUICK[..]);
    let time = RunTime { warmup_ms: 20, duration_ms: effort.pick(50, 40), drain_ms: 100 };
    let case = |&(executors, shards): &(u32, u32)| {
        let nodes = executors.div_ceil(EXECUTORS_PER_NODE);
        let cluster = Cluster { shards, ..Cluster::uniform(nodes, EXECUTORS_PER_NODE) };
        let clients = (executors / 1_000).clamp(1, 1_000);
        let load = Load::Mix { short_us: 5_000.0, long_us: 5_000.0, short_share: 1.0, load: 0.8, clients };
        MIDFLIGHT.case(executors, cluster, load, time)
    };
    sizes.iter().map(case).collect()
}

fn sizes(results: &Results) -> Vec<(u32, u32)> {
    let run = |&(executors, _): &(u32, u32)| !results.of(&MIDFLIGHT.at(executors)).is_empty();
    let full: Vec<_> = SIZES.into_iter().filter(run).collect();
    let quick: Vec<_> = QUICK.into_iter().filter(run).collect();
    if full.len() >= quick.len() { full } else { quick }
}

fn reduce(results: &Results) -> Findings {
    let sizes = sizes(results);
    let (Some(&(least, _)), Some(&(most, shards))) = (sizes.first(), sizes.last()) else {
        return Findings { rows: vec![], plots: vec![], notes: vec![], ..Findings::default() };
    };
    let of = |executors: u32| MIDFLIGHT.at(executors);
    let flat = |quantile| results.factor(&of(most), &of(least), delay(quantile));
    let lost = results.estimate(&of(most), |result| result.submitted.abs_diff(result.ended) as f64);
    let packets = results.estimate(&of(most), |result| packets_per_s(result) / f64::from(shards));
    let is_flat = || Says("flat", Band::up_to(FLAT));
    let none = Says("none", Band::between(0.0, 0.0));
    let rows = vec![
        Row::new(Hypothetical, Factor, "median-flat", "Median delay, largest cluster by smallest", is_flat())
            .found_alone(flat(0.5)),
        Row::new(Hypothetical, Factor, "p99-flat", "99th percentile, largest cluster by smallest", is_flat())
            .found_alone(flat(0.99)),
        Row::new(Hypothetical, Count, "lost", "Tasks that did not end, or ended twice, largest cluster", none)
            .found_alone(lost),
        Row::new(
            Hypothetical,
            PerSecond,
            "switch-packets",
            "Packets a second at each switch, largest cluster",
            AtMost(SWITCH_LIMIT),
        )
        .found_alone(packets),
    ];
    Findings {
        rows,
        plots: vec![delays_plot(results, &sizes), load_plot(results, &sizes)],
        notes: vec![],
        ..Findings::default()
    }
}

fn packets_per_s(result: &CellResult) -> f64 {
    let packets = result.counters.get(PACKETS).map_or(f64::NAN, |&packets| packets as f64);
    packets / (result.last_end_ms / 1e3)
}

const EXECUTORS: Axis = Axis { label: "executors", scale: Scale::LogNumber };

fn delays_plot(results: &Results, sizes: &[(u32, u32)]) -> Plot {
    let curve = |name: &str, hue, quantile| {
        let at = |executors: u32| results.mean(&MIDFLIGHT.at(executors), delay(quantile));
        Curve::measured(name, hue, sizes.iter().map(|&(n, _)| Point::new(f64::from(n), at(n))))
    };
    Plot {
        name: "delay",
        title: "Scheduling delay as the cluster grows".into(),
        x: EXECUTORS,
        y: DELAY,
        curves: vec![
            curve("median", Hue::Ours, 0.5),
            curve("99th percentile", Hue::Nth(1), 0.99),
            curve("99.9th percentile", Hue::Nth(0), 0.999),
        ],
        marks: vec![],
    }
}

fn load_plot(results: &Results, sizes: &[(u32, u32)]) -> Plot {
    let Contender { hue, .. } = MIDFLIGHT;
    let curve = |name: &str, hue, each: bool| {
        let points = sizes.iter().map(|&(executors, shards)| {
            let packets = results.mean(&MIDFLIGHT.at(executors), packets_per_s);
            Point::new(f64::from(executors), if each { packets / f64::from(shards) } else { packets })
        });
        Curve::measured(name, hue, points)
    };
    Plot {
        name: "load",
        title: "Packets at the switches".into(),
        x: EXECUTORS,
        y: Axis { label: "packets a second", scale: Scale::LogNumber },
        curves: vec![curve("all switches", Hue::Other, false), curve("each switch", hue, true)],
        marks: vec![],
    }
}
