//! The searches of the controller protocol model that take seconds. `make check-cache` runs all, including the
//! ignored test.

use midflight_rmt::Watch;
use midflight_spec::cache::control::{Planted, Scope, all, search, with};

/// A search with fewer states takes some seconds.
const SMALL: u64 = 100_000;

fn nothing_breaks(scope: &Scope) {
    let verdict = search(scope, 1, &Watch::default());
    assert!(verdict.exhaustive, "{}: {:#?}", scope.name, verdict.refutation);
    assert!(verdict.unseen.is_empty(), "{}: it never happens that {:?}", scope.name, verdict.unseen);
    let states = verdict.states as u64;
    assert!((scope.states / 2..scope.states * 2).contains(&states), "{}: {states} states", scope.name);
    println!("{:18} {states:>9} states, {:>2} steps deep", scope.name, verdict.depth);
}

/// The invariants of `docs/internals/cache-controller.md`, and N7.
#[test]
fn n7_invariants_hold_in_small_scopes() {
    let small: Vec<Scope> = all().into_iter().filter(|scope| scope.states < SMALL).collect();
    assert!(small.len() >= 4, "only {} searches are small", small.len());
    small.iter().for_each(nothing_breaks);
}

#[test]
#[ignore = "minutes: make check-cache"]
fn n7_invariants_hold_in_large_scopes() {
    all().iter().filter(|scope| scope.states >= SMALL).for_each(nothing_breaks);
}

fn is_found(planted: Planted) {
    let scope = with(planted);
    let verdict = search(&scope, 1, &Watch::default());
    let found = verdict.refutation.unwrap_or_else(|| panic!("{} is not found", scope.title()));
    assert_eq!(found.rule, planted.rule(), "{}: {:#?}", scope.title(), found.steps);
    println!("{:26} {:18} {} in {} steps", scope.title(), scope.name, found.rule, found.steps.len());
    if std::env::var_os("MIDFLIGHT_STEPS").is_some() {
        found.steps.iter().for_each(|step| println!("    {step}"));
    }
}

#[test]
fn n7_planted_errors_are_found() {
    Planted::ALL.into_iter().filter(|planted| planted.is_found_soon()).for_each(is_found);
}

#[test]
#[ignore = "minutes: make check-cache"]
fn n7_planted_errors_that_take_long_are_found() {
    Planted::ALL.into_iter().filter(|planted| !planted.is_found_soon()).for_each(is_found);
}
