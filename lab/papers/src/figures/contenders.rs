//! The contenders and the papers' clusters, shared by the figures.

use super::Effort;
use super::results::{Case, Results, delay};
use crate::calibration::{SAMPLE_TASKS, SPARROW_JAVA as SPARROW_JAVA_COSTS};
use crate::cell::{Cell, Cluster, Linux, Load, Pipelined, Polling, Program, Sampling, Scheme, Work};
use crate::findings::plot::{Axis, Curve, Hue, Mark, Plot, Point, Scale};
use crate::findings::{Band, Class, Holds, Paper, RATIO_WITHIN, Row, Unit};

#[derive(Clone, Copy)]
pub(super) struct Contender {
    /// Prefix of its cases' names.
    pub key: &'static str,
    /// Name in legends.
    pub label: &'static str,
    pub hue: Hue,
    pub scheme: fn() -> Scheme,
}

const fn contender(key: &'static str, label: &'static str, hue: Hue, scheme: fn() -> Scheme) -> Contender {
    Contender { key, label, hue, scheme }
}

/// The production code in the switch. Hypothetical, as no Tofino can run it.
pub(super) const MIDFLIGHT: Contender =
    contender("midflight", "Midflight at Tofino times (hypothetical)", Hue::Ours, || Scheme::Midflight);
/// The production code in the kernel of a Linux machine, with Linux hosts.
pub(super) const MIDFLIGHT_KERNEL: Contender =
    contender("midflight-kernel", "Midflight in the kernel (measured costs)", Hue::OursKernel, || {
        Scheme::MidflightKernel(Linux::default())
    });
/// The production code as a server, with Bolt-Server's costs.
pub(super) const MIDFLIGHT_SERVER: Contender =
    contender("midflight-server", "Midflight as a server (hypothetical)", Hue::OursServer, || Scheme::MidflightServer);
/// The production endpoints with our program on a pipeline.
pub(super) const ASIC_SAFE: Contender =
    contender("asic-safe", "Midflight, asic-safe (hypothetical)", Hue::AsicSafe, || pipelined(Program::Safe));
/// The same, with the papers' program.
pub(super) const ASIC_PUBLISHED: Contender =
    contender("asic-published", "Midflight, asic-published (hypothetical)", Hue::AsicPublished, || {
        pipelined(Program::Published)
    });
/// The published protocol, which Falcon and Bolt share.
pub(super) const BOLT: Contender =
    contender("bolt", "Bolt as published", Hue::Published, || Scheme::Bolt(Polling::default()));
/// Falcon's clients and executors are modified Sparrow (Falcon §3.4): Java programs.
pub(super) const FALCON: Contender = Contender {
    label: "Falcon as published",
    scheme: || Scheme::Bolt(Polling { program_us: SPARROW_JAVA_COSTS.worker / 1_000, ..Polling::default() }),
    ..BOLT
};
pub(super) const BOLT_SERVER: Contender =
    contender("bolt-server", "Bolt-Server", Hue::PublishedServer, || Scheme::BoltServer(Polling::default()));
/// Falcon runs two schedulers, on the clients' nodes.
pub(super) const SPARROW_JAVA: Contender = contender("sparrow", "Sparrow (Java)", Hue::Sparrow, || {
    Scheme::SparrowJava(Sampling { schedulers: 2, on_clients: true, ..Sampling::default() })
});
pub(super) const SPARROW: Contender =
    contender("sparrow", "Sparrow", Hue::Sparrow, || Scheme::SparrowCpp(Sampling::default()));
pub(super) const SPARROW_TWO: Contender = contender("sparrow-2", "Sparrow, two schedulers", Hue::SparrowTwo, || {
    Scheme::SparrowCpp(Sampling { schedulers: 2, ..Sampling::default() })
});

/// Slots poll 50 microseconds after a no-op (Bolt §5.4).
fn pipelined(program: Program) -> Scheme {
    Scheme::MidflightAsic(Pipelined { program, interval_us: 50 })
}

impl Contender {
    pub(super) fn at(&self, place: impl std::fmt::Display) -> String {
        format!("{}@{place}", self.key)
    }

    pub(super) fn case(&self, place: impl std::fmt::Display, cluster: Cluster, load: Load, time: RunTime) -> Case {
        let RunTime { warmup_ms, duration_ms, drain_ms } = time;
        let scheme = (self.scheme)();
        Case {
            name: self.at(place),
            cell: Cell { scheme, cluster, load, seed: 0, warmup_ms, duration_ms, drain_ms }.into(),
        }
    }
}

pub(super) const OURS: [(Contender, Class); 2] =
    [(MIDFLIGHT_KERNEL, Class::Measured), (ASIC_SAFE, Class::Hypothetical)];
pub(super) const AS_FAST: f64 = 1.0 / RATIO_WITHIN;

/// Compares one of our switches with the published one by medians at one place: ours with the paper's value, and the published switch here
/// with ours.
pub(super) struct Beside<'a> {
    pub published: &'a Contender,
    /// The paper's median for the published switch, in nanoseconds.
    pub paper_ns: f64,
    /// Must be slower for the order to be right.
    pub slower: &'a Contender,
    pub place: &'a str,
    pub name_end: &'a str,
    pub words_end: &'a str,
}

