//! The C core against the reference model: random stories, every answer, verdict and counter compared, all structures
//! walked and the T rules checked after each datagram.

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
