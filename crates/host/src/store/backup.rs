//! Files with all data of a store: `MAGIC`, records, an end. A record is the lengths of key and value, the milliseconds until the key
//! expires (all bits set: it does not), key and value. The end is a record with an empty key and the number of keys in place of the
//! milliseconds, and the CRC-32C of all before. Numbers are little-endian.

#[cfg(feature = "replica")]
use midflight_store::replica::Backup;
use midflight_wire::store::{KEY_MAX, VALUE_MAX};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const MAGIC: &[u8] = b"midflight backup 1\n";
const NEVER: u64 = u64::MAX;
const HEAD: usize = 2 + 4 + 8;
const BUFFER: usize = 256 << 10;

/// A key, its value, and the milliseconds until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// `None`: it does not expire.
    pub expires_in: Option<u64>,
}

/// Why a file is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// Another file.
    #[error("it is no backup of a store, or one of another version")]
    NoBackup,
    /// It ends early.
    #[error("it ends after {0} keys: the file was cut")]
    Cut(u64),
    /// Its bytes are not those that were written.
    #[error("its bytes are not those that were written: the file is damaged")]
    Damaged,
}

/// Writes a new file, readable by its owner only. It appears when it is whole and on the disk. Returns the number of keys.
///
/// # Errors
/// If the file exists, or cannot be written. Nothing is left then.
#[cfg(feature = "replica")]
pub fn write(backup: &Backup, path: &Path) -> io::Result<u64> {
    if path.try_exists()? {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is such a file: name a new one"));
    }
    // An unknown name: another user of the directory could put a link there.
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{:016x}.part", rand::random::<u64>()));
    let written = write_to(backup, Path::new(&part)).and_then(|keys| {
        // Unlike a rename, this never replaces a file.
        std::fs::hard_link(&part, path)?;
        Ok(keys)
    });
    let _ = std::fs::remove_file(&part);
    written
}

#[cfg(feature = "replica")]
fn write_to(backup: &Backup, path: &Path) -> io::Result<u64> {
    use std::io::{BufWriter, Write};
    let file = midflight_files::options().write(true).create_new(true).open(path)?;
    let (mut out, mut crc, mut keys) = (BufWriter::with_capacity(BUFFER, file), 0, 0);
    let mut put = |bytes: &[u8]| {
        crc = crc32c::crc32c_append(crc, bytes);
        out.write_all(bytes)
    };
    put(MAGIC)?;
    for item in backup.items() {
        put(&head(item.key.len(), item.value.len(), item.expires_in.unwrap_or(NEVER)))?;
        put(item.key)?;
        put(item.value)?;
        keys += 1;
    }
    put(&head(0, 0, keys))?;
    out.write_all(&crc.to_le_bytes())?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(keys)
}

#[cfg(feature = "replica")]
fn head(key: usize, value: usize, last: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..2].copy_from_slice(&(key as u16).to_le_bytes());
    head[2..6].copy_from_slice(&(value as u32).to_le_bytes());
    head[6..].copy_from_slice(&last.to_le_bytes());
    head
}

/// Reads a file. After an error it ends.
#[derive(Debug)]
pub struct BackupReader {
    file: BufReader<File>,
    crc: u32,
    keys: u64,
    has_ended: bool,
}

impl BackupReader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it is no backup.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let file = BufReader::with_capacity(BUFFER, File::open(path)?);
        let mut reader = Self { file, crc: 0, keys: 0, has_ended: false };
        let magic = reader.bytes(MAGIC.len()).map_err(|error| match error {
            BackupError::Cut(_) => BackupError::NoBackup,
            error => error,
        })?;
        if magic == MAGIC { Ok(reader) } else { Err(BackupError::NoBackup) }
    }

    /// Reads a whole file. Returns the number of its keys.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn check(path: &Path) -> Result<u64, BackupError> {
        let mut reader = Self::open(path)?;
        for record in reader.by_ref() {
            record?;
        }
        Ok(reader.keys)
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, BackupError> {
        let mut bytes = vec![0; length];
        self.file.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => BackupError::Cut(self.keys),
            _ => BackupError::Unreadable(error),
        })?;
        self.crc = crc32c::crc32c_append(self.crc, &bytes);
        Ok(bytes)
    }

    fn record(&mut self) -> Result<Option<Record>, BackupError> {
        let head = self.bytes(HEAD)?;
        let (key, rest) = head.split_first_chunk().ok_or(BackupError::Damaged)?;
        let (value, last) = rest.split_first_chunk().ok_or(BackupError::Damaged)?;
        let (key, value) = (usize::from(u16::from_le_bytes(*key)), u32::from_le_bytes(*value) as usize);
        let last = u64::from_le_bytes(last.try_into().map_err(|_| BackupError::Damaged)?);
        if key == 0 {
            return self.end(last).map(|()| None);
        }
        if key > KEY_MAX || value > VALUE_MAX {
            return Err(BackupError::Damaged);
        }
        let record = Record {
            key: self.bytes(key)?,
            value: self.bytes(value)?,
            expires_in: Some(last).filter(|ms| *ms != NEVER),
        };
        self.keys += 1;
        Ok(Some(record))
    }

    fn end(&mut self, keys: u64) -> Result<(), BackupError> {
        let crc = self.crc.to_le_bytes();
        let is_whole = self.bytes(crc.len())? == crc && keys == self.keys && self.file.read(&mut [0])? == 0;
        if is_whole { Ok(()) } else { Err(BackupError::Damaged) }
    }
}

impl Iterator for BackupReader {
    type Item = Result<Record, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let record = self.record();
        self.has_ended = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}
