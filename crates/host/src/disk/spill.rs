//! Unlinked files for large data, with a limit on their total size.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    #[error("its files and those of others would exceed {0} bytes: raise the bound, or fetch results sooner")]
    Full(u64),
    #[error("cannot write a file in {}: {source}", directory.display())]
    Io { directory: PathBuf, source: io::Error },
}

#[derive(Debug)]
pub(crate) struct SpillRoom {
    directory: PathBuf,
    max_bytes: u64,
    used: AtomicU64,
}

/// A file that no other process can open. Dropping it frees its space.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    length: u64,
    room: Arc<SpillRoom>,
}

impl SpillRoom {
    /// Default directory: that of temporary files.
    pub(crate) fn new(directory: Option<&Path>, max_bytes: u64) -> Arc<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_owned);
        Arc::new(Self { directory, max_bytes, used: AtomicU64::new(0) })
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    pub(crate) fn file(self: &Arc<Self>) -> Result<SpillFile, SpillError> {
        let file = self.open().map_err(|source| self.failed(source))?;
        Ok(SpillFile { file, length: 0, room: Arc::clone(self) })
    }

    fn open(&self) -> io::Result<File> {
        loop {
            let path = self.directory.join(format!("midflight-{:016x}", rand::random::<u64>()));
            let file = midflight_files::options().read(true).write(true).create_new(true).open(&path);
            match file {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    std::fs::remove_file(&path)?;
                    return Ok(file);
                }
            }
        }
    }

    fn failed(&self, source: io::Error) -> SpillError {
        SpillError::Io { directory: self.directory.clone(), source }
    }

    fn take(&self, bytes: u64) -> Result<(), SpillError> {
        let more = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.max_bytes);
        self.used.fetch_update(Relaxed, Relaxed, more).map(|_| ()).map_err(|_| SpillError::Full(self.max_bytes))
    }
}

impl SpillFile {
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Appends bytes. After an error the content is undefined.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), SpillError> {
        self.room.take(bytes.len() as u64)?;
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|source| self.room.failed(source))
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.length, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn files_share_a_bound_and_give_their_bytes_back() {
        let room = SpillRoom::new(None, 100);
        let (mut one, mut other) = (room.file().unwrap(), room.file().unwrap());
        one.append(&[1; 60]).unwrap();
        assert!(matches!(other.append(&[2; 41]), Err(SpillError::Full(100))));
        other.append(&[2; 40]).unwrap();
        let mut read = [0; 60];
        one.read_exact_at(&mut read, 0).unwrap();
        assert_eq!((read, room.used()), ([1; 60], 100));
        drop(one);
        assert_eq!(room.used(), 40);
    }

    #[test]
    fn a_full_disk_and_a_directory_that_is_not_there_are_said() {
        let error = SpillRoom::new(Some(Path::new("/nowhere")), 100).file().unwrap_err().to_string();
        assert!(error.contains("/nowhere") && error.contains("No such file"), "{error}");
        let room = SpillRoom::new(None, 100);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut file = SpillFile { file: full, length: 0, room };
        let error = file.append(&[1]).unwrap_err().to_string();
        assert!(error.contains("No space left"), "{error}");
    }
}
