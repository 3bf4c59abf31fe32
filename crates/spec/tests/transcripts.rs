//! The stories of `transcripts/tasks/`, told to the reference model, to the C core and to the asic engine: they must give the
//! answers that the files say. `UPDATE_TRANSCRIPTS=1 cargo test -p midflight-spec --test transcripts` writes the model's
//! answers into the files, and the asic engine's beside them where it may differ; read the difference before you commit it.

use midflight_dataplane::TasksConfig;
use midflight_spec::model::Model;
use midflight_spec::transcript::{AnyEngine, Foretelling, PollingAsic, StoryError, TasksVocabulary, run, run_asic};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The stories with their paths, brought up to date first where that is asked for.
fn stories() -> &'static [(PathBuf, String)] {
    static STORIES: OnceLock<Vec<(PathBuf, String)>> = OnceLock::new();
    STORIES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts/tasks");
        let entries = std::fs::read_dir(&folder).expect("the folder exists");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        paths.sort();
        paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
    })
}

fn read(path: &Path) -> String {
    let story = std::fs::read_to_string(path).expect("readable");
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_none() {
        return story;
    }
    let told = tell(path, &story, &mut new_model, run::<TasksVocabulary>);
    let told = tell(path, &told, &mut new_asic, run_asic::<TasksVocabulary>);
    std::fs::write(path, &told).expect("writable");
    told
}

type Start<'a> = midflight_spec::transcript::Start<'a, TasksVocabulary>;

type Tell = fn(&str, &mut Start<'_>) -> Result<String, StoryError>;

fn tell(path: &Path, story: &str, start: &mut Start<'_>, run: Tell) -> String {
    run(story, start).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn new_model(config: &TasksConfig, epoch: u32, secret: u128) -> AnyEngine<TasksVocabulary> {
    Box::new(Model::new(config, epoch, secret))
}

fn new_core(config: &TasksConfig, epoch: u32, secret: u128) -> AnyEngine<TasksVocabulary> {
    Box::new(Foretelling::new(config, epoch, secret).expect("the story's bounds are legal"))
}

fn new_asic(config: &TasksConfig, epoch: u32, secret: u128) -> AnyEngine<TasksVocabulary> {
    Box::new(PollingAsic::new(config, epoch, secret).expect("a pipeline has room for the story's queue"))
}

/// Tells one story and says where the engine first departs from it.
fn departure(path: &Path, story: &str, start: &mut Start<'_>, run: Tell) -> Option<String> {
    let told = tell(path, story, start, run);
    let (mut said, mut written) = (told.lines(), story.lines());
    for number in 1.. {
        let (said, written) = (said.next(), written.next());
        if said != written {
            let at = format!("{}, line {number}", path.display());
            return Some(format!("{at}:\n  story:  {written:?}\n  engine: {said:?}\n"));
        }
        said?;
    }
    None
}

fn assert_told(start: &mut Start<'_>, run: Tell) {
    let departures: String = stories().iter().filter_map(|(path, story)| departure(path, story, start, run)).collect();
    assert!(departures.is_empty(), "{departures}");
}

/// One story a rule, at least.
#[test]
fn each_rule_has_a_story() {
    for rule in 1..=16 {
        let cited = |(path, story): &(PathBuf, String)| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("t{rule}_")))
                && story.contains(&format!("T{rule}"))
        };
        assert!(stories().iter().any(cited), "no story tells T{rule}");
    }
}

#[test]
fn model_tells_the_stories() {
    assert_told(&mut new_model, run::<TasksVocabulary>);
}

#[test]
fn core_tells_the_stories() {
    assert_told(&mut new_core, run::<TasksVocabulary>);
}

/// Polling executors before the safe program, and each difference with the rule that allows it.
#[test]
fn asic_tells_the_stories_but_where_its_contract_allows_a_difference() {
    assert_told(&mut new_asic, run_asic::<TasksVocabulary>);
    let allowed = ["T2", "T6", "T7", "T8", "T10", "T13", "T14", "IPv6", "levels"];
    for (path, story) in stories() {
        assert!(!story.contains("UNSOUND"), "{}: an engine's structures disagree", path.display());
        for line in story.lines().filter(|line| line.starts_with("  asic")) {
            let reason = line.split_once('(').map_or("", |(_, reason)| reason);
            let rule = reason.split_once(": ").map_or("", |(rule, _)| rule);
            assert!(allowed.contains(&rule), "{}: {line}: name one of {allowed:?} and say why", path.display());
        }
    }
}

/// Through `BPF_PROG_RUN`: the same text in the kernel's own machine.
#[cfg(feature = "kernel")]
#[test]
fn kernel_tells_the_stories() {
    use midflight_dataplane::kernel::KernelError;
    use midflight_spec::transcript::{KernelOnce, Spare};
    let spare = Spare::default();
    match KernelOnce::new(&spare, &TasksConfig { queue: 8, slots: 8, clients: 8, ..TasksConfig::default() }, 1, 1) {
        Err(missing @ (KernelError::Privileges | KernelError::TooOld(_))) => {
            // Past the capture of what tests print.
            let line = format!("SKIPPED: kernel_tells_the_stories: {missing}\n");
            std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("stderr takes it");
            return;
        }
        started => drop(started.expect("the kernel takes the programs")),
    }
    assert_told(
        &mut |config, epoch, secret| {
            Box::new(KernelOnce::new(&spare, config, epoch, secret).expect("the kernel takes the programs"))
        },
        run::<TasksVocabulary>,
    );
}

/// A story that nobody can follow is refused with its line and what to write instead.
#[test]
fn a_senseless_command_is_named_with_its_line() {
    let error = |story: &str| run::<TasksVocabulary>(story, &mut new_model).expect_err("senseless").to_string();
    assert_eq!(error("# no switch\ntick\n"), "line 2: there is no switch yet: begin with `switch`");
    assert_eq!(error("switch\nann submit 1: 1\n"), "line 2: \"ann\" is nobody: declare a client or an executor");
    assert_eq!(error("switch size=3\n"), "line 1: a switch has no \"size\"");
    assert_eq!(error("switch\nreturn to switch 2\n"), "line 2: there was no switch 2 yet");
    assert!(error("switch\npurge everything\n").contains("say: purge client <name>"));
    assert!(error("switch\nclient ann\nann submit 1: 1 | cookie eve\n").contains("\"eve\" is nobody"));
    assert!(error("switch\nclient ann\nann retrieve: 0 wait 1\n").contains("clients submit, cancel and probe"));
}
