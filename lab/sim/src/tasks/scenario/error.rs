//! Why a scenario cannot be run; one line that names file, key and the valid range.

use midflight_control::FileError;
use midflight_workload::{ReadError, ScaleError};
use std::path::PathBuf;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Its file cannot be read, or a key or value in it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The trace cannot be read; its error names it.
    #[error("{}: workload.trace: {error}", file.display())]
    Trace {
        /// The scenario's file.
        file: PathBuf,
        /// The reader's error.
        error: ReadError,
    },
    /// The trace cannot be scaled.
    #[error("{}: workload: {error}", file.display())]
    Scale {
        /// The scenario's file.
        file: PathBuf,
        /// The scaling error.
        error: ScaleError,
    },
}
