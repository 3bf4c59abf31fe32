//! The process around any command: usage errors on one line, logging, exit code.

use crate::commands::map::FROM_PARALLEL;
use crate::commands::map::parallel::instead_of;
use anyhow::Result;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use midflight_terminal::signals;
use midflight_terminal::usage::{self, FAILURE, INTERRUPTED, Interrupted, USAGE, UsageError, one_line};
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A command line with its settings.
pub trait CommandLine: Parser {
    /// The value of `--log`.
    fn log(&self) -> Option<&str>;
    /// The log filter without `--log`.
    fn default_log(&self) -> &'static str;
    /// Whether a closed pipe (`| head`) ends the process at once.
    fn ends_with_its_reader(&self) -> bool;
    /// Runs the command and returns the exit code.
    ///
    /// # Errors
    /// For wrong usage, or with the reason of the failure.
    fn run(self) -> Result<ExitCode>;
}

/// Parses the process's command line and runs it.
#[must_use]
pub fn main<C: CommandLine>() -> ExitCode {
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprintln!("{}", of_parallel(&error).unwrap_or_else(|| in_one_line(&error.to_string())));
            return ExitCode::from(USAGE);
        }
        Err(help) => return print_help(&help),
    };
    if cli.ends_with_its_reader() {
        signals::end_with_the_reader();
    }
    let result = start_log(cli.log(), cli.default_log()).and_then(|()| cli.run());
    result.unwrap_or_else(|error| end(&error))
}

fn print_help(help: &clap::Error) -> ExitCode {
    match help.print() {
        // Unrequested help goes to stderr, with an exit code for wrong usage.
        Err(error) if !help.use_stderr() && error.kind() != std::io::ErrorKind::BrokenPipe => {
            end(&anyhow::Error::new(error).context("cannot write the output"))
        }
        _ => ExitCode::from(u8::try_from(help.exit_code()).unwrap_or(FAILURE)),
    }
}

/// Returns the exit code.
fn end(error: &anyhow::Error) -> ExitCode {
    if error.is::<Interrupted>() {
        eprintln!("{error}");
        return ExitCode::from(INTERRUPTED);
    }
    eprintln!("error: {}", one_line(error));
    ExitCode::from(if error.is::<UsageError>() { USAGE } else { FAILURE })
}

/// clap would suggest an option with a similar name.
fn of_parallel(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_of_map = error.kind() == ErrorKind::UnknownArgument
        && error.to_string().lines().any(|line| line.starts_with("Usage: midflight") && line.contains(" map "));
    let instead = is_of_map.then(|| instead_of(option)).flatten()?;
    Some(format!("error: map has no {option}: {instead} ({FROM_PARALLEL})"))
}

/// Drops the last paragraphs: the usage and a pointer to the help.
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
    // The subscriber would report a write error to stderr, and panic there.
    let log = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter);
    log.with_writer(std::io::stderr).with_ansi(ansi).init();
    Ok(())
}
