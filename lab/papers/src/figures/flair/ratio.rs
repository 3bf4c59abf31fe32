//! Throughput against the share of reads.

use super::{
    Contender, End, FAST, FLAIR, LEASES, OPT_RAFT, Store, THROUGHPUT, UNREPLICATED, alike, end, gains, light_note,
    per_second, plot, range, says, throughput_axis, with_light,
};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Predicted;
use crate::findings::{Findings, Row};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-ratio",
    title: "Throughput against the share of reads",
    source: "FLAIR (NSDI '20, §7.3), figure 11",
    set_up: "300 clients, uniform keys; 50 to 100 % of the operations are reads.",
    differs: differences::FLAIR_RATIO,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const READS: [u32; 7] = [50, 60, 70, 80, 90, 95, 100];
/// The paper's bound by FLeases excepts reads only.
const WITH_WRITES: [u32; 6] = [50, 60, 70, 80, 90, 95];
const WRITE_HEAVY: [u32; 3] = [50, 60, 70];
const READ_HEAVY: [u32; 5] = [70, 80, 90, 95, 100];

fn cases(effort: Effort) -> Vec<Case> {
    let of = |percent: u32| FAST.map(|who| who.case(percent, effort, |cell| cell.reads = f64::from(percent) / 100.0));
    with_light(READS.into_iter().flat_map(of).collect())
}

fn rows(results: &Store) -> Vec<Row> {
    let of = |rival: Contender, percents: &[u32]| {
        let places: Vec<String> = percents.iter().map(u32::to_string).collect();
        gains(results, &[rival], &places, THROUGHPUT)
    };
    let words = |rival: Contender| format!("FlairKV's throughput by that of {}", rival.label);
    let mut rows = vec![end(Predicted, "leases", &words(LEASES), &of(LEASES, &WITH_WRITES), End::Most, 1.5)];
    rows.extend(range(Predicted, "opt-raft", &words(OPT_RAFT), &of(OPT_RAFT, &READS), (1.25, 2.8)));
    let read_heavy = of(UNREPLICATED, &READ_HEAVY);
    rows.push(end(Predicted, "unreplicated", &words(UNREPLICATED), &read_heavy, End::Most, 2.8));
    let at = |rival: Contender, place: &str| results.factor(&FLAIR.at(place), &rival.at(place), per_second);
    rows.push(says(Predicted, "leases-100", "the same by FLeases, reads only", alike(), at(LEASES, "100")));
    for percent in WRITE_HEAVY {
        let place = percent.to_string();
        let (name, what) = (format!("unreplicated-{place}"), format!("the same by Unrep., {place} % reads"));
        rows.push(says(Predicted, &name, &what, alike(), at(UNREPLICATED, &place)));
    }
    rows
}

fn reduce(results: &Store) -> Findings {
    let places = READS.map(|percent| (percent.to_string(), f64::from(percent)));
    let axis = ("reads (%)", places.as_slice());
    let plots =
        vec![plot(results, ("throughput", "Throughput against the share of reads"), &FAST, axis, throughput_axis())];
    let notes = vec![light_note(results, rows)];
    Findings { rows: rows(results), plots, notes, ..Findings::default() }
}