impl Beside<'_> {
    pub(super) fn rows(&self, results: &Results, (who, class): (Contender, Class)) -> [Row; 2] {
        let Self { published, paper_ns, slower, place, name_end, words_end } = self;
        let Contender { key, label, .. } = who;
        let by = |over: &Contender| results.factor(&over.at(place), &who.at(place), delay(0.5));
        let fast = Paper::Says("as fast as the published switch", Band::from(AS_FAST));
        [
            Row::new(
                class,
                Unit::Time,
                format!("{key}-median{name_end}"),
                format!("{label}, median{words_end}"),
                Paper::AtMost(*paper_ns),
            )
            .found(results.estimate(&who.at(place), delay(0.5)), Holds::within(by(slower), Band::from(1.0))),
            Row::new(
                class,
                Unit::Factor,
                format!("{key}-keeps-up{name_end}"),
                format!("{}, median by that of {label}{words_end}", published.label),
                fast,
            )
            .found_alone(by(published)),
        ]
    }
}

#[derive(Clone, Copy)]
pub(super) struct RunTime {
    pub warmup_ms: u64,
    pub duration_ms: u64,
    pub drain_ms: u64,
}

/// One second to settle, then enough tasks for a stable 95th percentile.
pub(super) fn sw1_time(effort: Effort) -> RunTime {
    effort.pick(
        RunTime { warmup_ms: 1_000, duration_ms: 9_000, drain_ms: 10_000 },
        RunTime { warmup_ms: 200, duration_ms: 1_200, drain_ms: 5_000 },
    )
}

/// Both papers' cluster for SW1.
pub(super) fn sixty() -> Cluster {
    Cluster::uniform(10, 6)
}

pub(super) fn sw1(utilisation: f64, work: Work) -> Load {
    Load::Sw1 { clients: 2, utilisation, work }
}

/// Bolt's cluster for tasks that compute.
pub(super) fn computing() -> Cluster {
    Cluster::uniform(11, 16)
}

/// Bolt's cluster for tasks that sleep.
pub(super) fn sleeping() -> Cluster {
    Cluster::uniform(11, 200)
}

/// For figures 13a, 13b and 14. The thesis gives none. At this load bursts begin to wait for executors between the 90th and 95th
/// percentile, as in its 13a.
pub(super) const TRACE_LOAD: f64 = 0.195;

/// Three minutes, as in the thesis (Bolt §5.1.3), after a warm-up.
pub(super) fn trace_time(effort: Effort) -> RunTime {
    effort.pick(
        RunTime { warmup_ms: 5_000, duration_ms: 185_000, drain_ms: 120_000 },
        RunTime { warmup_ms: 1_000, duration_ms: 6_000, drain_ms: 60_000 },
    )
}

/// Generated, as the papers published no file; with their median.
pub(super) fn trace(load: f64, work: Work, priorities: bool) -> Load {
    Load::Trace { file: None, sample: SAMPLE_TASKS, median_ms: 5.0, load, priorities, clients: 2, work }
}

pub(super) fn sw1_cases(contenders: &[Contender], utilisations: &[f64], work: Work, effort: Effort) -> Vec<Case> {
    let at = |&utilisation: &f64| {
        let case = move |who: &Contender| who.case(utilisation, sixty(), sw1(utilisation, work), sw1_time(effort));
        contenders.iter().map(case)
    };
    utilisations.iter().flat_map(at).collect()
}

/// With whiskers from the 5th to the 95th percentile.
pub(super) fn medians_plot(results: &Results, contenders: &[Contender], places: &[f64], marks: Vec<Mark>) -> Plot {
    let curve = |contender: &Contender| {
        let points = places.iter().map(|&place| {
            let at = |quantile| results.mean(&contender.at(place), delay(quantile));
            Point { x: place, y: at(0.5), spread: Some((at(0.05), at(0.95))) }
        });
        Curve::measured(contender.label, contender.hue, points)
    };
    Plot {
        name: "delay",
        title: "Median delay; whiskers from the 5th to the 95th percentile".into(),
        x: Axis { label: "utilisation", scale: Scale::Share },
        y: DELAY,
        curves: contenders.iter().map(curve).collect(),
        marks,
    }
}

pub(super) fn delays_plot(results: &Results, contenders: &[Contender], place: &str, marks: Vec<Mark>) -> Plot {
    let curve = |who: &Contender| results.distribution(&who.at(place), who.label, who.hue, |one| Some(&one.delay));
    Plot {
        name: "delay",
        title: "Share of tasks that started within a time".into(),
        x: DELAY,
        y: SHARE_OF_TASKS,
        curves: contenders.iter().map(curve).collect(),
        marks,
    }
}

pub(super) const DELAY: Axis = Axis { label: "scheduling delay", scale: Scale::LogTime };
pub(super) const SHARE_OF_TASKS: Axis = Axis { label: "share of tasks", scale: Scale::Share };
