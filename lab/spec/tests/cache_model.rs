//! Differential test of the cache program's C core and the reference model, on random traffic: compares verdicts,
//! datagrams and counters, and walks all structures after each datagram.

mod common;

use common::add;
use midflight_dataplane::cache::{CacheProgram, Stats, Verdict};
use midflight_spec::cache::interpret;
use midflight_spec::transcript::CheckedNative;

const SECRET: u128 = 1;

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    let start = |config: &_| CheckedNative::<CacheProgram>::new(config, 1, secret).expect("within its bounds");
    interpret(input, secret, start, |engine, group| engine.native().counts(group))
}

/// N1, N3, N8, as far as the operator keeps them.
/// Every verdict of this kind of program, and every event of a packet.
#[test]
fn core_does_what_the_model_says_and_inputs_reach_everything() {
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 7];
    for (secret, bytes) in (1..).zip(common::random_inputs(4000)) {
        let stats = compare(&bytes, secret).unwrap_or_else(|difference| panic!("{difference}"));
        add(&mut reasons, stats.reasons);
        let of_requests = [stats.labelled, stats.degraded, stats.without_rsnode, stats.selected];
        add(&mut events, of_requests.into_iter().chain([stats.copied, stats.not_copied, stats.delivered]));
    }
    // Its packets carry no keys and no counts.
    let never = [Verdict::Ok, Verdict::UnknownKey, Verdict::BadCount];
    for verdict in Verdict::ALL {
        let times = reasons[*verdict as usize];
        assert!(if never.contains(verdict) { times == 0 } else { times >= 10 }, "{verdict:?}: {times}");
    }
    assert!(events.iter().all(|&times| times >= 100), "{events:?}");
}

#[test]
fn the_fuzzers_corpus_still_agrees() {
    common::corpus_agrees("cache", |input| compare(input, SECRET));
}
