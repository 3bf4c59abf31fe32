//! The searches of the store's protocol model that take seconds; `midflight-lab check store` runs all.

use midflight_rmt::Watch;
use midflight_spec::store::protocol::{Planted, ReplyCheck, Scope, all, search, with};

/// A search with fewer states takes a second or two.
const SMALL: u64 = 400_000;

fn small(scopes: impl IntoIterator<Item = Scope>) -> Vec<Scope> {
    let small: Vec<Scope> = scopes.into_iter().filter(|scope| scope.states < SMALL).collect();
    assert!(small.len() >= 4, "only {} searches are small", small.len());
    small
}

#[test]
fn r1_r4_hold_where_one_leader_and_one_switch_live_on_or_restart() {
    for scope in small(all()) {
        for reply_check in [ReplyCheck::Strict, ReplyCheck::Relaxed] {
            let verdict = search(&scope.clone().checked(reply_check), 1, &Watch::default());
            assert!(verdict.exhaustive, "{}, {}: {:#?}", scope.name, reply_check.name(), verdict.refutation);
            let expected = scope.states as usize;
            assert!(
                (expected / 2..expected * 2).contains(&verdict.states),
                "{}: {} states",
                scope.name,
                verdict.states
            );
        }
    }
}

#[test]
fn r1_planted_errors_are_refuted() {
    for scope in small(Planted::ALL.map(with)) {
        let verdict = search(&scope, 1, &Watch::default());
        // (`reply-seq-of-former-session`, which breaks only the strict check, is not small.)
        let found = verdict.refutation.unwrap_or_else(|| panic!("{} is not found", scope.title()));
        // A founding breaks R2 before any read.
        assert!(["R1", "R2"].contains(&found.rule), "{}: {}", scope.title(), found.rule);
    }
}

#[test]
fn every_planted_error_has_a_name_of_its_own() {
    let every = Planted::ALL.into_iter().chain(Planted::HARMLESS);
    let names: std::collections::BTreeSet<_> = every.clone().map(Planted::name).collect();
    assert_eq!(names.len(), every.count());
    assert!(Planted::ALL.len() >= 18);
}
