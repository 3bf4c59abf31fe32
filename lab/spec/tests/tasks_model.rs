//! Differential test of the C core and the reference model on random input: compares every answer, verdict and counter,
//! and after each datagram walks all structures and checks the T rules.

mod common;

use common::add;
use midflight_dataplane::{Stats, Verdict};
use midflight_spec::tasks::{EPOCH, interpret};
use midflight_spec::transcript::CheckedNative;

const SECRET: u128 = 1;

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    interpret(input, secret, |config| CheckedNative::new(config, EPOCH, secret).expect("within its bounds"))
}

/// T1 to T8, T10, T11, T13, T14.
/// Every verdict, and every event of a task.
#[test]
fn core_does_what_the_model_says_and_inputs_reach_everything() {
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 9];
    for (secret, bytes) in (1..).zip(common::random_inputs(3000)) {
        let stats = compare(&bytes, secret).unwrap_or_else(|difference| panic!("{difference}"));
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
