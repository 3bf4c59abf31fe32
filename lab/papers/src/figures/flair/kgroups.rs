//! The number of key groups.

use super::{FLAIR, SKEW, Store, alike, per_second, says};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Hypothetical;
use crate::findings::Findings;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-kgroups",
    title: "The number of key groups",
    source: "FLAIR, load balancing (§6)",
    set_up: "300 clients, workload B, Zipf 0.99; 16 to 4,096 key groups.",
    differs: differences::FLAIR_KGROUPS,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const BITS: [u8; 5] = [4, 6, 8, 10, 12];

fn cases(effort: Effort) -> Vec<Case> {
    BITS.map(|bits| FLAIR.case(bits, effort, |cell| (cell.kgroup_bits, cell.zipf) = (bits, SKEW))).into()
}

fn reduce(results: &Store) -> Findings {
    let by = |more: u8, fewer: u8| results.factor(&FLAIR.at(more), &FLAIR.at(fewer), per_second);
    let rows =
        vec![says(Hypothetical, "from-1024", "Throughput with 4,096 groups by that with 1,024", alike(), by(12, 10))];
    let note = BITS.map(|bits| format!("{}: {:.0}", 1_u32 << bits, results.mean(&FLAIR.at(bits), per_second)));
    Findings {
        rows,
        notes: vec![format!("Operations a second by key groups: {}.", note.join(", "))],
        ..Findings::default()
    }
}
