//! Runs `transcripts/cache/` against the reference model, the C core (native and in the kernel) and the asic engine.

use crate::files::{assert_same, cites, read_all, rewrite};
use midflight_asic::cache::AsicCache;
use midflight_dataplane::cache::CacheConfig;
use midflight_spec::cache::Model;
use midflight_spec::transcript::{AnyEngine, CacheVocabulary, CheckedNative, run};
use std::path::PathBuf;
use std::sync::OnceLock;

/// With their paths; rewritten first if `UPDATE_TRANSCRIPTS` is set.
fn transcripts() -> &'static [(PathBuf, String)] {
    static TRANSCRIPTS: OnceLock<Vec<(PathBuf, String)>> = OnceLock::new();
    TRANSCRIPTS.get_or_init(|| {
        read_all("cache", |path, transcript| {
            rewrite::<CacheVocabulary>(path, transcript, &mut new_model, run::<CacheVocabulary>)
        })
    })
}

fn new_model(config: &CacheConfig, _: u32, secret: u128) -> AnyEngine<CacheVocabulary> {
    Box::new(Model::new(config, secret))
}

fn new_core(config: &CacheConfig, epoch: u32, secret: u128) -> AnyEngine<CacheVocabulary> {
    Box::new(CheckedNative::new(config, epoch, secret).expect("the transcript's bounds are legal"))
}

fn new_asic(config: &CacheConfig, _: u32, secret: u128) -> AnyEngine<CacheVocabulary> {
    Box::new(AsicCache::new(config, secret).expect("a pipeline has room for the transcript's rules"))
}

/// The rules that an operator alone can keep or break.
#[test]
fn each_rule_of_the_operator_has_a_transcript() {
    for rule in [1, 2, 3, 6, 7, 8] {
        assert!(transcripts().iter().any(|transcript| cites(transcript, "n", rule)), "no transcript is about N{rule}");
    }
}

#[test]
fn model_answers_as_written() {
    assert_same::<CacheVocabulary>(transcripts(), &mut new_model, run::<CacheVocabulary>);
}

#[test]
fn core_answers_as_written() {
    assert_same::<CacheVocabulary>(transcripts(), &mut new_core, run::<CacheVocabulary>);
}

/// Without any difference.
#[test]
fn asic_answers_as_written() {
    assert_same::<CacheVocabulary>(transcripts(), &mut new_asic, run::<CacheVocabulary>);
}

/// Through `BPF_PROG_RUN`.
#[cfg(feature = "kernel")]
#[test]
fn kernel_answers_as_written() {
    crate::files::assert_kernel_says_the_same::<CacheVocabulary>(transcripts(), &CacheConfig::default());
}

/// The printer marks wrong fields by words in capitals.
#[test]
fn no_answer_is_known_to_be_wrong() {
    for (path, transcript) in transcripts() {
        for line in transcript.lines().filter(|line| line.starts_with("    ")) {
            let wrong = line.split([' ', ',', ':']).find(|word| ["COOKIE", "UNSOUND", "EFFECT"].contains(word));
            let is_answer = line.contains("-> ") && line.split_whitespace().nth(2) == Some("COOKIE");
            assert!(wrong.is_none() || is_answer && !line.contains(": COOKIE"), "{}: {line}", path.display());
        }
    }
}
