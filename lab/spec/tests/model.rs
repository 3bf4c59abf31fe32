//! Differential test of the C core and the reference model on random input: compares every answer, verdict and counter,
//! and after each datagram walks all structures and checks the T rules.

mod common;

use common::{add, input};
use midflight_dataplane::{Stats, Verdict};
use midflight_spec::model::{EPOCH, interpret};
use midflight_spec::transcript::CheckedNative;
use proptest::prelude::*;

const SECRET: u128 = 1;

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    interpret(input, secret, |config| CheckedNative::new(config, EPOCH, secret).expect("within its bounds"))
}

proptest! {
    #![proptest_config(common::config())]

    /// T1 to T8, T10, T11, T13, T14.
    #[test]
    fn core_does_what_the_model_says(input in input(), secret in any::<u128>()) {
        let outcome = compare(&input.0, secret);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

/// Every verdict, and every event of a task.
#[test]
fn inputs_reach_everything() {
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 9];
    for bytes in common::random_inputs(3000) {
        let stats = compare(&bytes, SECRET).expect("agreement");
        add(&mut reasons, stats.reasons);
        let tasks = stats.tasks;
        add(&mut events, [tasks.completed, tasks.cancelled, tasks.dropped, tasks.purged, tasks.submitted]);
        add(&mut events[5..], [tasks.assigned, tasks.expired, tasks.returned, stats.gaps]);
    }
    for verdict in Verdict::ALL.iter().filter(|verdict| **verdict != Verdict::Forwarded) {
        assert!(reasons[*verdict as usize] >= 10, "{verdict:?}: {}", reasons[*verdict as usize]);
    }
    assert!(events.iter().all(|&times| times >= 100), "{events:?}");
}

#[test]
fn the_fuzzers_corpus_still_agrees() {
    common::corpus_agrees("core", |input| compare(input, SECRET));
}
