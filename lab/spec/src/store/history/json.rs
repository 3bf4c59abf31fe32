//! Histories as JSON lines: one operation a line.

use super::{History, Record};
use std::io::{self, BufRead, Write};

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Reading failed.
    #[error("line {line} cannot be read: {source}")]
    Unreadable {
        /// From 1.
        line: usize,
        /// The I/O error.
        source: io::Error,
    },
    /// A line is no operation.
    #[error("line {line} is no operation: {why}")]
    BadLine {
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

impl History {
    /// Reads JSON lines and skips empty ones.
    ///
    /// # Errors
    /// A [`HistoryError`] with the first bad line.
    pub fn read(lines: impl BufRead) -> Result<Self, HistoryError> {
        let mut operations = Vec::new();
        for (line, text) in (1..).zip(lines.lines()) {
            let text = text.map_err(|source| HistoryError::Unreadable { line, source })?;
            if !text.trim().is_empty() {
                operations.push(read_record(&text).map_err(|why| HistoryError::BadLine { line, why })?);
            }
        }
        Ok(Self { operations })
    }

    /// Writes JSON lines.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        for record in &self.operations {
            serde_json::to_writer(&mut to, record)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn read_record(text: &str) -> Result<Record, String> {
    let record: Record = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match (&record.result, record.end_ns) {
        (Some(result), _) if !record.call.may_give(result) => {
            Err(format!("`result` {result:?} is none of the operation {:?}", record.call))
        }
        (Some(_), None) => Err("`end_ns` is missing: an operation with a result has ended".into()),
        (_, Some(end)) if end < record.start_ns => {
            Err(format!("`end_ns` {end} is before `start_ns` {}", record.start_ns))
        }
        _ => Ok(record),
    }
}
