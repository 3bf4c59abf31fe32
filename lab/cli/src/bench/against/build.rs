//! One of the two builds: a file that runs as a process.

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

const RUN_LIMIT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug)]
pub(super) struct Build {
    /// Its name in results and messages: this or other.
    pub word: &'static str,
    path: PathBuf,
    file: Identity,
}

/// A compiler may replace the file.
#[derive(Debug, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: (i64, i64),
}

impl Build {
    /// The running executable.
    pub(super) fn this() -> Result<Self> {
        let path = std::env::current_exe().context("cannot find this program")?;
        let metadata = path.metadata().with_context(|| format!("cannot find this program at {}", path.display()))?;
        Ok(Self { word: "this", path, file: Identity::of(&metadata) })
    }

    /// The executable that `--against` names.
    ///
    /// # Errors
    /// Of usage, if it is not an executable file.
    pub(super) fn other(path: &Path) -> Result<Self> {
        let wrong = |what: &dyn std::fmt::Display| {
            let advice = "name another build of midflight-lab, such as target/release/midflight-lab of another clone";
            usage::error(format!("--against {}: {what}; {advice}", path.display()))
        };
        let metadata = path.metadata().map_err(|error| wrong(&error))?;
        if !metadata.is_file() {
            return Err(wrong(&"it is not a file"));
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(wrong(&"it is not executable"));
        }
        // A name without a slash would be looked up in PATH.
        let path = std::path::absolute(path).map_err(|error| wrong(&error))?;
        Ok(Self { word: "other", path, file: Identity::of(&metadata) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn run(&self, keeper: &Keeper, arguments: &[&str]) -> Result<Envelope> {
        let line = format!("{} {}", self.path.display(), arguments.join(" "));
        let failed = |why: String| anyhow!("{} failed: `{line}`: {why}", self.word);
        let printed = keeper.run(Command::new(&self.path).args(arguments), RUN_LIMIT, |_line| false);
        self.check()?;
        let printed = printed.map_err(|failure| failed(reason(&failure)))?;
        Envelope::parse(&printed).map_err(|error| failed(midflight_terminal::usage::one_line(&error)))
    }

    /// Fails if a compiler has replaced the file.
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

/// Why a run failed, on one line: its exit status, and its last line of stderr.
fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Ended { status, complaint: Some(complaint) } => format!("{status}; it said: {complaint}"),
        Failure::Ended { status, complaint: None } => format!("{status}; it said nothing"),
        Failure::Start(_, error) if error.kind() == io::ErrorKind::NotFound => {
            // The file itself exists.
            format!("{error}: what should interpret or load it is missing")
        }
        Failure::Start(_, error) => error.to_string(),
        Failure::TooLong(_) | Failure::Interrupted => failure.to_string(),
    }
}
