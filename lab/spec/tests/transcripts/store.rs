//! Runs `transcripts/store/` against the reference model, the C core (native and in the kernel) and the asic engine.

use crate::files::{assert_same, cites, read_all, rewrite};
use midflight_asic::store::{AsicStore, UNIT_BITS};
use midflight_dataplane::store::StoreConfig;
use midflight_spec::store::Model;
use midflight_spec::transcript::{AnyEngine, CheckedNative, StoreVocabulary, run, run_asic};
use std::path::PathBuf;
use std::sync::OnceLock;

/// With their paths; rewritten first if `UPDATE_TRANSCRIPTS` is set.
fn transcripts() -> &'static [(PathBuf, String)] {
    static TRANSCRIPTS: OnceLock<Vec<(PathBuf, String)>> = OnceLock::new();
    TRANSCRIPTS.get_or_init(|| {
        read_all("store", |path, transcript| {
            let written = rewrite::<StoreVocabulary>(path, transcript, &mut new_model, run::<StoreVocabulary>);
            rewrite::<StoreVocabulary>(path, &written, &mut new_asic, run_asic::<StoreVocabulary>)
        })
    })
}

fn new_model(config: &StoreConfig, _: u32, secret: u128) -> AnyEngine<StoreVocabulary> {
    Box::new(Model::new(config, secret))
}

fn new_core(config: &StoreConfig, epoch: u32, secret: u128) -> AnyEngine<StoreVocabulary> {
    Box::new(CheckedNative::new(config, epoch, secret).expect("the transcript's bounds are legal"))
}

fn new_asic(config: &StoreConfig, _: u32, secret: u128) -> AnyEngine<StoreVocabulary> {
    Box::new(AsicStore::new(config, secret, UNIT_BITS).expect("a pipeline has room for the transcript's key groups"))
}

/// The rules that a switch alone can keep or break.
#[test]
fn each_rule_of_the_switch_has_a_transcript() {
    for rule in [1, 4, 6, 7] {
        assert!(transcripts().iter().any(|transcript| cites(transcript, "r", rule)), "no transcript is about R{rule}");
    }
}

#[test]
fn model_answers_as_written() {
    assert_same::<StoreVocabulary>(transcripts(), &mut new_model, run::<StoreVocabulary>);
}

#[test]
fn core_answers_as_written() {
    assert_same::<StoreVocabulary>(transcripts(), &mut new_core, run::<StoreVocabulary>);
}

/// Each difference names its line in the list of `docs/internals/asic-store.md`.
#[test]
fn asic_answers_as_written_but_where_a_listed_difference_is_named() {
    assert_same::<StoreVocabulary>(transcripts(), &mut new_asic, run_asic::<StoreVocabulary>);
    for (path, transcript) in transcripts() {
        for line in transcript.lines().filter(|line| line.starts_with("  asic")) {
            let reason = line.split_once('(').map_or("", |(_, reason)| reason);
            let name = reason.split_once(": ").map_or("", |(name, _)| name);
            assert!(
                ["any replica", "direct", "weights"].contains(&name),
                "{}: {line}: name a difference of the list",
                path.display()
            );
        }
    }
}

/// Through `BPF_PROG_RUN`.
#[cfg(feature = "kernel")]
#[test]
fn kernel_answers_as_written() {
    crate::files::assert_kernel_says_the_same::<StoreVocabulary>(transcripts(), &StoreConfig::default());
}

/// The printer marks wrong fields by words in capitals.
#[test]
fn no_answer_is_known_to_be_wrong() {
    for (path, transcript) in transcripts() {
        for line in transcript.lines().filter(|line| line.starts_with("    ")) {
            let signs = ["EPOCH", "SLOT", "STATUS", "HAS", "SECRETS", "COOKIE", "UNSOUND", "EFFECT"];
            let wrong = line.split([' ', ',', ':']).find(|word| signs.contains(word));
            assert_eq!(wrong, None, "{}: {line}", path.display());
        }
    }
}
