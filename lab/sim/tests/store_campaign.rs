//! The fault campaign of the store program, within the time of continuous integration.

use midflight_sim::check::{Campaign, run, run_traced};
use midflight_sim::check::{Subject, Trial as _};
use midflight_sim::store::check::{StoreSubject, Trial};

#[test]
fn r1_to_r7_hold_in_200_trials() {
    let campaign = Campaign { seeds: 0..200, threads: 2, mutant: 0 };
    let totals = campaign.run::<StoreSubject>(&|_| true);
    if let Some((seed, outcome)) = totals.first {
        panic!("seed {seed}: {:?}", outcome.violation);
    }
    assert_eq!(totals.seeds, 200);
}

/// The same trials with switches of the asic engine.
#[test]
fn r1_to_r7_hold_by_the_asic_engine() {
    for seed in 0..40 {
        let mut trial = StoreSubject::draw(seed);
        trial.set.is_asic = true;
        let outcome = run::<StoreSubject>(&trial);
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}

/// Trials that once found bugs: R4, a reply that was sent to the leader after its session; R6, a snapshot with a lost
/// confirmation, and a learner without one that took all other leaders for those of another store.
#[test]
fn r4_r6_hold_where_they_did_not() {
    for seed in [83, 175, 2276] {
        let outcome = run::<StoreSubject>(&StoreSubject::draw(seed));
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}

#[test]
fn a_seed_is_replayed_exactly() {
    let trial = StoreSubject::draw(7);
    trial.validate().unwrap();
    let (outcome, lines) = run_traced::<StoreSubject>(&trial);
    assert_eq!(run::<StoreSubject>(&trial), outcome);
    assert!(!lines.is_empty());
    let text = trial.to_toml().unwrap();
    assert_eq!(toml::from_str::<Trial>(&text).unwrap(), trial);
}
