//! A script that measures another system, as a process: with a log, and a directory for its temporary files.

use super::keeper::{Failure, Keeper};
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Lines of stderr that begin so, as those of the scripts in bench/peers and bench/python, are for the user; the others are for the log.
const PROGRESS: [&str; 2] = ["peers: ", "python: "];

/// Runs a command to its end and returns what it wrote to stdout.
///
/// # Errors
/// Where it cannot be started, takes longer than `limit` or fails: with its complaint, on one line.
pub(super) fn run(keeper: &Keeper, command: &mut Command, log: &Path, limit: Duration) -> Result<String> {
    let mut file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    // It goes with all that is in it. Its name is short, because Ray puts sockets there, whose names may have no more than 107 bytes.
    let scratch = midflight_terminal::files::temporary("mf-bench-")?;
    let said = keeper.run(command.env("TMPDIR", scratch.path()), limit, move |line| {
        // A log that cannot be written is no reason to stop.
        let _ = writeln!(file, "{line}");
        let progress = PROGRESS.iter().find_map(|prefix| line.strip_prefix(prefix));
        progress.inspect(|progress| eprintln!("{progress}")).is_some()
    });
    said.map_err(|failure| match failure {
        Failure::Ended { .. } | Failure::TooLong(_) => anyhow!("{failure}; its log is {}", log.display()),
        Failure::Start(..) | Failure::Interrupted => failure.into(),
    })
}
