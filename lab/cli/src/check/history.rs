//! `midflight-lab check history`: is the history of a store's clients linearizable?

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_spec::store::history::{BYTES_MAX, History, Verdict};
use midflight_terminal::{stdout, usage};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab load store --keys 10 --history h.jsonl
  midflight-lab check history h.jsonl

docs/histories.md has the format, which other checkers can read too.

EXIT CODES
  0 linearizable; 1 not, or the file cannot be read; 2 wrong usage; 4 undecided: a key is too hard
  for --memory or --seconds";

const MEMORY_MAX: usize = 1 << 20;

/// Bytes of the largest history.
const LARGEST: u64 = 256 * midflight_files::MIB;

#[derive(ClapArgs)]
pub(super) struct Args {
    /// Lines of JSON
    file: PathBuf,
    /// MiB that the search may take for each key, beside the history itself
    #[arg(long, value_name = "MIB", default_value_t = BYTES_MAX >> 20, value_parser = memory)]
    memory: usize,
    /// Seconds that the search may take for all keys
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let file = args.file.display();
    let lines = midflight_files::reader(&args.file, LARGEST).with_context(|| format!("cannot read {file}"))?;
    let history = History::read(BufReader::new(lines)).with_context(|| file.to_string())?;
    let (began, seconds) = (Instant::now(), Duration::from_secs(args.seconds));
    match history.check(args.memory << 20, &|| began.elapsed() >= seconds) {
        Verdict::Linearizable => {
            stdout::print(&format!("linearizable: {} operations\n", history.operations.len()))?;
            Ok(ExitCode::SUCCESS)
        }
        Verdict::Violation(violation) => {
            stdout::print(&violation.to_string())?;
            Ok(ExitCode::FAILURE)
        }
        Verdict::TooHard { key, operations, .. } => {
            eprintln!(
                "undecided: key {key:?} with its {operations} operations is too hard for the search: raise --memory or --seconds, or \
                 record with more keys or fewer clients"
            );
            Ok(ExitCode::from(usage::UNDECIDED))
        }
    }
}

fn memory(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|mib| (1..=MEMORY_MAX).contains(mib))
        .ok_or(format!("write a number from 1 to {MEMORY_MAX}"))
}
