//! The directory of one submitter.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of the path of the directory: that of a socket in it has at most 107.
const PATH_MAX: usize = 100;

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// No variable says where it is.
    #[error("no place for the jobs' store: set MIDFLIGHT_STATE to a directory, or HOME")]
    NoPlace,
    /// The kernel refused it.
    #[error("cannot use the state directory {path}: {source}; set MIDFLIGHT_STATE to another one")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
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
    /// The kernel takes no socket of a longer path.
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

/// Held by the submitter for as long as it lives.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl StateDirectory {
    /// The directory that the environment names; made if it is not there.
    ///
    /// # Errors
    /// Where there is none, or it is not private.
    pub fn of_environment() -> Result<Self, DirectoryError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = variable("MIDFLIGHT_STATE")
            .or_else(|| variable("XDG_STATE_HOME").map(|state| state.join("midflight")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/state/midflight")));
        Self::at(&path.ok_or(DirectoryError::NoPlace)?)
    }

    /// This directory; made if it is not there.
    ///
    /// # Errors
    /// Where it is not private.
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

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join("jobs.redb")
    }

    /// The submitter's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// What a submitter in the background says.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path.join("submitter.log")
    }

    /// Becomes the one submitter of this directory.
    ///
    /// # Errors
    /// Where there is one.
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
