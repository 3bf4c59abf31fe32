//! Outputs that exceed the memory bound, in a temporary file without a name.

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Created on first use.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<File>>,
    end: u64,
    live: usize,
}

#[derive(Debug)]
pub(super) struct Part {
    file: Arc<File>,
    offset: u64,
    pub length: u64,
}

impl Part {
    /// Fills the buffer from offset `at` of the part.
    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, self.offset + at)
    }
}

impl Spill {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), state: Mutex::default() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps nothing after an error.
    pub(super) fn store(&self, slices: [&[u8]; 4]) -> Result<Part> {
        let length = slices.iter().map(|slice| slice.len() as u64).sum();
        let part = self.place(length)?;
        let mut at = part.offset;
        for slice in slices {
            if let Err(error) = part.file.write_all_at(slice, at) {
                self.release(&part);
                return Err(error);
            }
            at += slice.len() as u64;
        }
        Ok(part)
    }

    /// Reserves space at the end of the file, or at its start if no part is live.
    fn place(&self, length: u64) -> Result<Part> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &state.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(tempfile::tempfile_in(&self.directory)?);
                state.file = Some(Arc::clone(&file));
                file
            }
        };
        if state.live == 0 {
            state.end = 0;
        }
        let part = Part { file, offset: state.end, length };
        state.end += length;
        state.live += 1;
        Ok(part)
    }

    pub(super) fn release(&self, part: &Part) {
        use rustix::fs::{FallocateFlags, fallocate};
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.live -= 1;
        // If the file system cannot punch holes, the file shrinks when no part is live.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = if state.live == 0 {
            part.file.set_len(0)
        } else {
            fallocate(&part.file, hole, part.offset, part.length.max(1)).map_err(Into::into)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn blocks(spill: &Spill) -> u64 {
        spill.state.lock().unwrap().file.as_ref().unwrap().metadata().unwrap().blocks()
    }

    #[test]
    fn parts_are_read_as_they_were_and_their_space_is_given_back() {
        let spill = Spill::new(&std::env::temp_dir());
        let large = vec![7; 1 << 20];
        let parts: Vec<_> = (0..4).map(|_| spill.store([b"a", b"b", &large, b"c"]).unwrap()).collect();
        let mut end = [0; 2];
        parts[2].read(parts[2].length - 2, &mut end).unwrap();
        assert_eq!(end, [7, b'c']);
        let full = blocks(&spill);
        spill.release(&parts[1]);
        assert!(blocks(&spill) < full, "a hole where the part was");
        for part in [&parts[0], &parts[2], &parts[3]] {
            spill.release(part);
        }
        assert_eq!(blocks(&spill), 0);
        assert_eq!(spill.store([b"x", b"", b"", b""]).unwrap().offset, 0, "the file begins anew");
    }

    #[test]
    fn a_directory_that_does_not_exist_is_an_error() {
        assert!(Spill::new(Path::new("/nonexistent")).store([b"a", b"", b"", b""]).is_err());
    }
}
