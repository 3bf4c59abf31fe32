//! The C core against the reference model: random stories, every answer, verdict and counter compared, all structures
//! walked and the T rules checked after each datagram.

use midflight_dataplane::{Stats, Verdict};
use midflight_spec::model::{EPOCH, play};
use midflight_spec::transcript::Foretelling;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const SECRET: u128 = 1;

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

    /// T1 to T8, T10, T11, T13, T14: the core does what the document says.
    #[test]
    fn core_does_what_the_model_says(story in story(), secret in any::<u128>()) {
        let told = play(&story.0, secret, |config| Foretelling::new(config, EPOCH, secret).expect("within its bounds"));
        prop_assert!(told.is_ok(), "{}", told.unwrap_err());
    }
}

fn tell(story: &[u8]) -> Result<Stats, String> {
    play(story, SECRET, |config| Foretelling::new(config, EPOCH, SECRET).expect("within its bounds"))
}

/// The stories are worth telling: between them they meet every verdict, and everything that can happen to a task.
#[test]
fn stories_reach_everything() {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 9];
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..3000).map(|_| random.next_u32() as u8).collect();
        let stats = tell(&bytes).expect("agreement");
        reasons.iter_mut().zip(stats.reasons).for_each(|(sum, times)| *sum += times);
        let ends = [stats.completed, stats.cancelled, stats.dropped, stats.purged];
        let others = [stats.submitted, stats.assigned, stats.expired, stats.returned, stats.gaps];
        let here = ends.into_iter().chain(others);
        events.iter_mut().zip(here).for_each(|(sum, times)| *sum += times);
    }
    // No task is passed on by a switch.
    for verdict in Verdict::ALL.iter().filter(|verdict| **verdict != Verdict::Forwarded) {
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
        let told = tell(&story);
        assert!(told.is_ok(), "{}: {}", path.display(), told.unwrap_err());
    }
}
