//! A small fault campaign; `midflight-lab sim check tasks` runs many more seeds.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_sim::check::{Campaign, run_traced};
use midflight_sim::tasks::check::{TasksSubject, Trial};

/// `MIDFLIGHT_SEEDS`, or this many.
fn seeds(count: u64) -> u64 {
    std::env::var("MIDFLIGHT_SEEDS").map_or(count, |text| text.parse().unwrap())
}

#[test]
fn t1_to_t18_hold_whatever_befalls_a_cluster() {
    let campaign = Campaign { seeds: 0..seeds(200), threads: 2, mutant: 0 };
    let totals = campaign.run::<TasksSubject>(&|_| true);
    if let Some((seed, outcome)) = totals.first {
        let (_, lines) = run_traced::<TasksSubject>(&Trial::draw(seed));
        let last = lines.len().saturating_sub(40);
        panic!("seed {seed}: {}\n{}", outcome.violation.unwrap().broken, lines[last..].join("\n"));
    }
    assert_eq!(totals.seeds, seeds(200));
    assert!(totals.faults > totals.seeds / 2, "{totals:?}");
}
