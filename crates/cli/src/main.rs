//! The `midflight` command: one file per subcommand in [`commands`].

#[macro_use(eprint, eprintln)]
extern crate midflight_terminal;

mod agent;
mod commands;
mod counts;
mod embedded;
mod http;
mod operator_socket;
mod options;
mod replica;
mod watched;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use commands::map::FROM_PARALLEL;
use commands::map::parallel::instead_of;
use midflight_lab::LabError;
use midflight_terminal::signals;
use midflight_terminal::usage::{self, FAILURE, INTERRUPTED, Interrupted, USAGE, UsageError, one_line};
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

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

#[derive(Parser)]
#[command(name = "midflight", version, about = ABOUT, after_help = AFTER_HELP, propagate_version = true)]
struct Cli {
    /// How much to log to stderr, for example "info" or "midflight_host=debug,warn"
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprintln!("{}", of_parallel(&error).unwrap_or_else(|| in_one_line(&error.to_string())));
            return ExitCode::from(USAGE);
        }
        Err(help) => return print_help(&help),
    };
    if cli.command.ends_with_its_reader() {
        signals::end_with_the_reader();
    }
    let result = start_log(cli.log.as_deref(), cli.command.default_log()).and_then(|()| commands::run(cli.command));
    result.unwrap_or_else(|error| end(&error))
}

/// Prints what is no error to clap: a help or the version.
fn print_help(help: &clap::Error) -> ExitCode {
    match help.print() {
        // A help that was not asked for is on stderr, and its exit code says more.
        Err(error) if !help.use_stderr() && error.kind() != std::io::ErrorKind::BrokenPipe => {
            end(&anyhow::Error::new(error).context("cannot write the output"))
        }
        _ => ExitCode::from(u8::try_from(help.exit_code()).unwrap_or(FAILURE)),
    }
}

/// Prints why a command failed, and returns its exit code.
fn end(error: &anyhow::Error) -> ExitCode {
    let is_interrupted = error.is::<Interrupted>() || matches!(error.downcast_ref(), Some(LabError::Interrupted(_)));
    if is_interrupted {
        eprintln!("{error}");
        return ExitCode::from(INTERRUPTED);
    }
    eprintln!("error: {}", one_line(error));
    ExitCode::from(if error.is::<UsageError>() { USAGE } else { FAILURE })
}

/// Options of GNU parallel that `map` does not have: clap would propose one with a similar name.
fn of_parallel(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_of_map = error.kind() == ErrorKind::UnknownArgument && error.to_string().contains("Usage: midflight map ");
    let instead = is_of_map.then(|| instead_of(option)).flatten()?;
    Some(format!("error: map has no {option}: {instead} ({FROM_PARALLEL})"))
}

/// clap's errors span paragraphs, the last of which are the usage and a pointer to the help.
fn in_one_line(error: &str) -> String {
    let rest = |paragraph: &&str| !paragraph.starts_with("Usage:") && !paragraph.starts_with("For more information");
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<_> = error.split("\n\n").take_while(rest).map(words).collect();
    format!("{}; see --help", paragraphs.join("; "))
}

fn start_log(filter: Option<&str>, default: &str) -> anyhow::Result<()> {
    let text = filter.map(str::to_owned).or_else(|| std::env::var("RUST_LOG").ok());
    let text = text.unwrap_or_else(|| default.into());
    let filter = EnvFilter::try_new(&text).map_err(|error| {
        usage::error(format!("--log {text}: {error}; use error, warn, info, debug, trace or target=level lists"))
    })?;
    let ansi = std::io::stderr().is_terminal();
    // A log that cannot be written is no reason to end: the subscriber would report it to stderr, and panic there.
    let log = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter);
    log.with_writer(std::io::stderr).with_ansi(ansi).init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    /// clap breaks longer lines at any place.
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
