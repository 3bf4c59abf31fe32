//! NetRS, figure 4: the number of clients.

use super::{
    ALL, CLIRS, Cache, Contender, ILP, MEAN, P99, TOR, growth, mean_reduction, plots, range, reduction, rsnodes, sweep,
};
use crate::differences;
use crate::figures::results::Case;
use crate::figures::{Effort, Figure, Reduce, traces};
use crate::findings::Class::Seen;
use crate::findings::Paper::Is;
use crate::findings::Unit::Share;
use crate::findings::{Band, Findings, RATIO_WITHIN, Row};
use crate::netrs::{Arrivals, Cell, Network, Placement, Selects};
use midflight_cache::select::Algorithm;

pub(in super::super) const FIGURE: Figure = Figure {
    name: "netrs-4",
    title: "Latency against the number of clients",
    source: "NetRS (section V-B1), figure 4",
    set_up: "100 servers with 4 slots, 4 ms or 4/3 ms of service, on a 16-ary fat-tree; 600,000 reads at a utilisation of 90 %; C3 without rate \
             control chooses: at 100 to 700 clients, at the switch of each rack, or where the integer program puts it.",
    differs: differences::NETRS_4,
    cases,
    columns: traces::none,
    reduce: Reduce::Cache(reduce),
};

const CLIENTS: [u32; 7] = [100, 200, 300, 400, 500, 600, 700];
/// The paper's default.
const DEFAULT: &str = "500";

/// Changes one thing that the paper leaves open, or contradicts elsewhere.
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
    Variant {
        key: "steady",
        words: "where all servers are slow all the time, at a utilisation of 45 %",
        change: |cell| (cell.range, cell.utilisation) = (1.0, 0.45),
    },
];
const EXAMPLE: Contender = Contender { key: "example", placement: Placement::Example, ..ILP };

fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = sweep(effort, &CLIENTS, |cell, clients| cell.clients = clients);
    cases.push(EXAMPLE.case(DEFAULT, effort, |_| {}));
    for variant in &VARIANTS {
        cases.extend(ALL.map(|contender| contender.case(variant.key, effort, variant.change)));
    }
    cases
}

fn reduce(results: &Cache) -> Findings {
    let places = CLIENTS.map(|clients| clients.to_string());
    let mut rows = Vec::new();
    for (quantity, ends) in [(MEAN, (0.339, 0.599)), (P99, (0.415, 0.731))] {
        rows.extend(range(results, CLIRS, &places, quantity, ends));
    }
    let pairs = CLIENTS.map(|clients| (TOR.at(clients), ILP.at(clients)));
    for (quantity, paper) in [(MEAN, 0.347), (P99, 0.416)] {
        let what = format!("NetRS-ILP's {} is below NetRS-ToR's by, in the mean over clients", quantity.label);
        rows.push(
            Row::new(Seen, Share, format!("tor-{}", quantity.key), what, Is(paper))
                .found_alone(mean_reduction(results, &pairs, quantity)),
        );
    }
    for (quantity, paper) in [(MEAN, 0.536), (P99, 0.657)] {
        let what = format!("With the paper's example of a plan, the {} is below CliRS's by", quantity.label);
        rows.push(Row::new(Seen, Share, format!("example-{}", quantity.key), what, Is(paper)).found_alone(reduction(
            results,
            &CLIRS.at(DEFAULT),
            &EXAMPLE.at(DEFAULT),
            quantity,
        )));
    }
    rows.extend(shapes(results));
    let places = CLIENTS.map(|clients| (clients.to_string(), f64::from(clients)));
    Findings { rows, plots: plots(results, "clients", &places), notes: notes(results), ..Findings::default() }
}

fn shapes(results: &Cache) -> Vec<Row> {
    let unchanged = ("roughly unchanged", Band::around(1.0, RATIO_WITHIN));
    let grows = ("grows", Band::from(RATIO_WITHIN));
    let row = |contender, quantity, says| {
        growth(results, contender, quantity, ("100", "700"), "with 700 clients by that with 100", says)
    };
    let rows = |quantity| [row(CLIRS, quantity, grows), row(TOR, quantity, unchanged), row(ILP, quantity, unchanged)];
    [MEAN, P99].into_iter().flat_map(rows).collect()
}

fn notes(results: &Cache) -> Vec<String> {
    let percent = |over: &str, under: &str, quantity| {
        let share = reduction(results, over, under, quantity);
        share.map_or_else(|| "–".into(), |share| format!("{:.1} %", share.mean * 100.0))
    };
    let both = |over: &str, under: &str| {
        format!("mean below by {}, 99th by {}", percent(over, under, MEAN), percent(over, under, P99))
    };
    let (clirs, example) = (CLIRS.at(DEFAULT), EXAMPLE.at(DEFAULT));
    let mut notes = vec![
        format!("RSNodes with 500 clients: {}.", rsnodes(results, &ILP.at(DEFAULT))),
        format!(
            "The paper's example of a plan, {}, against CliRS: {}; the integer program's: {}.",
            rsnodes(results, &example),
            both(&clirs, &example),
            both(&clirs, &ILP.at(DEFAULT))
        ),
        "Servers are slow half of the time and three times as fast in the other half, so that they can do twice what slow ones can: a \
         utilisation of 90 %, as the paper counts it, is 45 % of what they can do."
            .into(),
    ];
    notes.extend(VARIANTS.iter().map(|variant| {
        format!(
            "500 clients {}, NetRS-ILP against CliRS: {}; RSNodes {}.",
            variant.words,
            both(&CLIRS.at(variant.key), &ILP.at(variant.key)),
            rsnodes(results, &ILP.at(variant.key))
        )
    }));
    notes
}
