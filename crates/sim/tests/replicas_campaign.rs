//! The fault campaign of the replicas program, as far as continuous integration has time for it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_sim::check::{Campaign, Subject, Trial as _, run, run_traced};
use midflight_sim::replicas::check::{ReplicasSubject, Trial};

#[test]
fn n1_to_n9_hold_in_200_trials() {
    let campaign = Campaign { seeds: 0..200, threads: 2, mutant: 0 };
    let totals = campaign.run::<ReplicasSubject>(&|_| true);
    if let Some((seed, outcome)) = totals.first {
        panic!("seed {seed}: {:?}", outcome.violation);
    }
    assert_eq!(totals.seeds, 200);
}

#[test]
fn a_seed_is_replayed_exactly() {
    let trial = ReplicasSubject::draw(7);
    trial.validate().unwrap();
    let (outcome, lines) = run_traced::<ReplicasSubject>(&trial);
    assert_eq!(run::<ReplicasSubject>(&trial), outcome);
    assert!(!lines.is_empty());
    let text = trial.to_toml().unwrap();
    assert_eq!(toml::from_str::<Trial>(&text).unwrap(), trial);
}
