//! The differential test of the reads program: the C core and the reference model, on random input. Every datagram, verdict and
//! counter is compared, and after each datagram all structures are walked.

use midflight_dataplane::reads::{ReadsProgram, Stats, Verdict};
use midflight_spec::reads::interpret;
use midflight_spec::transcript::CheckedNative;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const SECRET: u128 = 1;

/// Input for [`interpret`]; printed so that it can be pasted.
#[derive(Clone)]
struct Input(Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    interpret(input, secret, |config| CheckedNative::<ReadsProgram>::new(config, 1, secret).expect("within its bounds"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    /// R1, R4, R7, as far as they are the switch's: the core does what the model does.
    #[test]
    fn core_does_what_the_model_says(input in prop::collection::vec(any::<u8>(), 0..4000).prop_map(Input), secret in any::<u128>()) {
        let outcome = compare(&input.0, secret);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

/// Together the inputs cause every verdict, and everything that can happen to a request.
#[test]
fn inputs_reach_everything() {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 8];
    for _ in 0..250 {
        let bytes: Vec<u8> = (0..4000).map(|_| random.next_u32() as u8).collect();
        let stats = compare(&bytes, SECRET).expect("agreement");
        reasons.iter_mut().zip(stats.reasons).for_each(|(sum, times)| *sum += times);
        for set in stats.sets {
            let reads = [set.to_followers, set.to_leader, set.leader_only, set.turned_back, set.outdated];
            let here = reads.into_iter().chain([set.writes, set.closed, set.sessions]);
            events.iter_mut().zip(here).for_each(|(sum, times)| *sum += times);
        }
    }
    for verdict in Verdict::ALL {
        assert!(reasons[*verdict as usize] >= 10, "{verdict:?}: {}", reasons[*verdict as usize]);
    }
    assert!(events.iter().all(|&times| times >= 100), "{events:?}");
}

/// Runs the inputs that the fuzzer kept, without the fuzzer.
#[test]
fn the_fuzzers_corpus_still_agrees() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/reads");
    for entry in std::fs::read_dir(folder).expect("the corpus is part of the repository") {
        let path = entry.expect("readable").path();
        let outcome = compare(&std::fs::read(&path).expect("readable"), SECRET);
        assert!(outcome.is_ok(), "{}: {}", path.display(), outcome.unwrap_err());
    }
}
