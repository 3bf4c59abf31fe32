//! Results in files.

use super::TaskResult;
use crate::disk::spill::SpillFile;
use std::io::{self, Read};
use std::sync::Arc;

/// A result in an unlinked file. Dropping the last clone frees its disk space.
#[derive(Clone, Debug)]
pub struct ResultFile(Arc<SpillFile>);

impl ResultFile {
    pub(crate) fn new(file: SpillFile) -> Self {
        Self(Arc::new(file))
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads some bytes from `offset` on; 0 at the end.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

/// Compares identity, not content.
impl PartialEq for ResultFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl TaskResult {
    /// Length of the value in bytes, in memory or in a file.
    #[must_use]
    pub fn value_len(&self) -> u64 {
        self.file.as_ref().map_or(self.value.len() as u64, ResultFile::len)
    }

    /// Reads the value from its beginning, in memory or from a file.
    #[must_use]
    pub fn reader(&self) -> ResultReader<'_> {
        ResultReader { result: self, at: 0 }
    }
}

/// See [`TaskResult::reader`].
#[derive(Clone, Debug)]
pub struct ResultReader<'a> {
    result: &'a TaskResult,
    at: u64,
}

impl Read for ResultReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = match &self.result.file {
            Some(file) => file.read_at(buffer, self.at)?,
            None => (&self.result.value[self.at as usize..]).read(buffer)?,
        };
        self.at += length as u64;
        Ok(length)
    }
}
