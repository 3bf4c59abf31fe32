//! NetRS, figure 4: the number of clients.

use super::{
    ALL, CLIRS, Contender, ILP, MEAN, P99, Quantity, Replicas, TOR, against, mean_reduction, plots, range, reduction,
    rsnodes, sweep,
};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Predicted;
use crate::findings::Paper::{Is, Says};
use crate::findings::Unit::{Factor, Share};
use crate::findings::{Band, Findings, RATIO_WITHIN, Row};
use crate::netrs::{Arrivals, Cell, Network, Placement, Selects};
use midflight_replicas::select::Algorithm;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-4",
    title: "Latency against the number of clients",
    source: "NetRS (section V-B1), figure 4",
    set_up: "100 servers with 4 slots, 4 ms or 4/3 ms of service, on a 16-ary fat-tree; 600,000 reads at a utilisation of 90 %; C3 without rate \
             control chooses: at 100 to 700 clients, at the switch of each rack, or where the integer program puts it.",
    differs: differences::NETRS_4,
    cases,
    columns: traces::none,
    reduce: Reduce::Replicas(reduce),
};

const CLIENTS: [u32; 7] = [100, 200, 300, 400, 500, 600, 700];
/// The paper's default.
const DEFAULT: &str = "500";

/// What the paper leaves open, or says otherwise elsewhere: the default cell with one thing changed.
struct Variant {
    key: &'static str,
    words: &'static str,
    change: fn(&mut Cell),
}

const VARIANTS: [Variant; 5] = [
    Variant {
        key: "rate-control",
        words: "with C3's rate control",
        change: |cell| cell.selector = Selects::Really(Algorithm::C3RateControl),
    },
    Variant {
        key: "copies",
        words: "where copies of answers take the accelerators' time, and count in plans",
        change: |cell| cell.network = Some(Network { counts_copies: true, ..Network::default() }),
    },
    Variant {
        key: "near-hosts",
        words: "where links to hosts take no time",
        change: |cell| cell.network = Some(Network { host_ns: 0, ..Network::default() }),
    },
    Variant {
        key: "grid",
        words: "with the arrivals and speeds of C3's public simulator",
        change: |cell| cell.arrivals = Arrivals::Grid,
    },
    Variant { key: "range-1", words: "with servers that are always slow", change: |cell| cell.range = 1.0 },
];
/// The paper's example of a plan.
const EXAMPLE: Contender = Contender { key: "example", placement: Placement::Example, ..ILP };

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = sweep(effort, &CLIENTS, |cell, clients| cell.clients = clients);
    cases.push(EXAMPLE.case(DEFAULT, effort, |_| {}));
    for variant in &VARIANTS {
        cases.extend(ALL.map(|contender| contender.case(variant.key, effort, variant.change)));
    }
    cases
}

fn reduce(results: &Replicas) -> Findings {
    let mut rows = Vec::new();
    for (quantity, least, most, words) in
        [(MEAN, 0.339, 0.599, "33.9 to 59.9 %"), (P99, 0.415, 0.731, "41.5 to 73.1 %")]
    {
        for clients in CLIENTS {
            let words_of_place = format!("{clients} clients");
            let paper = range(words, least, most);
            rows.push(against(results, CLIRS, &clients.to_string(), &words_of_place, quantity, paper));
        }
    }
    let pairs = |other: Contender| CLIENTS.map(|clients| (other.at(clients), ILP.at(clients)));
    for (quantity, paper) in [(MEAN, 0.347), (P99, 0.416)] {
        let what = format!("NetRS-ILP's {} is below NetRS-ToR's by, in the mean over clients", quantity.label);
        rows.push(
            Row::new(Predicted, Share, format!("tor-{}", quantity.key), what, Is(paper)).found_alone(mean_reduction(
                results,
                &pairs(TOR),
                quantity,
            )),
        );
    }
    rows.extend(shapes(results));
    let places = CLIENTS.map(|clients| (clients.to_string(), f64::from(clients)));
    Findings { rows, plots: plots(results, "clients", &places), notes: notes(results), ..Findings::default() }
}

/// How curves run from 100 to 700 clients.
fn shapes(results: &Replicas) -> Vec<Row> {
    let growth = |contender: Contender, quantity: Quantity| {
        let [first, .., last] = CLIENTS;
        results.factor(&contender.at(last), &contender.at(first), quantity.of)
    };
    let row = |contender: Contender, quantity: Quantity, words, band| {
        let name = format!("{}-{}-growth", contender.key, quantity.key);
        let what = format!("{}'s {} with 700 clients by that with 100", super::short(contender), quantity.label);
        Row::new(Predicted, Factor, name, what, Says(words, band)).found_alone(growth(contender, quantity))
    };
    let unchanged = Band::around(1.0, RATIO_WITHIN);
    [MEAN, P99]
        .into_iter()
        .flat_map(|quantity| {
            [
                row(CLIRS, quantity, "grows", Band::from(RATIO_WITHIN)),
                row(TOR, quantity, "roughly unchanged", unchanged),
                row(ILP, quantity, "roughly unchanged", unchanged),
            ]
        })
        .collect()
}

fn notes(results: &Replicas) -> Vec<String> {
    let percent = |over: &str, under: &str, quantity| {
        reduction(results, over, under, quantity)
            .map_or_else(|| "–".into(), |share| format!("{:.1} %", share.mean * 100.0))
    };
    let both =
        |over: &str, under: &str| format!("mean −{}, 99th −{}", percent(over, under, MEAN), percent(over, under, P99));
    let (clirs, example) = (CLIRS.at(DEFAULT), EXAMPLE.at(DEFAULT));
    let mut notes = vec![
        format!("RSNodes with 500 clients: {}.", rsnodes(results, &ILP.at(DEFAULT))),
        format!(
            "The paper's example of a plan, {}, against CliRS: {}; the integer program's: {}.",
            rsnodes(results, &example),
            both(&clirs, &example),
            both(&clirs, &ILP.at(DEFAULT))
        ),
        "Servers are fast half of the time, so what comes is 90 % of what they could do if all were slow, and 60 % of what they can do if \
         fast means three times the rate."
            .into(),
    ];
    notes.extend(VARIANTS.iter().map(|variant| {
        format!(
            "500 clients {}: NetRS-ILP against CliRS {}; RSNodes {}.",
            variant.words,
            both(&CLIRS.at(variant.key), &ILP.at(variant.key)),
            rsnodes(results, &ILP.at(variant.key))
        )
    }));
    notes
}
