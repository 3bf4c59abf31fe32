//! One of the two builds: a file, and its runs as processes.

use crate::bench::keeper::{Failure, Keeper};
use anyhow::{Context, Result, anyhow, ensure};
use midflight_terminal::envelope::Envelope;
use midflight_terminal::usage;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The longest that a run may take.
const RUN_LIMIT: Duration = Duration::from_secs(10 * 60);

/// A build of this command.
#[derive(Debug)]
pub(super) struct Build {
    /// Its name in results and messages: this or other.
    pub word: &'static str,
    path: PathBuf,
    file: Identity,
}

/// The identity of the file, because a compiler may replace it.
#[derive(Debug, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: (i64, i64),
}

impl Build {
    /// What runs here.
    pub(super) fn this() -> Result<Self> {
        let path = std::env::current_exe().context("cannot find this program")?;
        let metadata = path.metadata().with_context(|| format!("cannot find this program at {}", path.display()))?;
        Ok(Self { word: "this", path, file: Identity::of(&metadata) })
    }

    /// What `--against` names.
    ///
    /// # Errors
    /// Of usage, where it is no file that can be executed.
    pub(super) fn other(path: &Path) -> Result<Self> {
        let wrong = |what: &dyn std::fmt::Display| {
            let advice = "name another build of midflight, such as target/release/midflight of another clone";
            usage::error(format!("--against {}: {what}; {advice}", path.display()))
        };
        let metadata = path.metadata().map_err(|error| wrong(&error))?;
        if !metadata.is_file() {
            return Err(wrong(&"it is not a file"));
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(wrong(&"it is not executable"));
        }
        // A name without a slash would be looked for in PATH.
        let path = std::path::absolute(path).map_err(|error| wrong(&error))?;
        Ok(Self { word: "other", path, file: Identity::of(&metadata) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its results, of one run.
    pub(super) fn run(&self, keeper: &Keeper, arguments: &[&str]) -> Result<Envelope> {
        let line = format!("{} {}", self.path.display(), arguments.join(" "));
        let failed = |why: String| anyhow!("{} failed: `{line}`: {why}", self.word);
        let printed = keeper.run(Command::new(&self.path).args(arguments), RUN_LIMIT, |_line| false);
        self.check()?;
        let printed = printed.map_err(|failure| failed(reason(&failure)))?;
        Envelope::parse(&printed).map_err(|error| failed(midflight_terminal::usage::one_line(&error)))
    }

    /// Whether it is still the same build: a compiler may have replaced the file.
    fn check(&self) -> Result<()> {
        let (word, path) = (self.word, self.path.display());
        let same = self.path.metadata().is_ok_and(|now| Identity::of(&now) == self.file);
        ensure!(same, "{word} was built anew or replaced meanwhile: {path}; measure a copy of it");
        Ok(())
    }
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Why it failed, on one line: how it ended, and its last line of stderr.
fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Ended { status, complaint: Some(complaint) } => format!("{status}; it said: {complaint}"),
        Failure::Ended { status, complaint: None } => format!("{status}; it said nothing"),
        Failure::Start(_, error) if error.kind() == io::ErrorKind::NotFound => {
            // The file is there, as was seen before.
            format!("{error}: what should interpret or load it is missing")
        }
        Failure::Start(_, error) => error.to_string(),
        Failure::TooLong(_) | Failure::Interrupted => failure.to_string(),
    }
}
