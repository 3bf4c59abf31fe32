//! The asic engine of the reads program against the reference model, on random input.

use midflight_dataplane::asic::reads::AsicReads;
use midflight_dataplane::reads::{Policy, Stats};
use midflight_spec::reads::interpret_by;
use proptest::prelude::*;

/// Weights count for nothing in the pipeline.
const POLICIES: [Policy; 2] = [Policy::Random, Policy::LeaderAvoidance];

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    interpret_by(input, secret, &POLICIES, |config| AsicReads::new(config, secret, 0).expect("a pipeline has room for it"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// R1, R4, R7, as far as they are the switch's: the pipeline does what the model does.
    #[test]
    fn pipeline_does_what_the_model_says(input in proptest::collection::vec(any::<u8>(), 0..1500), secret in any::<u128>()) {
        let outcome = compare(&input, secret);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}
