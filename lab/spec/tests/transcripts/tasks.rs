//! Runs `transcripts/tasks/` against the reference model, the C core (native and in the kernel) and the asic engine.

use crate::files::{Run, assert_same, cites, read_all, rewrite};
use midflight_dataplane::TasksConfig;
use midflight_spec::tasks::Model;
use midflight_spec::transcript::{AnyEngine, CheckedNative, PollingAsic, TasksVocabulary, run, run_asic};
use std::path::PathBuf;
use std::sync::OnceLock;

type Start<'a> = midflight_spec::transcript::Start<'a, TasksVocabulary>;

/// With their paths; rewritten first if `UPDATE_TRANSCRIPTS` is set.
fn transcripts() -> &'static [(PathBuf, String)] {
    static TRANSCRIPTS: OnceLock<Vec<(PathBuf, String)>> = OnceLock::new();
    TRANSCRIPTS.get_or_init(|| {
        read_all("tasks", |path, transcript| {
            let written = rewrite::<TasksVocabulary>(path, transcript, &mut new_model, run::<TasksVocabulary>);
            rewrite::<TasksVocabulary>(path, &written, &mut new_asic, run_asic::<TasksVocabulary>)
        })
    })
}

fn assert_all_same(start: &mut Start<'_>, run: Run<TasksVocabulary>) {
    assert_same::<TasksVocabulary>(transcripts(), start, run);
}

fn new_model(config: &TasksConfig, epoch: u32, secret: u128) -> AnyEngine<TasksVocabulary> {
    Box::new(Model::new(config, epoch, secret))
}

fn new_core(config: &TasksConfig, epoch: u32, secret: u128) -> AnyEngine<TasksVocabulary> {
    Box::new(CheckedNative::new(config, epoch, secret).expect("the transcript's bounds are legal"))
}

fn new_asic(config: &TasksConfig, epoch: u32, secret: u128) -> AnyEngine<TasksVocabulary> {
    Box::new(PollingAsic::new(config, epoch, secret).expect("a pipeline has room for the transcript's queue"))
}

#[test]
fn each_rule_has_a_transcript() {
    // Only executors keep T18.
    for rule in (1..=17).chain([19]) {
        assert!(transcripts().iter().any(|transcript| cites(transcript, "t", rule)), "no transcript is about T{rule}");
    }
}

#[test]
fn model_answers_as_written() {
    assert_all_same(&mut new_model, run::<TasksVocabulary>);
}

#[test]
fn core_answers_as_written() {
    assert_all_same(&mut new_core, run::<TasksVocabulary>);
}

/// The safe program with polling executors; each difference names the rule that allows it.
#[test]
fn asic_answers_as_written_but_where_its_contract_allows_a_difference() {
    assert_all_same(&mut new_asic, run_asic::<TasksVocabulary>);
    let allowed = ["T2", "T6", "T7", "T8", "T10", "T13", "T14", "T19", "IPv6", "levels", "arguments"];
    for (path, transcript) in transcripts() {
        assert!(!transcript.contains("UNSOUND"), "{}: an engine's structures disagree", path.display());
        for line in transcript.lines().filter(|line| line.starts_with("  asic")) {
            let reason = line.split_once('(').map_or("", |(_, reason)| reason);
            let rule = reason.split_once(": ").map_or("", |(rule, _)| rule);
            assert!(allowed.contains(&rule), "{}: {line}: name one of {allowed:?} and say why", path.display());
        }
    }
}

/// Through `BPF_PROG_RUN`.
#[cfg(feature = "kernel")]
#[test]
fn kernel_answers_as_written() {
    let largest = TasksConfig { queue: 8, slots: 8, clients: 8, ..TasksConfig::default() };
    crate::files::assert_kernel_says_the_same::<TasksVocabulary>(transcripts(), &largest);
}
