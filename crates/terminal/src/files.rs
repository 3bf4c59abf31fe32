//! Output files of a command.

use crate::usage;
use anyhow::{Context, Result};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Fails before the work, not after it, if the file cannot be written.
pub fn check_output(flag: &str, path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if directory.is_some_and(|directory| !directory.is_dir()) || path.is_dir() {
        return Err(usage::error(format!("{flag} {}: name a file in a directory that exists", path.display())));
    }
    Ok(())
}

/// Creates a temporary directory for this user only; dropping the result removes it.
pub fn temporary(prefix: &str) -> Result<TempDir> {
    let directory = tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir();
    directory.with_context(|| format!("cannot make a directory in {}", std::env::temp_dir().display()))
}

/// Writes a whole file that is made to be shared, so with the umask's mode.
pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
