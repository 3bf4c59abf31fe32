//! Bolt, figure 11: decisions a second that each scheme can sustain.

use super::contenders::{
    AS_FAST, ASIC_SAFE, BOLT, BOLT_SERVER, Contender, MIDFLIGHT, MIDFLIGHT_KERNEL, MIDFLIGHT_SERVER, RunTime,
};
use super::results::{Case, Results};
use super::{Effort, Figure, Reduce, traces};
use crate::cell::{CellResult, Cluster, Load, Sampling, Scheme};
use crate::differences;
use crate::findings::Class::{Hypothetical, Measured, Seen, Set};
use crate::findings::Paper::{AtLeast, Is, Says};
use crate::findings::Unit::{Factor, PerSecond};
use crate::findings::plot::{Axis, Curve, Hue, Mark, Plot, Point, Scale};
use crate::findings::{Band, Class, Estimate, Findings, Holds, Row};

pub(super) const FIGURE: Figure = Figure {
    name: "bolt-11",
    title: "Scheduling decisions a second",
    source: "Bolt (thesis, §5.2), figure 11",
    set_up: "Tasks that end at once, on up to 720 executors on 10 nodes, with enough of them queued (128 in flight for each executor). Sparrow does \
             not probe: its executors ask a scheduler of their own accord. Firmament is quoted from its authors, through the thesis.",
    differs: differences::BOLT_11,
    cases,
    columns: traces::none,
    reduce: Reduce::Tasks(reduce),
};

const NODES: u32 = 10;
const PER_NODE: [u32; 6] = [1, 6, 15, 30, 48, 72];
/// Longer than a client takes to resubmit what was lost among polls.
const LASTING: [(&str, u32); 2] = [("150-lasting", 15), ("720-lasting", 72)];
/// For Asic-safe and Bolt. Clients need 0.13 s to detect that this switch keeps no record of tasks. Until then they accept no completion,
/// so a short run measures none.
const SETTLED: (&str, u32) = ("720-settled", 72);
/// Tasks in flight per executor. With fewer, Bolt-Server loses more than its clients have.
const BACKLOG: u32 = 128;
const FIRMAMENT: f64 = 240e3;
/// From 150 executors to 720.
const FLAT: f64 = 1.15;
/// Decisions per executor and second at 720 executors, relative to 60.
const LINEAR: f64 = 1.1;

const ONE: Contender = Contender {
    key: "sparrow",
    label: "Sparrow, one scheduler",
    hue: Hue::Sparrow,
    scheme: || Scheme::SparrowCpp(Sampling { probing: false, ..Sampling::default() }),
};
const FOUR: Contender = Contender {
    key: "sparrow-4",
    label: "Sparrow, four schedulers",
    hue: Hue::SparrowFour,
    scheme: || Scheme::SparrowCpp(Sampling { probing: false, schedulers: 4, ..Sampling::default() }),
};
const CONTENDERS: [Contender; 7] = [MIDFLIGHT, MIDFLIGHT_KERNEL, BOLT, MIDFLIGHT_SERVER, BOLT_SERVER, ONE, FOUR];

fn cases(effort: Effort) -> Vec<Case> {
    let time = RunTime { warmup_ms: effort.pick(20, 10), duration_ms: effort.pick(50, 20), drain_ms: 1_000 };
    let load = || Load::Noop { clients: 8, backlog: BACKLOG };
    let mut cases = Vec::new();
    for per_node in PER_NODE {
        let cluster = || Cluster::uniform(NODES, per_node);
        cases.extend(CONTENDERS.map(|contender| contender.case(NODES * per_node, cluster(), load(), time)));
    }
    let lasting = RunTime { warmup_ms: 300, duration_ms: 1_000, drain_ms: 1_000 };
    let last = |(place, per_node)| BOLT_SERVER.case(place, Cluster::uniform(NODES, per_node), load(), lasting);
    cases.extend(LASTING.map(last));
    let settled = RunTime { warmup_ms: 180, duration_ms: 190, drain_ms: 1_000 };
    let (place, per_node) = SETTLED;
    let late = |contender: Contender| contender.case(place, Cluster::uniform(NODES, per_node), load(), settled);
    cases.extend([ASIC_SAFE, BOLT].map(late));
    cases
}

fn rate(result: &CellResult) -> f64 {
    result.started_per_s
}

