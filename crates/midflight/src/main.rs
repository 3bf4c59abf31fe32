//! The `midflight` command: one file per subcommand in [`commands`].

mod attack;
mod cells;
mod columns;
mod commands;
mod embedded;
mod engines;
mod envelope;
mod lab_guard;
mod memory;
mod processes;
mod progress;
mod replay;
mod report;
mod signals;
mod soak;
mod stdout;
mod usage;

use clap::Parser;
use clap::error::ErrorKind;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Exit code of a command that could not do what it was asked to.
const FAILURE: u8 = 1;
/// Exit code of a command that was asked for something that does not make sense; also clap's.
const USAGE: u8 = 2;

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
            eprintln!("{}", in_one_line(&error.to_string()));
            return ExitCode::from(USAGE);
        }
        Err(help) => help.exit(),
    };
    if cli.command.ends_with_its_reader() {
        signals::end_with_the_reader();
    }
    let result = start_log(cli.log.as_deref(), cli.command.default_log()).and_then(|()| commands::run(cli.command));
    result.unwrap_or_else(|error| {
        let code = if error.is::<usage::UsageError>() { USAGE } else { FAILURE };
        eprintln!("error: {}", one_line(&error));
        ExitCode::from(code)
    })
}

/// An error and its causes, less those that it has quoted, on one line.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line += &format!(": {cause}");
        }
    }
    line.replace('\n', " ")
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
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    /// What is longer is broken by clap wherever it ends.
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
