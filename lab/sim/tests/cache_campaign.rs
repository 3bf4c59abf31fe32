//! The fault campaign of the cache program, within the time of continuous integration.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_sim::cache::check::{CacheSubject, Trial, take_detections};
use midflight_sim::check::{Campaign, Subject, Trial as _, run, run_traced};

#[test]
fn n1_to_n9_hold_in_200_trials() {
    let campaign = Campaign { seeds: 0..200, threads: 2, mutant: 0 };
    let totals = campaign.run::<CacheSubject>(&|_| true);
    if let Some((seed, outcome)) = totals.first {
        panic!("seed {seed}: {:?}", outcome.violation);
    }
    assert_eq!(totals.seeds, 200);
}

#[test]
fn a_seed_is_replayed_exactly() {
    let trial = CacheSubject::draw(7);
    trial.validate().unwrap();
    let (outcome, lines) = run_traced::<CacheSubject>(&trial);
    assert_eq!(run::<CacheSubject>(&trial), outcome);
    assert!(!lines.is_empty());
    let text = trial.to_toml().unwrap();
    assert_eq!(toml::from_str::<Trial>(&text).unwrap(), trial);
}

/// Prints how long operators send requests to a dead RSNode; the checker itself compares each time with its bound.
fn detection(seeds: std::ops::Range<u64>) {
    let _ = take_detections();
    for seed in seeds {
        let violation = run::<CacheSubject>(&CacheSubject::draw(seed)).violation;
        assert_eq!(violation, None, "seed {seed}");
    }
    let all = take_detections();
    let ms = |nanos: u64| nanos as f64 / 1e6;
    assert!(all.count > 0, "RSNodes die in some trials");
    println!(
        "{} RSNodes died; detection took {:.1} ms on average, {:.1} ms at worst (promised: {:.1} ms)",
        all.count,
        ms(all.sum / all.count),
        ms(all.worst),
        ms(all.worst_bound)
    );
    assert!(all.worst <= all.worst_bound);
}

#[test]
fn n6_the_death_of_an_rsnode_is_noticed_in_time() {
    detection(0..100);
}

#[test]
#[ignore = "takes minutes"]
fn n6_the_death_of_an_rsnode_is_noticed_in_time_in_2000_trials() {
    detection(0..2_000);
}
