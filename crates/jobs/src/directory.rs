//! The state directory of one submitter.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of the directory's path: the path of a socket in it may have 107.
const PATH_MAX: usize = 100;

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// No environment variable names it.
    #[error("no place for the jobs' store: set MIDFLIGHT_STATE to a directory, or HOME")]
    NoPlace,
    /// The kernel refused it.
    #[error("cannot use the state directory {path}: {source}; set MIDFLIGHT_STATE to another one")]
    Io {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Others may write there.
    #[error(
        "the state directory {path} belongs to another user, or others may enter it: chmod 700 it, or set MIDFLIGHT_STATE to another one"
    )]
    NotPrivate {
        /// The directory.
        path: PathBuf,
    },
    /// The path is too long for a Unix socket.
    #[error(
        "the path of the state directory {path} is too long for a socket: set MIDFLIGHT_STATE to one of at most {PATH_MAX} bytes"
    )]
    TooLong {
        /// The directory.
        path: PathBuf,
    },
    /// Another submitter uses it.
    #[error("a submitter runs already in {path}: use it, or set MIDFLIGHT_STATE to another directory")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
}

/// A state directory: private, of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDirectory {
    path: PathBuf,
}

/// The submitter's lock, for its lifetime.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl StateDirectory {
    /// The directory that the environment names; creates it if it is missing.
    ///
    /// # Errors
    /// If no variable names one, or it is not private.
    pub fn of_environment() -> Result<Self, DirectoryError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = variable("MIDFLIGHT_STATE")
            .or_else(|| variable("XDG_STATE_HOME").map(|state| state.join("midflight")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/state/midflight")));
        Self::at(&path.ok_or(DirectoryError::NoPlace)?)
    }

    /// This directory; creates it if it is missing.
    ///
    /// # Errors
    /// If it is not private.
    pub fn at(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Io { path: path.to_owned(), source };
        midflight_files::create_directory(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let about = std::fs::metadata(&path).map_err(failed)?;
        if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o077 != 0 {
            return Err(DirectoryError::NotPrivate { path });
        }
        if path.as_os_str().len() > PATH_MAX {
            return Err(DirectoryError::TooLong { path });
        }
        Ok(Self { path })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join("jobs.redb")
    }

    /// Path of the submitter's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// Path of the log of a submitter in the background.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path.join("submitter.log")
    }

    /// Locks the directory, as its only submitter.
    ///
    /// # Errors
    /// If another one has the lock.
    pub fn lock(&self) -> Result<Lock, DirectoryError> {
        let failed = |source| DirectoryError::Io { path: self.path.clone(), source };
        let file = midflight_files::options().create(true).truncate(false).write(true).open(self.path.join("lock"));
        let file = file.map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(DirectoryError::Locked { path: self.path.clone() }),
            Err(error) => Err(failed(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_has_one_submitter_and_is_private() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = StateDirectory::at(&temporary.path().join("a/b")).unwrap();
        assert_eq!(std::fs::metadata(directory.path()).unwrap().mode() & 0o777, 0o700);
        let lock = directory.lock().unwrap();
        assert!(matches!(directory.lock(), Err(DirectoryError::Locked { .. })));
        drop(lock);
        directory.lock().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let refused = StateDirectory::at(directory.path()).unwrap_err();
        assert!(matches!(refused, DirectoryError::NotPrivate { .. }), "{refused}");
        let refused = StateDirectory::at(&temporary.path().join("a".repeat(100))).unwrap_err();
        assert!(matches!(refused, DirectoryError::TooLong { .. }), "{refused}");
    }
}
