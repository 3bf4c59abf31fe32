//! Numbers of functions, and arguments and results of the built-in ones.

mod exec;
mod python;

pub use exec::{
    COMMAND_LINE_MAX, DIRECTORY_MAX, ENVIRONMENT_MAX, ExecRequest, ExecRequestError, ExecResult, VARIABLES_MAX,
};
pub use python::{PYTHON_SHARED_MAX, PythonCallOptions, PythonError, PythonFailure, PythonHead};

use midflight_endpoint::Nanos;

/// Number of a function: 32-bit FNV-1a of its name. An executor refuses to register two names with one number.
#[must_use]
pub const fn function_id(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut hash: u32 = 0x811c_9dc5;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}

/// Built in: returns nothing, at once.
pub const NOOP: &str = "noop";
/// Built in: sleeps. Argument: nanoseconds, 8 bytes, network byte order. Result: [`Began`].
pub const SLEEP: &str = "sleep";
/// Built in: computes. Argument and result as for [`SLEEP`].
pub const SPIN: &str = "spin";
/// Built in: runs a command line with `/bin/sh -c`. Argument: the command line. Result: an [`ExecResult`].
pub const EXEC: &str = "exec";
/// Built in: runs a command with `/bin/sh -c`, with its own directory, environment and timeout. A name of its own, because any
/// bytes are a command line for [`EXEC`]. Argument: an [`ExecRequest`]. Result: an [`ExecResult`].
pub const COMMAND: &str = "command";

/// Prefix of the failure message of a command whose outputs could not be stored in full.
pub const OUTPUT_NOT_KEPT: &str = "its output could not be kept whole";

/// When a run began, in nanoseconds of the executor's `CLOCK_MONOTONIC`; for `replay`. Encoded as 8 bytes each, network byte
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Began {
    /// When the slot asked for a task.
    pub asked: Nanos,
    /// When the function started.
    pub started: Nanos,
}

impl Began {
    /// Encodes it as a result.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        [self.asked.to_be_bytes(), self.started.to_be_bytes()].concat()
    }

    /// Decodes a result; `None` if it is malformed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (asked, started) = bytes.split_first_chunk::<8>()?;
        let started = u64::from_be_bytes(started.try_into().ok()?);
        Some(Self { asked: u64::from_be_bytes(*asked), started })
    }
}
