//! Throughput and mean latency against skew.

use super::{
    Contender, End, FAST, FLAIR, LATENCY, LEASES, OPT_RAFT, RIVALS, Store, THROUGHPUT, UNREPLICATED, alike, end, gain,
    gains, latency_axis, light_note, per_second, plot, range, says, throughput_axis, with_light,
};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::{Predicted, Seen};
use crate::findings::{Band, Estimate, Findings, Paper, Row, Unit};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-skew",
    title: "Throughput and mean latency against skew",
    source: "FLAIR (NSDI '20, §7.2), figure 10",
    set_up: "300 clients, workload B; Zipf's exponent from 0.5 to 0.99.",
    differs: differences::FLAIR_SKEW,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const EXPONENTS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.99];
const ENDS: (&str, &str) = ("0.5", "0.99");

fn cases(effort: Effort) -> Vec<Case> {
    let of = |zipf: f64| FAST.map(|who| who.case(zipf, effort, |cell| cell.zipf = zipf));
    with_light(EXPONENTS.into_iter().flat_map(of).collect())
}

fn as_gain(row: Row) -> Row {
    let paper = row.paper.value().map_or(row.paper, |factor| Paper::Is(factor - 1.0));
    Row {
        unit: Unit::Share,
        class: Seen,
        paper,
        ours: row.ours.map(gain),
        what: format!("{}, less one", row.what),
        ..row
    }
}

fn rows(results: &Store) -> Vec<Row> {
    let places = EXPONENTS.map(|zipf| zipf.to_string());
    let of = |rivals: &[Contender], quantity| gains(results, rivals, &places, quantity);
    let mut rows = Vec::new();
    for (quantity, ends) in [(THROUGHPUT, (1.26, 2.25)), (LATENCY, (1.13, 2.48))] {
        let words = format!("FlairKV by all others, {}", quantity.label);
        let [least, most] = range(Predicted, quantity.key, &words, &of(&RIVALS, quantity), ends);
        // "No gain" is within the tolerance of 1.13: compared as a gain, which was decided later.
        rows.push(if ends.0 < 1.2 { as_gain(least) } else { least });
        rows.push(most);
    }
    let leases = of(&[LEASES], THROUGHPUT);
    rows.push(as_gain(end(Seen, "leases", "FlairKV's throughput by FLeases'", &leases, End::Least, 1.17)));
    rows.push(end(Seen, "leases", "FlairKV's throughput by FLeases'", &leases, End::Most, 1.26));
    let rise = |who: Contender| results.factor(&who.at(ENDS.1), &who.at(ENDS.0), per_second);
    let falls = ("decreases", Band::up_to(1.0));
    let what = |who: Contender| format!("{}'s throughput at 0.99 by that at 0.5", who.label);
    for who in [FLAIR, LEASES] {
        rows.push(says(Predicted, &format!("{}-falls", who.key), &what(who), falls, rise(who)));
    }
    for who in [OPT_RAFT, UNREPLICATED] {
        rows.push(says(Predicted, &format!("{}-flat", who.key), &what(who), alike(), rise(who)));
    }
    let both = |place| results.of(&FLAIR.at(place)).iter().zip(results.of(&LEASES.at(place)));
    let more = both(ENDS.1)
        .zip(both(ENDS.0))
        .map(|(skewed, even)| skewed.0.per_second / skewed.1.per_second / (even.0.per_second / even.1.per_second));
    let more = Estimate::of(&more.collect::<Vec<_>>());
    let what = "FlairKV's gain over FLeases at 0.99 by that at 0.5: skew affects FlairKV more";
    rows.push(says(Seen, "flair-falls-more", what, ("falls", Band::up_to(1.0)), more));
    rows
}

fn reduce(results: &Store) -> Findings {
    let places = EXPONENTS.map(|zipf| (zipf.to_string(), zipf));
    let axis = ("Zipf's exponent", places.as_slice());
    let plots = vec![
        plot(results, ("throughput", "Throughput against skew"), &FAST, axis, throughput_axis()),
        plot(results, ("latency", "Mean latency against skew"), &FAST, axis, latency_axis()),
    ];
    let notes = vec![light_note(results, rows)];
    Findings { rows: rows(results), plots, notes, ..Findings::default() }
}
