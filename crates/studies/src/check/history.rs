//! `midflight check history`: whether what clients of a store did and saw is linearizable.

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_spec::reads::history::{History, SITUATIONS_MAX, Verdict};
use midflight_terminal::stdout;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight kv load --keys 10 --history h.jsonl
  midflight check history h.jsonl

docs/histories.md has the format, which other checkers can read too.

EXIT CODES
  0 linearizable; 1 not, or a key is too hard for the search, or the file cannot be read; 2 wrong
  usage";

/// Bytes of the largest history.
const LARGEST: u64 = 256 * midflight_files::MIB;

#[derive(ClapArgs)]
pub(super) struct Args {
    /// Lines of JSON
    file: PathBuf,
    /// Situations that the search may look at for each key; some 200 bytes each
    #[arg(long, value_name = "N", default_value_t = SITUATIONS_MAX)]
    situations: usize,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let file = args.file.display();
    let lines = midflight_files::reader(&args.file, LARGEST).with_context(|| format!("cannot read {file}"))?;
    let history = History::read(BufReader::new(lines)).with_context(|| file.to_string())?;
    match history.check(args.situations) {
        Verdict::Linearizable => {
            stdout::print(&format!("linearizable: {} operations\n", history.operations.len()))?;
            Ok(ExitCode::SUCCESS)
        }
        Verdict::Violation(violation) => {
            stdout::print(&violation.to_string())?;
            Ok(ExitCode::FAILURE)
        }
        Verdict::TooHard { key, operations, .. } => bail!(
            "key {key:?} with its {operations} operations is too hard for the search: raise --situations, or record with more \
             keys or fewer clients"
        ),
    }
}
