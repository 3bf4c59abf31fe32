//! `midflight cache`: operations on a replicated cache.

mod operations;

use clap::{Args as ClapArgs, Subcommand};
use midflight_control::cache::clients::EXAMPLE_TOML;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight up --cache                              in another terminal: a cache on this machine
  midflight cache set greeting hello
  midflight cache get greeting
  midflight cache --print-config > cache.toml       every key, explained
  midflight cache get greeting --cache cache.toml
  midflight cache get greeting --direct c3 --server a:7800,b:7800,c:7800     without an operator

docs/cache.md says what a cache promises, and how to run one.

EXIT CODES
  0 done; 1 failed: one line on stderr says why; 2 wrong usage; 3 done, and the answer is no: the
  cache has no such key";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print a configuration of a cache's clients, with comments
    #[arg(long)]
    print_config: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Print the value of a key
    Get(operations::Get),
    /// Set the value of a key at all its servers
    Set(operations::Set),
    /// Remove a key from all its servers
    Delete(operations::Delete),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Get(args)) => args.run(),
        Some(Command::Set(args)) => args.run(),
        Some(Command::Delete(args)) => args.run(),
        None if args.print_config => {
            stdout::print(EXAMPLE_TOML)?;
            Ok(ExitCode::SUCCESS)
        }
        None => Err(usage::error("say what to do: get, set or delete; or --print-config; see --help")),
    }
}
