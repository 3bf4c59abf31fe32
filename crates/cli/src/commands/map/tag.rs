//! `--tag`: the arguments of a command before each line of its output.

use std::io::{Result, Write};

/// Writes the tag and a tab before each line.
pub(super) struct Tagged<'a, W> {
    to: W,
    tag: Option<&'a [u8]>,
    at_start: bool,
}

impl<'a, W: Write> Tagged<'a, W> {
    pub(super) fn new(to: W, tag: Option<&'a [u8]>) -> Self {
        Self { to, tag, at_start: true }
    }
}

impl<W: Write> Write for Tagged<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(tag) = self.tag else { return self.to.write(bytes) };
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.at_start {
                self.to.write_all(tag)?;
                self.to.write_all(b"\t")?;
            }
            self.to.write_all(line)?;
            self.at_start = line.ends_with(b"\n");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_the_tag_once_however_it_is_cut() {
        let mut out = Vec::new();
        let mut tagged = Tagged::new(&mut out, Some(b"a"));
        for part in ["one\ntw", "o\n", "\nend"] {
            tagged.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "a\tone\na\ttwo\na\t\na\tend");
    }
}
