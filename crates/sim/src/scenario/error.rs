//! Why a scenario cannot be run; one line that names file, key and what is allowed.

use crate::workload::{ReadError, ScaleError};
use std::path::{Path, PathBuf};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: {error}; docs/simulator.md has one to start from", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
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
    /// The trace cannot be read; its error names it.
    #[error("{}: workload.trace: {error}", file.display())]
    Trace {
        /// The scenario's file.
        file: PathBuf,
        /// Why.
        error: ReadError,
    },
    /// The trace cannot be scaled.
    #[error("{}: workload: {error}", file.display())]
    Scale {
        /// The scenario's file.
        file: PathBuf,
        /// Why.
        error: ScaleError,
    },
}

impl ScenarioError {
    /// toml's own errors span several lines; people and scripts want `file:line: what`.
    pub(super) fn at_line(text: &str, file: &Path, error: &toml::de::Error) -> Self {
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
