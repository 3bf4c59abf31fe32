//! Lines of a trace, read one at a time within a bound, and the errors in them.

use std::fmt;
use std::io::{self, BufRead};

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It is longer than the bound.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The bound, in bytes.
        limit: usize,
    },
    /// It is not text.
    #[error("not UTF-8 text")]
    NotText,
    /// It has another number of fields than the format.
    #[error("{got} fields where the format has {wanted}")]
    Fields {
        /// The format's number.
        wanted: &'static str,
        /// The line's number.
        got: usize,
    },
    /// A field is empty.
    #[error("{field} is empty")]
    Empty {
        /// The field's name in the format.
        field: &'static str,
    },
    /// A field is not a number that it may have.
    #[error("{field} is '{text}', not {wanted}")]
    NotANumber {
        /// The field's name in the format.
        field: &'static str,
        /// Its content, shortened.
        text: String,
        /// The expected content.
        wanted: &'static str,
    },
    /// The stated number of tasks is not the number of durations.
    #[error("says {said} tasks but lists {listed} durations")]
    Count {
        /// The number stated.
        said: u64,
        /// The number listed.
        listed: u64,
    },
    /// A job has more tasks than the reader takes.
    #[error("a job of {said} tasks: at most {limit}")]
    JobTooLarge {
        /// The number stated.
        said: u64,
        /// The bound.
        limit: u64,
    },
    /// It ends before it starts.
    #[error("ends before it starts")]
    EndsBeforeStart,
}

/// A line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The error.
    pub reason: Reason,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

/// A longer line is no line of a trace: a device has no end.
const SKIPPED_MAX: u64 = 64 * midflight_files::MIB;

/// Reads lines of at most `limit` bytes; skips the rest of a longer one.
pub(super) struct Lines<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, buffer: Vec::new(), number: 0 }
    }

    /// Number of the last line read, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end, or its error; `None` at the end of the input.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Result<&str, Reason>>> {
        self.buffer.clear();
        let (mut read_any, mut too_long, mut skipped) = (false, false, 0);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            read_any = true;
            let newline = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..newline.unwrap_or(chunk.len())];
            if self.buffer.len() + part.len() > self.limit {
                too_long = true;
                skipped += part.len() as u64;
                if skipped > SKIPPED_MAX {
                    let why =
                        format!("line {} is longer than {} MiB", self.number + 1, SKIPPED_MAX / midflight_files::MIB);
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
                }
            } else {
                self.buffer.extend_from_slice(part);
            }
            let used = newline.map_or(chunk.len(), |at| at + 1);
            self.input.consume(used);
            if newline.is_some() {
                break;
            }
        }
        if !read_any {
            return Ok(None);
        }
        self.number += 1;
        if too_long {
            return Ok(Some(Err(Reason::TooLong { limit: self.limit })));
        }
        Ok(Some(std::str::from_utf8(&self.buffer).map_err(|_| Reason::NotText)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], limit: usize) -> Vec<Result<String, Reason>> {
        let mut lines = Lines::new(io::BufReader::with_capacity(3, input), limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(line.map(str::to_owned));
        }
        assert_eq!(lines.number(), found.len() as u64);
        found
    }

    #[test]
    fn a_line_beyond_the_bound_is_skipped_and_the_next_one_read() {
        let found = all(b"short\nmuch too long\nend", 5);
        assert_eq!(found, [Ok("short".into()), Err(Reason::TooLong { limit: 5 }), Ok("end".into())]);
    }

    #[test]
    fn bytes_that_are_not_text_are_said_to_be_so() {
        assert_eq!(all(b"a\n\xff\xfe\n\n", 10), [Ok("a".into()), Err(Reason::NotText), Ok(String::new())]);
    }
}
