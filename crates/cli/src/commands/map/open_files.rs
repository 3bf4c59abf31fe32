//! How many files this process may have open, and what for: a quarter of them for outputs that wait, a quarter for those that are on
//! their way from executors, and half for the commands that run in this process, and all else.

use anyhow::{Result, ensure};
use midflight_terminal::machine::cores;
use midflight_terminal::usage;
use rustix::process::{Resource, getrlimit};

/// Open files of a command that runs in this process: two pipes, the files of two outputs, a handle of the process, and connections
/// that fetch its argument and return its result.
const OF_COMMAND: usize = 8;

/// The limit of open files.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFiles(usize);

impl OpenFiles {
    /// Of this process.
    pub(super) fn limit() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Outputs that wait; also: those that are on their way.
    pub(super) fn quarter(self) -> usize {
        (self.0 / 4).max(1)
    }

    /// Commands that run in this process at a time: those that were asked for, else one for each core, as far as files suffice.
    ///
    /// # Errors
    /// If more were asked for than the limit serves.
    pub(super) fn jobs(self, asked: Option<u32>) -> Result<u32> {
        let files = self.0;
        let most = u32::try_from(files / 2 / OF_COMMAND).unwrap_or(u32::MAX).max(1);
        let jobs = asked.unwrap_or_else(|| cores().min(most));
        ensure!(
            jobs <= most,
            usage::error(format!(
                "{jobs} commands at one time need more open files than this process may have, {files}: give --jobs {most}, or raise `ulimit -n`"
            ))
        );
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_commands_than_the_limit_serves_are_refused() {
        assert_eq!(OpenFiles(1024).jobs(Some(64)).unwrap(), 64);
        let error = OpenFiles(1024).jobs(Some(65)).unwrap_err();
        assert!(error.is::<usage::UsageError>() && error.to_string().contains("give --jobs 64, or raise"), "{error}");
        assert_eq!((OpenFiles(0).jobs(None).unwrap(), OpenFiles(usize::MAX).jobs(Some(4096)).unwrap()), (1, 4096));
        assert_eq!(OpenFiles(1024).quarter(), 256);
    }
}
