//! Reads, rewrites and compares transcript files.

#[cfg(feature = "kernel")]
use midflight_dataplane::program::{Program, SoftProgram};
#[cfg(feature = "kernel")]
use midflight_spec::transcript::{AnyEngine, KernelOnce, Spare, run};
use midflight_spec::transcript::{Start, TranscriptError, Vocabulary};
use std::path::{Path, PathBuf};

pub(crate) type Run<V> = fn(&str, &mut Start<'_, V>) -> Result<String, TranscriptError>;

/// A program's transcripts with their paths, first replaced by `update` if `UPDATE_TRANSCRIPTS` is set.
pub(crate) fn read_all(program: &str, update: impl Fn(&Path, &str) -> String) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts").join(program);
    let entries = std::fs::read_dir(&folder).expect("the folder exists");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let read = |path: PathBuf| {
        let mut transcript = std::fs::read_to_string(&path).expect("readable");
        if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
            transcript = update(&path, &transcript);
            std::fs::write(&path, &transcript).expect("writable");
        }
        (path, transcript)
    };
    paths.into_iter().map(read).collect()
}

pub(crate) fn rewrite<V: Vocabulary>(path: &Path, transcript: &str, start: &mut Start<'_, V>, run: Run<V>) -> String {
    run(transcript, start).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first line where the engine's answer differs, in words.
fn difference<V: Vocabulary>(path: &Path, transcript: &str, start: &mut Start<'_, V>, run: Run<V>) -> Option<String> {
    let answered = rewrite::<V>(path, transcript, start, run);
    let (mut said, mut written) = (answered.lines(), transcript.lines());
    for number in 1.. {
        let (said, written) = (said.next(), written.next());
        if said != written {
            let at = format!("{}, line {number}", path.display());
            return Some(format!("{at}:\n  transcript:  {written:?}\n  engine: {said:?}\n"));
        }
        said?;
    }
    None
}

pub(crate) fn assert_same<V: Vocabulary>(transcripts: &[(PathBuf, String)], start: &mut Start<'_, V>, run: Run<V>) {
    let differences: String =
        transcripts.iter().filter_map(|(path, transcript)| difference::<V>(path, transcript, start, run)).collect();
    assert!(differences.is_empty(), "{differences}");
}

/// Whether a transcript is about this rule, by file name and text.
pub(crate) fn cites((path, transcript): &(PathBuf, String), letter: &str, rule: u32) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{letter}{rule}_")))
        && transcript.contains(&format!("{}{rule}", letter.to_uppercase()))
}

/// Compares the program in the kernel, called through `BPF_PROG_RUN`. `largest`: a configuration with at least the
/// memory of any transcript's.
#[cfg(feature = "kernel")]
pub(crate) fn assert_kernel_says_the_same<V: Vocabulary>(
    transcripts: &[(PathBuf, String)],
    largest: &<V::Program as Program>::Config,
) where
    V::Program: SoftProgram,
{
    let spare = Spare::default();
    let mut start = |config: &<V::Program as Program>::Config, epoch, secret| -> AnyEngine<V> {
        Box::new(KernelOnce::new(&spare, config, epoch, secret).expect("the kernel takes the programs"))
    };
    match KernelOnce::new(&spare, largest, 1, 1) {
        Err(missing) if missing.is_unavailable() => {
            // Written directly, because the test harness captures `eprintln!`.
            let line = format!("SKIPPED: {} in the kernel: {missing}\n", V::Program::NAME);
            std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("stderr takes it");
        }
        started => {
            drop(started.expect("the kernel takes the programs"));
            assert_same::<V>(transcripts, &mut start, run::<V>);
        }
    }
}
