//! Input for differential tests: random, or from the fuzzer's corpus.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;

/// Bytes for an interpreter; printed in a form that can be pasted.
#[derive(Clone)]
pub(crate) struct Input(pub(crate) Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

pub(crate) fn input() -> impl Strategy<Value = Input> {
    prop::collection::vec(any::<u8>(), 0..4000).prop_map(Input)
}

/// Deterministic.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2026),
        ..ProptestConfig::default()
    }
}

/// 250 inputs, the same each time.
pub(crate) fn random_inputs(length: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    (0..250).map(move |_| (0..length).map(|_| random.next_u32() as u8).collect())
}

pub(crate) fn add(sums: &mut [u64], here: impl IntoIterator<Item = u64>) {
    sums.iter_mut().zip(here).for_each(|(sum, times)| *sum += times);
}

/// Replays the corpus of the fuzzer `name`.
pub(crate) fn corpus_agrees<T>(name: &str, compare: impl Fn(&[u8]) -> Result<T, String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    for entry in std::fs::read_dir(folder).expect("the corpus is part of the repository") {
        let path = entry.expect("readable").path();
        let outcome = compare(&std::fs::read(&path).expect("readable"));
        assert!(outcome.is_ok(), "{}: {}", path.display(), outcome.err().unwrap_or_default());
    }
}
