//! Runs a script that measures another system.

use super::keeper::{Failure, Keeper};
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Stderr lines for the user, from scripts in bench/peers and bench/python; all others go to the log.
const PROGRESS: [&str; 2] = ["peers: ", "python: "];

/// Returns stdout.
///
/// # Errors
/// If it cannot start, exceeds `limit` or fails: with its error message, on one line.
pub(super) fn run(keeper: &Keeper, command: &mut Command, log: &Path, limit: Duration) -> Result<String> {
    let mut file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    // Removed with its content on drop. Its name is short, because Ray puts sockets there, whose paths may have at most 107 bytes.
    let scratch = midflight_terminal::files::temporary("mf-bench-")?;
    let said = keeper.run(command.env("TMPDIR", scratch.path()), limit, move |line| {
        // Ignore a log that cannot be written.
        let _ = writeln!(file, "{line}");
        let progress = PROGRESS.iter().find_map(|prefix| line.strip_prefix(prefix));
        progress.inspect(|progress| eprintln!("{progress}")).is_some()
    });
    said.map_err(|failure| match failure {
        Failure::Ended { .. } | Failure::TooLong(_) => anyhow!("{failure}; its log is {}", log.display()),
        Failure::Start(..) | Failure::Interrupted => failure.into(),
    })
}
