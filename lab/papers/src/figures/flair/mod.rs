//! The figures of FLAIR: contenders, and what their cells share.
//!
//! | where | figure or section |
//! |---|---|
//! | `clients`, `skew`, `ratio`, `latency` | performance (FLAIR §7.1 to 7.3) |
//! | `share` | who serves reads (FLAIR §7.1, 7.2) |
//! | `faults`, `scale`, `balance` | load balancing, §7.3 to 7.5 |
//! | `kgroups` | the number of key groups (load balancing, §6) |
//!
//! The rules of predicted rows were written before any cell ran at the costs in force, and have not changed since. Rows of workload B by 300
//! clients with uniform keys are [seen](crate::findings::Class::Seen) all the same: their values at other costs were known, and what the
//! costs in force make of them had been worked out by hand. So are rows whose rule or set-up was mended after a first, short run.
//! `docs/internals/store-evaluation.md` lists what has no row.

pub(super) mod balance;
pub(super) mod clients;
pub(super) mod faults;
pub(super) mod kgroups;
pub(super) mod latency;
pub(super) mod ratio;
pub(super) mod scale;
pub(super) mod share;
pub(super) mod skew;

use super::Effort;
use super::results::{Case, NS_PER_MS, Results};
use crate::experiment::Experiment;
use crate::findings::plot::{Axis, Curve, Hue, Plot, Point, Scale};
use crate::findings::{Band, Class, Estimate, Holds, Paper, RATIO_WITHIN, Row, Unit};
use crate::flair::{Cell, CellResult, System};
use std::fmt::Display;

type Store = Results<CellResult>;

#[derive(Clone, Copy)]
struct Contender {
    key: &'static str,
    label: &'static str,
    hue: Hue,
    system: System,
}

const FLAIR: Contender = Contender { key: "flair", label: "FlairKV", hue: Hue::Ours, system: System::Flair };
const LEASES: Contender =
    Contender { key: "leases", label: "FLeases", hue: Hue::Published, system: System::FollowerLease };
const OPT_RAFT: Contender =
    Contender { key: "opt-raft", label: "Opt. Raft", hue: Hue::Sparrow, system: System::LeaderLease };
const UNREPLICATED: Contender =
    Contender { key: "unreplicated", label: "Unrep.", hue: Hue::PublishedServer, system: System::Unreplicated };
const RAFT: Contender = Contender { key: "raft", label: "Raft", hue: Hue::SparrowTwo, system: System::Raft };
const VR: Contender =
    Contender { key: "vr", label: "VR", hue: Hue::SparrowFour, system: System::ViewstampedReplication };
const FAST_PAXOS: Contender =
    Contender { key: "fast-paxos", label: "Fast Paxos", hue: Hue::Other, system: System::FastPaxos };

/// Those that use all threads.
const FAST: [Contender; 4] = [FLAIR, LEASES, OPT_RAFT, UNREPLICATED];
const SLOW: [Contender; 3] = [RAFT, VR, FAST_PAXOS];
const ONE_NODE: [Contender; 2] = [OPT_RAFT, UNREPLICATED];
const RIVALS: [Contender; 3] = [LEASES, OPT_RAFT, UNREPLICATED];

impl Contender {
    fn at(&self, place: impl Display) -> String {
        format!("{}@{place}", self.key)
    }

    /// The paper's default cell of this system, modified by `change`.
    fn case(&self, place: impl Display, effort: Effort, change: impl FnOnce(&mut Cell)) -> Case {
        let mut cell = Cell {
            system: self.system,
            replicas: if self.system == System::Unreplicated { 1 } else { 3 },
            keys: effort.pick(100_000, 10_000),
            warmup_ms: effort.pick(200, 100),
            duration_ms: effort.pick(500, 160),
            seed: 0,
            ..Cell::default()
        };
        change(&mut cell);
        Case { name: self.at(place), cell: cell.into() }
    }
}

/// The paper's skewed workload.
const SKEW: f64 = 0.99;

/// Reads for which a write takes a thread, in the experiment that explains most rows that do not pass.
const LIGHT: u64 = 14;
const LIGHT_END: &str = "-light";

/// The same cases with light writes.
fn light(cases: &[Case]) -> Vec<Case> {
    let light = |case: &Case| {
        // Without writes it would be the same cell.
        let Experiment::Store(cell) = &case.cell else { return None };
        let cell = Cell { costs: cell.costs.with_write_reads(LIGHT), ..cell.clone() };
        (cell.reads < 1.0).then(|| Case { name: format!("{}{LIGHT_END}", case.name), cell: cell.into() })
    };
    cases.iter().filter_map(light).collect()
}

fn with_light(cases: Vec<Case>) -> Vec<Case> {
    let light = light(&cases);
    [cases, light].concat()
}

