//! Load balancing among consistent replicas.

use super::{FLAIR, Store, alike, light_note, mean_latency, per_second, says, with_light};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Seen;
use crate::findings::Paper::Is;
use crate::findings::Unit::Share;
use crate::findings::{Band, Findings, Holds, Row};
use midflight_dataplane::store::Policy;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-lb",
    title: "Load balancing",
    source: "FLAIR, load balancing (§7.5), figure 16",
    set_up: "300 clients, uniform keys; FlairKV with random choice, with leader avoidance (LA), and with leader avoidance and follower load \
             awareness (LA+FL); workloads B and C; all replicas alike, or one follower at 90 % of its speed.",
    differs: differences::FLAIR_LB,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const POLICIES: [(&str, Policy); 3] =
    [("random", Policy::Random), ("la", Policy::LeaderAvoidance), ("la-fl", Policy::LoadAwareLeaderAvoidance)];
const WORKLOADS: [(&str, f64); 2] = [("b", 0.95), ("c", 1.0)];
const SLOWER: [(&str, u32); 2] = [("alike", 0), ("slower", 111)];

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for (policy, choice) in POLICIES {
        for (workload, reads) in WORKLOADS {
            for (slower, per_mille) in SLOWER {
                cases.push(FLAIR.case(format!("{workload}-{slower}-{policy}"), effort, |cell| {
                    (cell.policy, cell.reads, cell.slower_per_mille) = (choice, reads, per_mille);
                }));
            }
        }
    }
    with_light(cases)
}

fn rows(results: &Store) -> Vec<Row> {
    let by = |setting: &str, over: &str, under: &str| {
        let at = |policy: &str| FLAIR.at(format!("{setting}-{policy}"));
        results.factor(&at(over), &at(under), per_second)
    };
    // A gain, not a factor: a tolerance of a factor would include no gain at all.
    let gain = |name: &str, what: &str, paper, (setting, over, under)| {
        let value = by(setting, over, under).map(super::gain);
        Row::new(Seen, Share, name, format!("{what}, throughput higher by"), Is(paper))
            .found(value, Holds::within(value, Band::from(0.0)))
    };
    let same =
        |name: &str, what: &str, (setting, over, under)| says(Seen, name, what, alike(), by(setting, over, under));
    vec![
        gain("b-la", "LA than random, B, all alike", 0.40, ("b-alike", "la", "random")),
        same("b-la-fl", "LA+FL by LA, B, all alike", ("b-alike", "la-fl", "la")),
        gain("b-slower-random", "LA+FL than random, B, one slower", 0.17, ("b-slower", "la-fl", "random")),
        gain("b-slower-la", "LA+FL than LA, B, one slower", 0.03, ("b-slower", "la-fl", "la")),
        same("c-la", "LA by random, C, all alike", ("c-alike", "la", "random")),
        same("c-la-fl", "LA+FL by LA, C, all alike", ("c-alike", "la-fl", "la")),
        same("c-slower-la", "LA by random, C, one slower", ("c-slower", "la", "random")),
        gain("c-slower-random", "LA+FL than random, C, one slower", 0.17, ("c-slower", "la-fl", "random")),
        gain("c-slower-la-fl", "LA+FL than LA, C, one slower", 0.17, ("c-slower", "la-fl", "la")),
        Row::new(Seen, Share, "c-slower-latency", "LA+FL's mean latency is below LA's by, C, one slower", Is(0.10))
            .found_alone(results.reduction(&FLAIR.at("c-slower-la"), &FLAIR.at("c-slower-la-fl"), mean_latency)),
    ]
}

fn reduce(results: &Store) -> Findings {
    Findings { rows: rows(results), notes: vec![light_note(results, rows)], ..Findings::default() }
}
