//! Reads lines of a file or of stdin in bounded memory.

use super::COMMAND_LINE_MAX;
use anyhow::{Context, Result};
use midflight_terminal::usage;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;

const BUFFER: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// From 1; counts empty lines.
    pub number: u64,
    /// At most one byte longer than the longest command line.
    pub text: Vec<u8>,
    /// Bytes of the whole line.
    pub length: u64,
}

/// A longer line is a read error, because a device may never send a line end.
const LINE_MAX: u64 = 1 << 30;

/// How a file is divided into lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// The byte after each line.
    pub separator: u8,
    /// A CR before the separator belongs to it.
    pub crlf: bool,
}

/// Non-empty lines of a file.
pub(super) struct Records<R = File> {
    reader: BufReader<R>,
    ends: Ends,
    name: String,
    number: u64,
}

impl Records {
    /// "-" is stdin.
    pub(super) fn open(path: &Path, ends: Ends) -> Result<Self> {
        let (file, name) = if path == Path::new("-") {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                super::say("reading lines from the terminal; Ctrl-D ends them");
            }
            let stdin = stdin.as_fd().try_clone_to_owned().context("cannot read the standard input")?;
            (File::from(stdin), "the standard input".to_owned())
        } else {
            let file = File::open(path).map_err(|error| {
                usage::error(format!("cannot read {}: {error}; give a file of lines, or - for stdin", path.display()))
            })?;
            (file, path.display().to_string())
        };
        Ok(Self::new(file, ends, name))
    }
}

impl<R: Read> Records<R> {
    pub(super) fn new(reader: R, ends: Ends, name: String) -> Self {
        Self { reader: BufReader::with_capacity(BUFFER, reader), ends, name, number: 0 }
    }

    /// Whether the next line is buffered.
    pub(super) fn is_ready(&self) -> bool {
        self.reader.buffer().contains(&self.ends.separator)
    }

    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        loop {
            let Some(mut record) = self.any().with_context(|| format!("cannot read {}", self.name))? else {
                return Ok(None);
            };
            if record.number == 1 && !self.ends.crlf && self.ends.separator == b'\n' && record.text.ends_with(b"\r") {
                super::say(&format!(
                    "line 1 of {} ends with a CR, which belongs to it: --crlf leaves it out",
                    self.name
                ));
            }
            let is_whole = record.length == record.text.len() as u64;
            if self.ends.crlf && is_whole && record.text.last() == Some(&b'\r') {
                record.text.pop();
                record.length -= 1;
            }
            if record.length > 0 {
                return Ok(Some(record));
            }
        }
    }

    fn any(&mut self) -> std::io::Result<Option<Record>> {
        let mut record = Record { number: self.number + 1, text: Vec::new(), length: 0 };
        let mut ended = false;
        let mut any = false;
        while !ended {
            let buffer = match self.reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|&byte| byte == self.ends.separator);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = (COMMAND_LINE_MAX + 1).saturating_sub(record.text.len());
            record.text.extend_from_slice(&part[..part.len().min(room)]);
            record.length += part.len() as u64;
            if record.length > LINE_MAX {
                return Err(std::io::Error::new(ErrorKind::FileTooLarge, "a line of more than 1 GiB"));
            }
            ended = end.is_some();
            let used = part.len() + usize::from(ended);
            self.reader.consume(used);
        }
        if !any {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: Ends = Ends { separator: b'\n', crlf: false };

    fn records(input: &[u8], ends: Ends) -> Vec<(u64, Vec<u8>, u64)> {
        let mut records = Records::new(input, ends, "a test".into());
        let next = || records.next().unwrap().map(|record| (record.number, record.text, record.length));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn lines_keep_their_numbers_and_empty_ones_are_left_out() {
        assert_eq!(
            records(b"a\n\nb c\r\nd", LINES),
            [(1, b"a".to_vec(), 1), (3, b"b c\r".to_vec(), 4), (4, b"d".to_vec(), 1)]
        );
        let nul = Ends { separator: 0, ..LINES };
        assert_eq!(records(b"a\nb\0\0c\r\0", nul), [(1, b"a\nb".to_vec(), 3), (3, b"c\r".to_vec(), 2)]);
        assert_eq!(records(b"", LINES), []);
    }

    #[test]
    fn only_with_crlf_a_cr_belongs_to_the_end_of_its_line() {
        let crlf = Ends { crlf: true, ..LINES };
        assert_eq!(
            records(b"a\r\r\n\r\nb\rc\nd\r", crlf),
            [(1, b"a\r".to_vec(), 2), (3, b"b\rc".to_vec(), 3), (4, b"d".to_vec(), 1)]
        );
        let long = [&vec![b'\r'; COMMAND_LINE_MAX + 2][..], b"\n"].concat();
        assert_eq!(records(&long, crlf)[0].2, COMMAND_LINE_MAX as u64 + 2, "a line that is cut stays too long");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_says_its_length() {
        let mut input = vec![b'x'; 1_000_000];
        input.extend_from_slice(b"\nnext\n");
        let records = records(&input, LINES);
        assert_eq!((records[0].1.len(), records[0].2), (COMMAND_LINE_MAX + 1, 1_000_000));
        assert_eq!(records[1], (2, b"next".to_vec(), 4));
    }
}
