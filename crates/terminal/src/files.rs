//! Files that a command writes.

use crate::usage;
use anyhow::{Context, Result};
use std::path::Path;

/// A file that cannot be written is known before the work, not after it.
pub fn check_output(flag: &str, path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if directory.is_some_and(|directory| !directory.is_dir()) || path.is_dir() {
        return Err(usage::error(format!("{flag} {}: name a file in a directory that exists", path.display())));
    }
    Ok(())
}

/// Writes the whole file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
