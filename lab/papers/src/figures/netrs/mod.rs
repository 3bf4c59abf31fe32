//! The figures of NetRS: contenders, and what their cells share.
//!
//! | where | figure |
//! |---|---|
//! | `clients`, `skew`, `utilisation`, `service` | figures 4 to 7 of the paper |
//! | `change` | the paper's claim about a new plan |
//! | `flat` | a check against C3's public simulator, without a network |
//! | `selectors` | beyond the paper: all selectors at clients, racks and RSNodes |
//!
//! All rows are [seen](crate::findings::Class::Seen): their rules were written after results were known.

pub(super) mod change;
pub(super) mod clients;
pub(super) mod flat;
pub(super) mod selectors;
pub(super) mod service;
pub(super) mod skew;
pub(super) mod utilisation;

use super::Effort;
use super::results::{Case, NS_PER_MS, Results};
use crate::findings::plot::{Axis, Curve, Hue, Mark, Plot, Point, Scale};
use crate::findings::{Band, Class, Estimate, Holds, Paper, Row, Unit};
use crate::netrs::{Cell, CellResult, Placement};
use std::fmt::Display;

type Cache = Results<CellResult>;

#[derive(Clone, Copy)]
struct Contender {
    key: &'static str,
    label: &'static str,
    hue: Hue,
    placement: Placement,
}

const CLIRS: Contender =
    Contender { key: "clirs", label: "CliRS: clients choose", hue: Hue::Sparrow, placement: Placement::Clients };
const TOR: Contender = Contender {
    key: "tor",
    label: "NetRS-ToR: each rack's switch",
    hue: Hue::PublishedServer,
    placement: Placement::Tor,
};
const ILP: Contender =
    Contender { key: "ilp", label: "NetRS-ILP: as planned", hue: Hue::Published, placement: Placement::Ilp };
const ALL: [Contender; 3] = [CLIRS, TOR, ILP];

/// Section V-A; fewer in a quick run.
fn requests(effort: Effort) -> u32 {
    effort.pick(600_000, 60_000)
}

impl Contender {
    fn at(&self, place: impl Display) -> String {
        format!("{}@{place}", self.key)
    }

    /// The paper's default cell with this placement, modified by `change`.
    fn case(&self, place: impl Display, effort: Effort, change: impl FnOnce(&mut Cell)) -> Case {
        let mut cell = Cell { placement: self.placement, requests: requests(effort), seed: 0, ..Cell::default() };
        change(&mut cell);
        Case { name: self.at(place), cell: cell.into() }
    }
}

fn sweep<P: Display + Copy>(effort: Effort, places: &[P], change: impl Fn(&mut Cell, P)) -> Vec<Case> {
    let of_place = |&place: &P| ALL.map(|contender| contender.case(place, effort, |cell| change(cell, place)));
    places.iter().flat_map(of_place).collect()
}

#[derive(Clone, Copy)]
struct Quantity {
    key: &'static str,
    label: &'static str,
    of: fn(&CellResult) -> f64,
}

const MEAN: Quantity = Quantity { key: "mean", label: "mean", of: |result| result.latency.mean_ms * NS_PER_MS };
const P99: Quantity =
    Quantity { key: "p99", label: "99th percentile", of: |result| result.latency.at(0.99) * NS_PER_MS };

/// By how much `under` is below `over`, seed by seed.
fn reductions(results: &Cache, over: &str, under: &str, quantity: Quantity) -> Vec<f64> {
    let both = results.of(over).iter().zip(results.of(under));
    both.map(|(over, under)| 1.0 - (quantity.of)(under) / (quantity.of)(over)).collect()
}

fn reduction(results: &Cache, over: &str, under: &str, quantity: Quantity) -> Option<Estimate> {
    results.reduction(over, under, quantity.of)
}

/// Over places.
fn mean_reduction(results: &Cache, pairs: &[(String, String)], quantity: Quantity) -> Option<Estimate> {
    let by_pair: Vec<Vec<f64>> = pairs.iter().map(|(over, under)| reductions(results, over, under, quantity)).collect();
    let seeds = by_pair.iter().map(Vec::len).min().unwrap_or(0);
    let of_seed = |seed: usize| by_pair.iter().map(|values| values[seed]).sum::<f64>() / by_pair.len() as f64;
    Estimate::of(&(0..seeds).map(of_seed).collect::<Vec<_>>())
}

fn in_order(results: &Cache, place: &str, quantity: Quantity) -> Holds {
    let above = |over: Contender, under: Contender| results.is_above(&over.at(place), &under.at(place), quantity.of);
    above(CLIRS, TOR).and(above(TOR, ILP))
}

fn against(results: &Cache, other: Contender, place: &str, words: &str, quantity: Quantity, paper: f64) -> Row {
    let name = format!("{}-{}-{place}", other.key, quantity.key);
    let what = format!("NetRS-ILP's {} is below {}'s by, {words}", quantity.label, short(other));
    Row::new(Class::Seen, Unit::Share, name, what, Paper::Is(paper))
        .found(reduction(results, &other.at(place), &ILP.at(place), quantity), in_order(results, place, quantity))
}

