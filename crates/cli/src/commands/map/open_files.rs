//! Divides the limit of open files: a quarter for waiting outputs, a quarter for outputs in flight from executors, half for commands in
//! this process and all else.

use anyhow::{Result, ensure};
use midflight_terminal::machine::cores;
use midflight_terminal::usage;
use rustix::process::{Resource, getrlimit};

/// A command in this process has two pipes, two output files, a process handle, and connections for its argument and result.
const OF_COMMAND: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFiles(usize);

impl OpenFiles {
    pub(super) fn limit() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Limit for waiting outputs, and also for outputs in flight.
    pub(super) fn file_share(self) -> usize {
        (self.0 / 4).max(1)
    }

    /// `asked`, or one per core as far as the limit allows.
    ///
    /// # Errors
    /// If the limit is too low for `asked`.
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
        assert_eq!(OpenFiles(1024).file_share(), 256);
    }
}
