//! The C core against the reference model: random stories, every answer, verdict and counter compared, all structures
//! walked and the T rules checked after each datagram.

use midflight_dataplane::Verdict;
use midflight_dataplane::model::{EPOCH, play};
use midflight_dataplane::transcript::Core;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Bytes that [`play`] turns into a story; printed so that they can be pasted.
#[derive(Clone)]
struct Story(Vec<u8>);

impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

fn story() -> impl Strategy<Value = Story> {
    prop::collection::vec(any::<u8>(), 0..4000).prop_map(Story)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    /// T1 to T8, T10, T11: the core does what the document says.
    #[test]
    fn core_does_what_the_model_says(story in story(), secret in any::<u64>()) {
        let told = play(&story.0, |config| Core::new(config, EPOCH, secret).expect("within its bounds"));
        prop_assert!(told.is_ok(), "{}", told.unwrap_err());
    }
}

/// The stories are worth telling: between them they meet every verdict, and everything that can happen to a task.
#[test]
fn stories_reach_everything() {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 6];
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..3000).map(|_| random.next_u32() as u8).collect();
        let stats = play(&bytes, |config| Core::new(config, EPOCH, 1).expect("within its bounds")).expect("agreement");
        reasons.iter_mut().zip(stats.reasons).for_each(|(sum, times)| *sum += times);
        let here = [stats.submitted, stats.assigned, stats.completed, stats.expired, stats.returned, stats.cancelled];
        events.iter_mut().zip(here).for_each(|(sum, times)| *sum += times);
    }
    for verdict in Verdict::ALL {
        assert!(reasons[*verdict as usize] >= 10, "{verdict:?}: {}", reasons[*verdict as usize]);
    }
    assert!(events.iter().all(|&times| times >= 100), "{events:?}");
}

/// What the fuzzer once found worth keeping is told again, without a fuzzer.
#[test]
fn the_fuzzers_corpus_still_agrees() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/core");
    for entry in std::fs::read_dir(folder).expect("the corpus is part of the repository") {
        let path = entry.expect("readable").path();
        let story = std::fs::read(&path).expect("readable");
        let told = play(&story, |config| Core::new(config, EPOCH, 1).expect("within its bounds"));
        assert!(told.is_ok(), "{}: {}", path.display(), told.unwrap_err());
    }
}
