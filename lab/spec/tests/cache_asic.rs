//! Differential test of the cache program's asic engine and the reference model, on the C core's random traffic.

mod common;

use common::add;
use midflight_asic::cache::AsicCache;
use midflight_dataplane::cache::{Stats, Verdict};
use midflight_spec::cache::interpret;

const SECRET: u128 = 1;

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    let start = |config: &_| AsicCache::new(config, secret).expect("a pipeline has room for it");
    interpret(input, secret, start, AsicCache::counts)
}

/// N1, N3, N8, as far as the operator keeps them.
/// Every verdict of this kind of program, and every event of a packet.
#[test]
fn pipeline_does_what_the_model_says_and_inputs_reach_everything() {
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 7];
    for (secret, bytes) in (1..).zip(common::random_inputs(4000)).take(160) {
        let stats = compare(&bytes, secret).unwrap_or_else(|difference| panic!("{difference}"));
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
