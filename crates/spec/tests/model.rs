//! The differential test of the C core and the reference model, on random input: every answer, verdict and counter is
//! compared, and after each datagram all structures are walked and the T rules checked.

use midflight_dataplane::{Stats, Verdict};
use midflight_spec::model::{EPOCH, interpret};
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

fn input() -> impl Strategy<Value = Input> {
    prop::collection::vec(any::<u8>(), 0..4000).prop_map(Input)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    /// T1 to T8, T10, T11, T13, T14: the core does what the model does.
    #[test]
    fn core_does_what_the_model_says(input in input(), secret in any::<u128>()) {
        let outcome = interpret(&input.0, secret, |config| CheckedNative::new(config, EPOCH, secret).expect("within its bounds"));
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

fn compare(input: &[u8]) -> Result<Stats, String> {
    interpret(input, SECRET, |config| CheckedNative::new(config, EPOCH, SECRET).expect("within its bounds"))
}

/// Together the inputs cause every verdict, and everything that can happen to a task.
#[test]
fn inputs_reach_everything() {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 9];
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..3000).map(|_| random.next_u32() as u8).collect();
        let stats = compare(&bytes).expect("agreement");
        reasons.iter_mut().zip(stats.reasons).for_each(|(sum, times)| *sum += times);
        let ends = [stats.tasks.completed, stats.tasks.cancelled, stats.tasks.dropped, stats.tasks.purged];
        let others =
            [stats.tasks.submitted, stats.tasks.assigned, stats.tasks.expired, stats.tasks.returned, stats.gaps];
        let here = ends.into_iter().chain(others);
        events.iter_mut().zip(here).for_each(|(sum, times)| *sum += times);
    }
    // The tasks program forwards nothing.
    for verdict in Verdict::ALL.iter().filter(|verdict| **verdict != Verdict::Forwarded) {
        assert!(reasons[*verdict as usize] >= 10, "{verdict:?}: {}", reasons[*verdict as usize]);
    }
    assert!(events.iter().all(|&times| times >= 100), "{events:?}");
}

/// Runs the inputs that the fuzzer kept, without the fuzzer.
#[test]
fn the_fuzzers_corpus_still_agrees() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/core");
    for entry in std::fs::read_dir(folder).expect("the corpus is part of the repository") {
        let path = entry.expect("readable").path();
        let input = std::fs::read(&path).expect("readable");
        let outcome = compare(&input);
        assert!(outcome.is_ok(), "{}: {}", path.display(), outcome.unwrap_err());
    }
}
