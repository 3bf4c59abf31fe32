//! Outputs of a command: in memory, or in a file if they are large.

use midflight_host::{ResultFile, TaskResult};
use midflight_tasks::functions::ExecResult;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::ops::Range;

#[derive(Debug)]
pub(super) enum Captured {
    Memory { stdout: Vec<u8>, stderr: Vec<u8> },
    File { file: ResultFile, stdout: Range<u64>, stderr: Range<u64> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Default for Captured {
    fn default() -> Self {
        Self::Memory { stdout: Vec::new(), stderr: Vec::new() }
    }
}

impl Captured {
    /// `None` if the bytes are malformed.
    pub(super) fn of(result: TaskResult) -> Option<(ExecResult, Self)> {
        let Some(file) = result.file else {
            let mut result = ExecResult::decode(&result.value)?;
            let (stdout, stderr) = (std::mem::take(&mut result.stdout), std::mem::take(&mut result.stderr));
            return Some((result, Self::Memory { stdout, stderr }));
        };
        let mut head = Vec::new();
        let reader = Reader { file: &file, at: 0, end: file.len() };
        reader.take(ExecResult::HEAD_MAX as u64).read_to_end(&mut head).ok()?;
        let (result, stdout) = ExecResult::decode_head(&head)?;
        let stdout = stdout.start as u64..stdout.end as u64;
        let stderr = stdout.end..file.len();
        (stdout.end <= file.len()).then_some((result, Self::File { file, stdout, stderr }))
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Memory { stdout, stderr } => stdout.len() as u64 + stderr.len() as u64,
            Self::File { stdout, stderr, .. } => stderr.end - stdout.start,
        }
    }

    pub(super) fn in_memory(&self) -> usize {
        match self {
            Self::Memory { stdout, stderr } => stdout.len() + stderr.len(),
            Self::File { .. } => 0,
        }
    }

    pub(super) fn copy(&self, stream: Stream, to: &mut impl Write) -> Result<()> {
        let (file, range) = match (self, stream) {
            (Self::Memory { stdout, .. }, Stream::Stdout) => return to.write_all(stdout),
            (Self::Memory { stderr, .. }, Stream::Stderr) => return to.write_all(stderr),
            (Self::File { file, stdout, .. }, Stream::Stdout) => (file, stdout),
            (Self::File { file, stderr, .. }, Stream::Stderr) => (file, stderr),
        };
        let copied = std::io::copy(&mut Reader { file, at: range.start, end: range.end }, to)?;
        if copied == range.end - range.start { Ok(()) } else { Err(Error::from(ErrorKind::UnexpectedEof)) }
    }
}

/// A range of a file.
struct Reader<'a> {
    file: &'a ResultFile,
    at: u64,
    end: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
