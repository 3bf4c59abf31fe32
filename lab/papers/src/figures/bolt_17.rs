//! Bolt, figure 17: tasks that only some nodes may run.

use super::contenders::{BOLT, Contender, MIDFLIGHT, RunTime};
use super::results::{Case, Results};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Cluster, Group, Load};
use crate::differences;
use crate::findings::Class::{Hypothetical, Seen, Set};
use crate::findings::Paper::{Is, Says};
use crate::findings::Unit::{Share, Time};
use crate::findings::plot::{Axis, Curve, Hue, Plot, Point, Scale};
use crate::findings::{Band, Class, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-17",
    title: "Tasks with resource constraints",
    source: "Bolt (thesis, §5.7), figure 17",
    set_up: "SW2: a job of 90 tasks of 20 ms every 20 ms. All ask resource A for 30 s, then B, then C. G1 has A, G2 A and B, G3 A, B \
             and C. The thesis gives no sizes: each group has three nodes of 18 executors, as the end at 110 s implies for G3 \
             (135,000 tasks in 50 s).",
    differs: differences::BOLT_17,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const PLACE: &str = "sw2";
const CONTENDERS: [Contender; 2] = [BOLT, MIDFLIGHT];
const GROUP_NAMES: [&str; 3] = ["G1 (A)", "G2 (A, B)", "G3 (A, B, C)"];
/// Executors of a node, and tasks a second that each can complete.
const EXECUTORS: u32 = 18;
const TASKS_PER_S: f64 = 50.0;
/// Shares of a node's capacity.
const BUSY: f64 = 0.2;
const IDLE: f64 = 0.02;
/// Groups that may run each phase's tasks, as in the thesis's figure.
const MAY: [[bool; 3]; 3] = [[true, true, true], [false, true, true], [false, false, true]];
/// In phases.
const LAST_END: f64 = 110.0 / 30.0;
/// More than the three phases: tasks waited for G3.
const OVERLOADED: f64 = 3.1;

fn cases(effort: Effort) -> Vec<Case> {
    let group = |resources| Group { nodes: 3, executors: EXECUTORS, resources };
    let cluster = || Cluster { groups: vec![group(0b001), group(0b011), group(0b111)], shards: 1 };
    let time = RunTime { warmup_ms: 0, duration_ms: effort.pick(90_000, 9_000), drain_ms: 120_000 };
    CONTENDERS.map(|contender| contender.case(PLACE, cluster(), Load::Sw2, time)).to_vec()
}

/// From the 4,500 tasks submitted per second.
fn phase_ms(result: &CellResult) -> f64 {
    result.submitted as f64 / 4_500.0 / 3.0 * 1e3
}

/// Of a node, in the middle half of a phase, as a share of its capacity.
fn share_busy(result: &CellResult, group: usize, phase: usize) -> f64 {
    let Some(series) = result.groups.get(group) else { return f64::NAN };
    let phase_ms = phase_ms(result);
    let bucket = |share: f64| ((phase as f64 + share) * phase_ms / series.bucket_ms.max(1) as f64) as usize;
    let (from, to) = (bucket(0.25), bucket(0.75).max(bucket(0.25) + 1));
    // The series ends with the group's last task.
    let ended: f64 = (from..to).map(|index| series.ended_per_node_s.get(index).copied().unwrap_or(0.0)).sum();
    ended / (to - from) as f64 / (f64::from(EXECUTORS) * TASKS_PER_S)
}

fn as_drawn(result: &CellResult, phase: usize) -> bool {
    (0..3).all(|group| {
        let share = share_busy(result, group, phase);
        if MAY[phase][group] { share > BUSY } else { share < IDLE }
    })
}

fn reduce(results: &Results) -> Findings {
    let phases = |contender: &Contender, class: Class, prefix: &str, who: &str| {
        let case = contender.at(PLACE);
        let phases = [
            (format!("{who}, first third: busy share of G1's executors"), "all groups are busy"),
            ("second third: of G2's".into(), "G2 and G3 are busy"),
            ("last third: of G3's".into(), "G3 alone is busy"),
        ];
        let row = |(phase, (what, says)): (usize, (String, &'static str))| {
            let ours = results.estimate(&case, |result| share_busy(result, phase, phase));
            let drawn = results.of(&case).iter().all(|result| as_drawn(result, phase));
            Row::new(class, Share, format!("{prefix}phase-{}", phase + 1), what, Says(says, Band::from(BUSY)))
                .found(ours, drawn)
        };
        phases.into_iter().enumerate().map(row).collect::<Vec<_>>()
    };
    let last_end = |contender: &Contender, class: Class, name: &str, what: &str| {
        let mean_phase = results.mean(&contender.at(PLACE), phase_ms);
        let phases = results.estimate(&contender.at(PLACE), |result| result.last_end_ms / phase_ms(result));
        Row::new(class, Time, name, what, Is(LAST_END * mean_phase * 1e6)).found(
            results.estimate(&contender.at(PLACE), |result| result.last_end_ms * 1e6),
            Holds::within(phases, Band::from(OVERLOADED)),
        )
    };
    let mut rows = phases(&BOLT, Seen, "", "Bolt");
    rows.push(last_end(&BOLT, Set("sizes of the groups"), "last-end", "Bolt: the last task ends"));
    rows.extend(phases(&MIDFLIGHT, Hypothetical, "midflight-", "Midflight at a Tofino's pass time"));
    rows.push(last_end(
        &MIDFLIGHT,
        Hypothetical,
        "midflight-last-end",
        "Midflight at a Tofino's pass time: the last task ends",
    ));
    Findings {
        rows,
        plots: CONTENDERS.iter().map(|contender| plot(results, contender)).collect(),
        notes: vec![],
        ..Findings::default()
    }
}

fn plot(results: &Results, contender: &Contender) -> Plot {
    let Some(first) = results.of(&contender.at(PLACE)).first() else { return empty(contender) };
    let curves = first.groups.iter().zip(GROUP_NAMES).zip(0..).map(|((series, name), index)| {
        let at_s = |bucket: usize| (bucket as f64 + 0.5) * series.bucket_ms as f64 / 1e3;
        let points = series.ended_per_node_s.iter().enumerate().map(|(bucket, &y)| Point::new(at_s(bucket), y));
        Curve { name: name.into(), hue: Hue::Nth(index), dashed: false, points: points.collect(), dots: false }
    });
    Plot { curves: curves.collect(), ..empty(contender) }
}

fn empty(contender: &Contender) -> Plot {
    Plot {
        name: contender.key,
        title: format!("{}: tasks that a node ends in a second, by group (first seed)", contender.label),
        x: Axis { label: "time", scale: Scale::Seconds },
        y: Axis { label: "tasks a second and node", scale: Scale::Number },
        curves: vec![],
        marks: vec![],
    }
}
