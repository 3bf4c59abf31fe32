//! Disk space reserved for deletes and the writes of elections when the disk is full.

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Released at a time; other processes may take it.
const STEP: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Reserve {
    directory: PathBuf,
    /// `None` if it cannot be created.
    file: Option<File>,
    /// Target length.
    whole: u64,
}

impl Reserve {
    pub(super) fn new(directory: &Path, whole: u64) -> Self {
        let path = directory.join("reserve");
        let open = || OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = (whole > 0).then(open).and_then(|opened| {
            opened
                .inspect_err(|why| tracing::warn!("{}: {why}: nothing is in reserve for a full disk", path.display()))
                .ok()
        });
        Self { directory: directory.to_owned(), file, whole }
    }

    fn length(&self) -> u64 {
        self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len())
    }

    pub(super) fn give_up(&mut self) -> bool {
        let length = self.length();
        let Some(file) = self.file.as_ref().filter(|_| length > 0) else { return false };
        file.set_len(length.saturating_sub(STEP)).is_ok()
    }

    /// Restores the reserve if as much again stays free; otherwise the next write would fill the disk. Returns whether it is complete.
    pub(super) fn refill(&mut self) -> bool {
        let missing = self.whole.saturating_sub(self.length());
        if missing == 0 && self.whole > 0 {
            return true;
        }
        let free = statvfs(&self.directory).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let again = if self.whole > 0 { self.whole } else { STEP };
        if free < missing.saturating_add(again) {
            return false;
        }
        let Some(file) = &self.file else { return true };
        match fallocate(file, FallocateFlags::empty(), 0, self.whole) {
            // The file system has no `fallocate`: go on without a reserve.
            Ok(()) | Err(Errno::OPNOTSUPP) => true,
            Err(_) => false,
        }
    }
}
