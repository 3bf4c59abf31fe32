//! Differential test of the cache program's asic engine and the reference model, on the C core's random traffic.

mod common;

use common::{add, input};
use midflight_asic::cache::AsicCache;
use midflight_dataplane::cache::{Stats, Verdict};
use midflight_spec::cache::interpret;
use proptest::prelude::*;

const SECRET: u128 = 1;

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    let start = |config: &_| AsicCache::new(config, secret).expect("a pipeline has room for it");
    interpret(input, secret, start, AsicCache::counts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..common::config() })]

    /// N1, N3, N8, as far as the operator keeps them.
    #[test]
    fn pipeline_does_what_the_model_says(input in input(), secret in any::<u128>()) {
        let outcome = compare(&input.0, secret);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

/// Every verdict of this kind of program, and every event of a packet.
#[test]
fn inputs_reach_everything() {
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 7];
    for bytes in common::random_inputs(4000).take(60) {
        let stats = compare(&bytes, SECRET).expect("agreement");
        add(&mut reasons, stats.reasons);
        let of_requests = [stats.labelled, stats.degraded, stats.without_rsnode, stats.selected];
        add(&mut events, of_requests.into_iter().chain([stats.copied, stats.not_copied, stats.delivered]));
    }
    let never = [Verdict::Ok, Verdict::UnknownKey, Verdict::BadCount];
    for verdict in Verdict::ALL {
        let times = reasons[*verdict as usize];
        assert!((times == 0) == never.contains(verdict), "{verdict:?}: {times}");
    }
    assert!(events.iter().all(|&times| times >= 20), "{events:?}");
}

#[test]
fn the_fuzzers_corpus_agrees_too() {
    common::corpus_agrees("cache", |input| compare(input, SECRET));
}
