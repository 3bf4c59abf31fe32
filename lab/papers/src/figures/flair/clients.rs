//! Throughput and mean latency against the number of clients.

use super::{
    Contender, End, FAST, FLAIR, LATENCY, LEASES, LIGHT, LIGHT_END, ONE_NODE, OPT_RAFT, SKEW, SLOW, Store, THROUGHPUT,
    UNREPLICATED, end, gains, latency_axis, leads, light, mean_latency, per_second, plot, range, says, throughput_axis,
};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::{self, Predicted, Seen};
use crate::findings::Paper::{AtLeast, Is};
use crate::findings::Unit::{Factor, Share};
use crate::findings::{Band, Findings, RATIO_WITHIN, Row};

pub(in super::super) const FIGURE: Figure = Figure {
    name: "flair-clients",
    title: "Throughput and mean latency against the number of clients",
    source: "FLAIR (NSDI '20, §7.1), figure 9; load balancing, figure 8",
    set_up: "Workload B (95 % reads) on 100,000 keys of 24 bytes with values of 1 KB, uniform and by Zipf's law (0.99); 10 to 700 clients in a \
             closed loop; 3 replicas with 20 threads each. FlairKV, FLeases, Opt. Raft, Unrep. and Raft are modes of Midflight's store; VR and \
             Fast Paxos are models of their normal case.",
    differs: differences::FLAIR_CLIENTS,
    cases,
    columns: traces::none,
    reduce: Reduce::Store(reduce),
};

const CLIENTS: [u32; 7] = [10, 50, 100, 200, 300, 500, 700];
/// The paper's default.
const DEFAULT: u32 = 300;
const WORKLOADS: [(&str, f64, Class); 2] = [("uniform", 0.0, Seen), ("zipf", SKEW, Predicted)];

/// The models of VR and Fast Paxos know no keys.
fn all(zipf: f64) -> impl Iterator<Item = Contender> {
    FAST.into_iter().chain(SLOW).filter(move |who| zipf == 0.0 || !matches!(who.key, "vr" | "fast-paxos"))
}

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for (workload, zipf, _) in WORKLOADS {
        for clients in CLIENTS {
            let place = format!("{workload}-{clients}");
            let case = |who: Contender| who.case(&place, effort, |cell| (cell.zipf, cell.clients) = (zipf, clients));
            if clients == DEFAULT {
                cases.extend(light(&FAST.map(case)));
            }
            cases.extend(all(zipf).map(case));
        }
    }
    cases
}

fn places(workload: &str) -> Vec<String> {
    CLIENTS.iter().map(|clients| format!("{workload}-{clients}")).collect()
}

/// What the paper says of a workload.
struct Said {
    leases_throughput: f64,
    /// Share by which latency is lower.
    leases_latency: f64,
    one_node_throughput: (f64, f64),
    one_node_latency: (f64, f64),
}

const UNIFORM: Said = Said {
    leases_throughput: 1.42,
    leases_latency: 0.237,
    one_node_throughput: (1.3, 2.1),
    one_node_latency: (1.5, 2.4),
};
const ZIPF: Said = Said {
    leases_throughput: 1.26,
    leases_latency: 0.181,
    one_node_throughput: (1.5, 1.8),
    one_node_latency: (2.0, 2.4),
};

