//! The `midflight` command: one file per subcommand in [`commands`]. A library, because the laboratory's command includes the same
//! subcommands.

#[macro_use(eprint, eprintln)]
extern crate midflight_terminal;

mod agent;
mod commands;
mod counts;
mod embedded;
mod ends;
mod http;
mod one_key;
mod operator_socket;
mod options;
pub mod replay;
mod replica;
pub mod shell;
mod silence;
mod watched;

/// What commands that submit tasks share.
pub mod submitting {
    pub use crate::commands::submit::argument;
    pub use crate::ends::{Ends, SIGNAL_POLL_INTERVAL, interrupt_count};
}

pub use commands::switch::{ExternalEngine, Named as NamedProgram, SwitchArgs, run_store_in, run_tasks_in};
pub use commands::{Command, run};

use clap::Parser;
use shell::CommandLine;
use std::process::ExitCode;

const ABOUT: &str = "Schedules tasks in flight: one queue in a switch, executors that pull from it";

const AFTER_HELP: &str = "\
EXAMPLES
  midflight up                                  everything on this machine; says what to type next
  midflight submit noop -n 100000               a hundred thousand empty tasks through it
  seq 9 | midflight map -- 'sleep 1; echo {}'   command lines in parallel; needs nothing else
  midflight status                              what the switch is doing

EXIT CODES
  0  done
  1  failed; one line on stderr says why and what to do
  2  wrong usage: a flag, a file, an address
  map has more: see `midflight map --help`

Logs go to stderr; --log or the environment variable RUST_LOG chooses how much:
error, warn, info, debug, trace.";

/// The command line of `midflight`.
#[derive(Parser)]
#[command(name = "midflight", version, about = ABOUT, after_help = AFTER_HELP, propagate_version = true)]
pub struct Cli {
    /// How much to log to stderr, for example "info" or "midflight_host=debug,warn"
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

impl CommandLine for Cli {
    fn log(&self) -> Option<&str> {
        self.log.as_deref()
    }

    fn default_log(&self) -> &'static str {
        self.command.default_log()
    }

    fn ends_with_its_reader(&self) -> bool {
        self.command.ends_with_its_reader()
    }

    fn run(self) -> anyhow::Result<ExitCode> {
        run(self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    /// clap breaks longer lines anywhere.
    const WIDTH: usize = 100;

    #[test]
    fn no_line_of_a_help_is_wider_than_a_terminal() {
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= WIDTH, "{} --help: {line:?}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
