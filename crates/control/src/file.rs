//! Files in TOML that people write. Whatever is wrong with one is said on one line that names file, key and what is allowed.

use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// MiB of the largest file that is read: a device has no end.
const LARGEST_MIB: u64 = 16;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {error}; {example}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
        /// Where there is one to start from.
        example: &'static str,
    },
    /// A line is not TOML, names an unknown key or has a value of a wrong type.
    #[error("{}:{line}: {message}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A value is outside its bounds.
    #[error("{}: {message}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// Key, value and bounds.
        message: String,
    },
}

impl FileError {
    /// A value is outside its bounds, as the message says.
    pub fn value(file: &Path, message: impl Display) -> Self {
        Self::Value { file: file.to_path_buf(), message: message.to_string() }
    }

    /// toml's own errors span several lines; people and scripts want `file:line: what`.
    fn at_line(text: &str, file: &Path, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.get(..start).unwrap_or_default().matches('\n').count();
        let key = text.lines().nth(line).and_then(|text| text.split_once('=')).map(|(key, _)| key.trim());
        let message = error.message().replace('\n', " ");
        let message = match key {
            Some(key) if !message.contains(&format!("`{key}`")) => format!("key `{key}`: {message}"),
            _ => message,
        };
        Self::Line { file: file.to_path_buf(), line: line + 1, message }
    }
}

/// The text of a file of at most 16 MiB. `example` says where there is one to start from.
///
/// # Errors
/// [`FileError::Unreadable`].
pub fn read(file: &Path, example: &'static str) -> Result<String, FileError> {
    let text = || {
        let mut text = String::new();
        File::open(file)?.take((LARGEST_MIB << 20) + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LARGEST_MIB << 20 {
            return Err(io::Error::other(format!("larger than {LARGEST_MIB} MiB")));
        }
        Ok(text)
    };
    text().map_err(|error| FileError::Unreadable { file: file.to_path_buf(), error, example })
}

/// What `text` says; `file` is what errors name.
///
/// # Errors
/// [`FileError::Line`].
pub fn parse<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| FileError::at_line(text, file, &error))
}

/// Whether the value of `key` is in its bounds.
///
/// # Errors
/// Names key, value and bounds.
pub fn within<T: PartialOrd + Display>(key: &str, value: T, allowed: RangeInclusive<T>) -> Result<(), String> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(format!("{key} = {value}: must be {} to {}", allowed.start(), allowed.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused_and_so_is_one_that_is_not_there() {
        let error = |file: &str| read(Path::new(file), "there is an example").unwrap_err().to_string();
        assert_eq!(error("/dev/zero"), "/dev/zero: larger than 16 MiB; there is an example");
        assert!(error("/nonexistent").contains("No such file"), "{}", error("/nonexistent"));
        assert_eq!(read(Path::new("/dev/null"), "").unwrap(), "");
    }
}