/// The paper gives the range over a sweep. These rows were made after the results were known. Before, each place had its own row that had
/// to lie in the range, so the places at its ends could only be unsure.
fn range(
    results: &Cache,
    other: Contender,
    places: &[String],
    quantity: Quantity,
    (least, most): (f64, f64),
) -> [Row; 2] {
    let at = |place: &String| reduction(results, &other.at(place), &ILP.at(place), quantity);
    let mut all: Vec<(&String, Estimate)> = places.iter().filter_map(|place| Some((place, at(place)?))).collect();
    all.sort_by(|(_, one), (_, two)| one.mean.total_cmp(&two.mean));
    let row = |key: &str, words: &str, found: Option<&(&String, Estimate)>, paper| {
        let name = format!("{}-{}-{key}", other.key, quantity.key);
        let at = found.map_or_else(String::new, |(place, _)| format!(" (at {place})"));
        let what = format!("NetRS-ILP's {} is below {}'s by, {words}{at}", quantity.label, short(other));
        let order = found.map_or(Holds::No, |(place, _)| in_order(results, place, quantity));
        Row::new(Class::Seen, Unit::Share, name, what, Paper::Is(paper))
            .found(found.map(|(_, estimate)| *estimate), order)
    };
    [row("least", "at least", all.first(), least), row("most", "at most", all.last(), most)]
}

/// At one place relative to another.
fn growth(
    results: &Cache,
    contender: Contender,
    quantity: Quantity,
    (from, to): (&str, &str),
    words: &str,
    (says, band): (&'static str, Band),
) -> Row {
    let name = format!("{}-{}-growth", contender.key, quantity.key);
    let what = format!("{}'s {} {words}", short(contender), quantity.label);
    Row::new(Class::Seen, Unit::Factor, name, what, Paper::Says(says, band)).found_alone(results.factor(
        &contender.at(to),
        &contender.at(from),
        quantity.of,
    ))
}

/// Seed by seed.
fn reduction_growth(
    results: &Cache,
    (over, under): (Contender, Contender),
    quantity: Quantity,
    (from, to): (&str, &str),
    words: &str,
) -> Row {
    let at = |place: &str| reductions(results, &over.at(place), &under.at(place), quantity);
    let more: Vec<f64> = at(to).iter().zip(at(from)).map(|(to, from)| to - from).collect();
    let name = format!("{}-{}-{}-more", under.key, over.key, quantity.key);
    let what = format!("{}'s {} is below {}'s by more {words}", short(under), quantity.label, short(over));
    Row::new(Class::Seen, Unit::Share, name, what, Paper::Says("more", Band::from(0.0)))
        .found_alone(Estimate::of(&more))
}

fn short(contender: Contender) -> &'static str {
    contender.label.split(':').next().unwrap_or_default()
}

fn plot(
    results: &Cache,
    name: &'static str,
    title: String,
    label: &'static str,
    quantity: Quantity,
    places: &[(String, f64)],
) -> Plot {
    let curve = |contender: Contender| {
        let points = places.iter().map(|(place, x)| {
            let estimate = results.estimate(&contender.at(place), quantity.of);
            let y = estimate.map_or(f64::NAN, |estimate| estimate.mean);
            let spread = estimate.and_then(|estimate| estimate.half_width).map(|half| (y - half, y + half));
            Point { x: *x, y, spread }
        });
        Curve::measured(contender.label, contender.hue, points)
    };
    Plot {
        name,
        title,
        x: Axis { label, scale: Scale::Number },
        y: Axis { label: "latency", scale: Scale::Time },
        curves: ALL.map(curve).into(),
        marks: Vec::<Mark>::new(),
    }
}

fn plots(results: &Cache, label: &'static str, places: &[(String, f64)]) -> Vec<Plot> {
    let title = |quantity: Quantity| format!("Latency of reads, {}", quantity.label);
    vec![plot(results, "mean", title(MEAN), label, MEAN, places), plot(results, "p99", title(P99), label, P99, places)]
}

fn rsnodes(results: &Cache, case: &str) -> String {
    let mean = |of: fn(&CellResult) -> u32| results.mean(case, |result| f64::from(of(result)));
    let bound = results.mean(case, |result| result.rsnodes_bound.map_or(f64::NAN, f64::from));
    let of_tiers = format!(
        "{:.1} ({:.1} core, {:.1} aggregation, {:.1} ToR)",
        mean(|result| result.rsnodes.all()),
        mean(|result| result.rsnodes.core),
        mean(|result| result.rsnodes.aggregation),
        mean(|result| result.rsnodes.tor)
    );
    if bound.is_nan() { of_tiers } else { format!("{of_tiers}; no plan has fewer than {bound:.1}") }
}
