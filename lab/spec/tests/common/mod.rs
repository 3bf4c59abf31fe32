//! Input for differential tests: random, or from the fuzzer's corpus.

use rand::Rng;
use std::path::Path;

/// 600 inputs, the same each time.
pub(crate) fn random_inputs(length: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    (0..600).map(move |_| (0..length).map(|_| random.next_u32() as u8).collect())
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
