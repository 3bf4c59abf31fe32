//! TOML files that users write. An error is one line that names file, key and what is allowed.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, ValueDeserializer};

const LARGEST: u64 = 16 * midflight_files::MIB;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {error}; {example}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
        /// Names a file to start from.
        example: &'static str,
    },
    /// A line is not TOML, names an unknown key or has a value of a wrong type.
    #[error("{}:{line}: {message}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The error in it.
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
    /// A value outside its bounds, as the message says.
    pub fn value(file: &Path, message: impl Display) -> Self {
        Self::Value { file: file.to_path_buf(), message: message.to_string() }
    }

    /// Adds `key` to the known keys that an unknown-key error lists before `first`.
    #[must_use]
    pub(crate) fn with_known(mut self, key: &str, first: &str) -> Self {
        if let Self::Line { message, .. } = &mut self {
            let known = format!("expected one of `{first}`");
            *message = message.replace(&known, &format!("expected one of `{key}`, `{first}`"));
        }
        self
    }

    /// toml's own errors span several lines; users and scripts want `file:line: what`.
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

/// The text of a file of at most 16 MiB. `example` names a file to start from.
///
/// # Errors
/// [`FileError::Unreadable`].
pub fn read(file: &Path, example: &'static str) -> Result<String, FileError> {
    let unreadable = |error| FileError::Unreadable { file: file.to_path_buf(), error, example };
    midflight_files::read_text(file, LARGEST).map_err(unreadable)
}

/// Parses `text`; errors call it `file`.
///
/// # Errors
/// [`FileError::Line`].
pub fn parse<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| FileError::at_line(text, file, &error))
}

/// Parses `text` and passes it to `read`; errors call it `file`.
///
/// # Errors
/// [`FileError::Line`].
pub fn parse_by<T>(
    text: &str,
    file: &Path,
    read: impl FnOnce(Table<'_>) -> Result<T, toml::de::Error>,
) -> Result<T, FileError> {
    let table = DeTable::parse(text).map(|table| Table { span: table.span(), entries: table.into_inner() });
    table.and_then(read).map_err(|error| FileError::at_line(text, file, &error))
}

/// A table of a file. Each owner of keys takes its own keys out of it.
#[derive(Debug)]
pub struct Table<'a> {
    span: Range<usize>,
    entries: DeTable<'a>,
}

impl<'a> Table<'a> {
    /// Whether it has this key.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Takes a table out of this one; an empty one if there is none.
    ///
    /// # Errors
    /// If it is no table.
    pub fn take_table(&mut self, name: &str) -> Result<Self, toml::de::Error> {
        let Some(value) = self.entries.remove(name) else {
            return Ok(Self { span: self.span.clone(), entries: DeTable::default() });
        };
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(entries) => Ok(Self { span, entries }),
            // Parsing it again gives the error, with its position.
            other => {
                let value = ValueDeserializer::from(Spanned::new(span, other));
                toml::Table::deserialize(value).and_then(|_| Err(serde::de::Error::custom("expected a table")))
            }
        }
    }

    /// Takes all remaining keys.
    ///
    /// # Errors
    /// An unknown key, or a value of a wrong type.
    pub fn rest<T: DeserializeOwned>(self) -> Result<T, toml::de::Error> {
        T::deserialize(Deserializer::from(Spanned::new(self.span, self.entries)))
    }
}

/// Checks that the value of `key` is in its bounds.
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