/// Values and verdicts of the rows with light writes: no evidence, because their cost was chosen after results were known.
fn light_note(results: &Store, rows: fn(&Store) -> Vec<Row>) -> String {
    let said = |row: &Row| {
        let value = row.ours?.mean;
        let value = if row.unit == Unit::Share { format!("{:.1} %", value * 100.0) } else { format!("{value:.2}") };
        Some(format!("{} {value} ({})", row.name, row.verdict().name()))
    };
    let rows: Vec<String> = rows(&results.preferring(LIGHT_END)).iter().filter_map(said).collect();
    format!("The same rows where a write takes {LIGHT} reads and not 35: {}.", rows.join(", "))
}

/// What is compared.
#[derive(Clone, Copy)]
struct Quantity {
    key: &'static str,
    label: &'static str,
    /// Of a case that is better in it, by the other's.
    gain: fn(&Store, better: &str, other: &str) -> Option<Estimate>,
}

const THROUGHPUT: Quantity = Quantity {
    key: "throughput",
    label: "throughput",
    gain: |results, better, other| results.factor(better, other, per_second),
};
const LATENCY: Quantity = Quantity {
    key: "latency",
    label: "mean latency, inverse",
    gain: |results, better, other| results.factor(other, better, mean_latency),
};

fn per_second(result: &CellResult) -> f64 {
    result.per_second
}

/// Of reads and writes, in nanoseconds.
fn mean_latency(result: &CellResult) -> f64 {
    let (reads, writes) = (&result.reads, &result.writes);
    let total = reads.count + writes.count;
    (reads.mean_ms * reads.count as f64 + writes.mean_ms * writes.count as f64) / total as f64 * NS_PER_MS
}

/// FlairKV's gains over rivals at places of a sweep, smallest first, with rival and place.
fn gains(results: &Store, rivals: &[Contender], places: &[String], quantity: Quantity) -> Vec<(String, Estimate)> {
    let of = |rival: &Contender, place: &String| {
        let gain = (quantity.gain)(results, &FLAIR.at(place), &rival.at(place))?;
        Some((format!("{}, {place}", rival.label), gain))
    };
    let mut all: Vec<_> =
        places.iter().flat_map(|place| rivals.iter().filter_map(move |rival| of(rival, place))).collect();
    all.sort_by(|(_, one), (_, two)| one.mean.total_cmp(&two.mean));
    all
}

/// FlairKV leads if its smallest gain is one.
fn leads(gains: &[(String, Estimate)]) -> Holds {
    Holds::within(gains.first().map(|(_, gain)| *gain), Band::from(1.0))
}

/// Rows for the ends of a range that the paper gives.
fn range(class: Class, key: &str, words: &str, gains: &[(String, Estimate)], (least, most): (f64, f64)) -> [Row; 2] {
    [end(class, key, words, gains, End::Least, least), end(class, key, words, gains, End::Most, most)]
}

#[derive(Clone, Copy)]
enum End {
    Least,
    Most,
}

fn end(class: Class, key: &str, words: &str, gains: &[(String, Estimate)], end: End, paper: f64) -> Row {
    let (name, words_end, found) = match end {
        End::Least => ("least", "smallest", gains.first()),
        End::Most => ("most", "largest", gains.last()),
    };
    let at = found.map_or_else(String::new, |(at, _)| format!(" ({at})"));
    let what = format!("{words}, {words_end}{at}");
    Row::new(class, Unit::Factor, format!("{key}-{name}"), what, Paper::Is(paper))
        .found(found.map(|(_, gain)| *gain), leads(gains))
}

/// Of a factor: 0.17 of 1.17.
fn gain(factor: Estimate) -> Estimate {
    Estimate { mean: factor.mean - 1.0, ..factor }
}

/// A statement about a factor.
fn says(class: Class, name: &str, what: &str, statement: (&'static str, Band), value: Option<Estimate>) -> Row {
    Row::new(class, Unit::Factor, name, what, Paper::Says(statement.0, statement.1)).found_alone(value)
}

fn alike() -> (&'static str, Band) {
    ("comparable", Band::around(1.0, RATIO_WITHIN))
}

/// A curve for each contender over a sweep.
fn plot(
    results: &Store,
    (name, title): (&'static str, &str),
    contenders: &[Contender],
    (label, places): (&'static str, &[(String, f64)]),
    (y, of): (Axis, fn(&CellResult) -> f64),
) -> Plot {
    let curve = |contender: &Contender| {
        let points = places.iter().map(|(place, x)| {
            let estimate = results.estimate(&contender.at(place), of);
            let y = estimate.map_or(f64::NAN, |estimate| estimate.mean);
            let spread = estimate.and_then(|estimate| estimate.half_width).map(|half| (y - half, y + half));
            Point { x: *x, y, spread }
        });
        Curve::measured(contender.label, contender.hue, points)
    };
    let curves = contenders.iter().map(curve).collect();
    Plot { name, title: title.into(), x: Axis { label, scale: Scale::Number }, y, curves, marks: Vec::new() }
}

fn throughput_axis() -> (Axis, fn(&CellResult) -> f64) {
    (Axis { label: "operations a second", scale: Scale::Number }, per_second)
}

fn latency_axis() -> (Axis, fn(&CellResult) -> f64) {
    (Axis { label: "mean latency", scale: Scale::Time }, mean_latency)
}