fn reduce(results: &Results) -> Findings {
    let at = |contender: &Contender, executors: u32| results.mean(&contender.at(executors), rate);
    let peak = |contender: &Contender| {
        let places = PER_NODE.iter().map(|per_node| NODES * per_node);
        let best = places.max_by(|&a, &b| at(contender, a).total_cmp(&at(contender, b)));
        best.and_then(|executors| results.estimate(&contender.at(executors), rate))
    };
    let [few, many] = LASTING.map(|(place, _)| place);
    let server_flat = results.factor(&BOLT_SERVER.at(many), &BOLT_SERVER.at(few), rate);
    let one_flat = results.factor(&ONE.at(720), &ONE.at(150), rate);
    let flat = Band::around(1.0, FLAT);
    let above = |over: &Contender, under: &Contender| results.is_above(&over.at(720), &under.at(720), rate);
    let bolt_above = above(&BOLT, &FOUR).and(above(&FOUR, &ONE));
    let per_executor = |places: (u32, u32)| {
        let factor = results.factor(&BOLT.at(places.0), &BOLT.at(places.1), rate)?;
        let executors = f64::from(places.0) / f64::from(places.1);
        Some(Estimate {
            mean: factor.mean / executors,
            half_width: factor.half_width.map(|half| half / executors),
            ..factor
        })
    };
    let rows = vec![
        Row::new(Set("SERVER_REQUEST_NS"), PerSecond, "bolt-server-peak", "Bolt-Server, most", Is(0.5e6))
            .found(peak(&BOLT_SERVER), Holds::within(server_flat, flat)),
        Row::new(Set("SPARROW_CPP.get_task"), PerSecond, "sparrow-peak", "Sparrow with one scheduler, most", Is(0.5e6))
            .found(peak(&ONE), Holds::within(one_flat, flat)),
        Row::new(Seen, PerSecond, "sparrow-4-peak", "Sparrow with four schedulers, most", Is(1.9e6))
            .found(peak(&FOUR), above(&FOUR, &ONE)),
        Row::new(Set("WAY_NS, SEND_NS, RECEIVE_NS"), PerSecond, "bolt-720", "Bolt with 720 executors", Is(23e6))
            .found(results.estimate(&BOLT.at(720), rate), bolt_above),
        Row::new(Seen, Factor, "factor-720", "Bolt by one Sparrow scheduler, 720 executors", Is(46.0))
            .found(results.factor(&BOLT.at(720), &ONE.at(720), rate), bolt_above),
        Row::new(Seen, Factor, "bolt-server-flat", "Bolt-Server at 720 executors by 150", Says("flat from 150", flat))
            .found_alone(server_flat),
        Row::new(
            Set("SPARROW_CPP's hand-overs"),
            Factor,
            "sparrow-flat",
            "Sparrow at 720 executors by 150",
            Says("flat from 150", flat),
        )
        .found_alone(one_flat),
        Row::new(
            Seen,
            Factor,
            "bolt-linear",
            "Bolt: decisions an executor, 720 by 60",
            Says("linear", Band::around(1.0, LINEAR)),
        )
        .found_alone(per_executor((720, 60))),
        Row::new(
            Hypothetical,
            PerSecond,
            "midflight-720",
            "Midflight at a Tofino's pass time with 720 executors",
            AtLeast(23e6),
        )
        .found(results.estimate(&MIDFLIGHT.at(720), rate), above(&MIDFLIGHT, &FOUR)),
        Row::new(
            Hypothetical,
            PerSecond,
            "midflight-server-peak",
            "Midflight as a server with Bolt-Server's costs, most",
            AtLeast(0.5e6),
        )
        .found(peak(&MIDFLIGHT_SERVER), above(&MIDFLIGHT_SERVER, &BOLT_SERVER)),
        Row::new(
            Measured,
            PerSecond,
            "midflight-kernel-peak",
            "Midflight in the kernel (measured costs), most; the paper's value is Bolt-Server's",
            AtLeast(0.5e6),
        )
        .found(peak(&MIDFLIGHT_KERNEL), above(&MIDFLIGHT_KERNEL, &BOLT_SERVER)),
        keeps_up(Measured, &MIDFLIGHT_KERNEL, results.factor(&MIDFLIGHT_KERNEL.at(720), &BOLT.at(720), rate)),
        Row::new(Hypothetical, PerSecond, "asic-safe-720", "Midflight, asic-safe, with 720 executors", AtLeast(23e6))
            .found(
                results.estimate(&ASIC_SAFE.at(SETTLED.0), rate),
                results.is_above(&ASIC_SAFE.at(SETTLED.0), &FOUR.at(720), rate),
            ),
        keeps_up(Hypothetical, &ASIC_SAFE, results.factor(&ASIC_SAFE.at(SETTLED.0), &BOLT.at(SETTLED.0), rate)),
    ];
    Findings { rows, plots: vec![plot(results)], notes: vec![], ..Findings::default() }
}

fn keeps_up(class: Class, who: &Contender, factor: Option<Estimate>) -> Row {
    let what = format!("{} by Bolt, 720 executors", who.label);
    let fast = Says("as fast as the published switch", Band::from(AS_FAST));
    Row::new(class, Factor, format!("{}-keeps-up", who.key), what, fast).found_alone(factor)
}

fn plot(results: &Results) -> Plot {
    let executors = || PER_NODE.iter().map(|per_node| NODES * per_node);
    let curve = |contender: &Contender| {
        let points = executors().map(|n| Point::new(f64::from(n), results.mean(&contender.at(n), rate)));
        Curve::measured(contender.label, contender.hue, points)
    };
    let quoted = executors().map(|n| Point::new(f64::from(n), FIRMAMENT));
    let quoted = Curve { dashed: true, dots: false, ..Curve::measured("Firmament (quoted)", Hue::Other, quoted) };
    let mark = |x, y, hue| Mark { x, y, hue };
    Plot {
        name: "decisions",
        title: "Decisions a second".into(),
        x: Axis { label: "executors", scale: Scale::LogNumber },
        y: Axis { label: "decisions a second", scale: Scale::LogNumber },
        curves: CONTENDERS.iter().map(curve).chain([quoted]).collect(),
        marks: vec![
            mark(720.0, 23e6, BOLT.hue),
            mark(720.0, 1.9e6, FOUR.hue),
            mark(150.0, 0.5e6, BOLT_SERVER.hue),
            mark(720.0, 0.5e6, ONE.hue),
        ],
    }
}
