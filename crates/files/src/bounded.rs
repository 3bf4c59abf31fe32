//! Bounded reads of files that others wrote. The bound applies to the bytes read, because a device, a pipe or a growing file has no size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a MiB, the unit of bounds.
pub const MIB: u64 = 1 << 20;

/// A reader with a byte limit. Input beyond the limit is an error.
#[derive(Debug)]
pub struct BoundedReader<R> {
    inner: R,
    left: u64,
    most: u64,
}

impl<R: Read> BoundedReader<R> {
    /// Reads at most `most` bytes of `inner`.
    pub fn new(inner: R, most: u64) -> Self {
        Self { inner, left: most, most }
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One byte more, to distinguish a file that ends at the bound from a longer one.
        let room = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.inner.read(&mut buffer[..room])?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_large(self.most))),
        }
        Ok(count)
    }
}

fn too_large(most: u64) -> String {
    if most >= MIB && most.is_multiple_of(MIB) {
        format!("larger than {} MiB", most / MIB)
    } else {
        format!("larger than {most} bytes")
    }
}

/// Opens a file of at most `most` bytes, to read in parts.
///
/// # Errors
/// The kernel's.
pub fn reader(path: &Path, most: u64) -> io::Result<BoundedReader<File>> {
    Ok(BoundedReader::new(File::open(path)?, most))
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The kernel's, or the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader(path, most)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text file of at most `most` bytes.
///
/// # Errors
/// The kernel's, the file is larger, or it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    reader(path, most)?.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_up_to_the_bound() {
        let zero = Path::new("/dev/zero");
        let error = read(zero, MIB).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::FileTooLarge, "larger than 1 MiB".to_owned()));
        assert_eq!(read_text(zero, 100).unwrap_err().to_string(), "larger than 100 bytes");
        let mut counted = BoundedReader::new(io::repeat(7), 10);
        assert_eq!(io::copy(&mut (&mut counted).take(10), &mut io::sink()).unwrap(), 10);
        assert!(counted.read(&mut [0; 4]).is_err());
    }

    #[test]
    fn a_file_may_be_as_large_as_the_bound() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(read(file.path(), 5).unwrap(), b"12345");
        assert_eq!(read_text(file.path(), 6).unwrap(), "12345");
        assert!(read(file.path(), 4).is_err());
    }
}