fn reduce(results: &Store) -> Findings {
    let (mut rows, mut plots) = (Vec::new(), Vec::new());
    for ((workload, zipf, class), said) in WORKLOADS.into_iter().zip([UNIFORM, ZIPF]) {
        rows.extend(of_workload(results, workload, class, &said));
        let places: Vec<_> = CLIENTS.iter().map(|n| (format!("{workload}-{n}"), f64::from(*n))).collect();
        let (throughput, latency) = if workload == "zipf" {
            (("throughput-zipf", "Throughput, Zipf 0.99"), ("latency-zipf", "Mean latency, Zipf 0.99"))
        } else {
            (("throughput-uniform", "Throughput, uniform"), ("latency-uniform", "Mean latency, uniform"))
        };
        let contenders: Vec<Contender> = all(zipf).collect();
        plots.push(plot(results, throughput, &contenders, ("clients", &places), throughput_axis()));
        plots.push(plot(results, latency, &FAST, ("clients", &places), latency_axis()));
    }
    let place = format!("uniform-{DEFAULT}");
    let slightly = Band::between(1.0, RATIO_WITHIN);
    for (quantity, name) in [(THROUGHPUT, "unreplicated-slightly"), (LATENCY, "unreplicated-slightly-latency")] {
        let what = format!("Unrep. by Opt. Raft, {}, 300 clients", quantity.label);
        let value = (quantity.gain)(results, &UNREPLICATED.at(&place), &OPT_RAFT.at(&place));
        rows.push(says(Seen, name, &what, ("slightly better", slightly), value));
    }
    for slow in SLOW {
        let value = results.factor(&OPT_RAFT.at(&place), &slow.at(&place), per_second);
        let what = format!("Opt. Raft's throughput by {}'s, 300 clients", slow.label);
        rows.push(says(Seen, &format!("opt-raft-over-{}", slow.key), &what, ("more", Band::from(1.0)), value));
    }
    Findings { rows, plots, notes: notes(results), ..Findings::default() }
}

fn of_workload(results: &Store, workload: &str, class: Class, said: &Said) -> Vec<Row> {
    let places = places(workload);
    let of = |rivals: &[Contender], quantity| gains(results, rivals, &places, quantity);
    let throughput = of(&[LEASES], THROUGHPUT);
    let reduction = |place: &String| results.reduction(&LEASES.at(place), &FLAIR.at(place), mean_latency);
    let reductions = places.iter().filter_map(reduction);
    let largest = reductions.max_by(|one, two| one.mean.total_cmp(&two.mean));
    let name = |what: &str| format!("{workload}-{what}");
    let mut rows = vec![
        end(
            class,
            &name("leases-throughput"),
            &format!("FlairKV's throughput by FLeases', {workload}"),
            &throughput,
            End::Most,
            said.leases_throughput,
        ),
        Row::new(
            class,
            Share,
            name("leases-latency"),
            format!("FlairKV's mean latency is below FLeases' by, {workload}, largest"),
            Is(said.leases_latency),
        )
        .found(largest, leads(&throughput)),
    ];
    for (quantity, ends) in [(THROUGHPUT, said.one_node_throughput), (LATENCY, said.one_node_latency)] {
        let words = format!("FlairKV by Opt. Raft and Unrep., {}, {workload}", quantity.label);
        let key = name(&format!("one-node-{}", quantity.key));
        rows.extend(range(class, &key, &words, &of(&ONE_NODE, quantity), ends));
    }
    let place = format!("{workload}-{DEFAULT}");
    rows.extend(SLOW.into_iter().filter(|slow| !results.of(&slow.at(&place)).is_empty()).map(|slow| {
        let what = format!("FlairKV's throughput by {}'s, {workload}, 300 clients", slow.label);
        // Raft's value was known.
        let class = if slow.key == "raft" { class } else { Predicted };
        Row::new(class, Factor, name(&format!("{}-throughput", slow.key)), what, AtLeast(4.0))
            .found_alone(results.factor(&FLAIR.at(&place), &slow.at(&place), per_second))
    }));
    rows
}

fn notes(results: &Store) -> Vec<String> {
    let said = |workload: &str, place: &str| {
        let by = |rival: Contender| {
            results.factor(&FLAIR.at(place), &rival.at(place), per_second).map_or(f64::NAN, |factor| factor.mean)
        };
        let [leases, opt_raft, unreplicated] = super::RIVALS.map(by);
        format!(
            "300 clients, {workload}, FlairKV's throughput by that of FLeases {leases:.2}, Opt. Raft {opt_raft:.2}, Unrep. {unreplicated:.2}"
        )
    };
    let of = |(workload, _, _): (&str, f64, Class)| {
        format!(
            "{}; where a write takes {LIGHT} reads and not 35: {}.",
            said(workload, &format!("{workload}-{DEFAULT}")),
            said(workload, &format!("{workload}-{DEFAULT}{LIGHT_END}"))
        )
    };
    WORKLOADS.map(of).into()
}
