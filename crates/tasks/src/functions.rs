//! How functions are named on the wire, and the arguments and results of the built-in ones.

use midflight_endpoint::Nanos;

/// The number of a function's name: 32-bit FNV-1a. An executor refuses to register two names with one number.
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
/// Built in: waits. Argument: nanoseconds, 8 bytes, network byte order. Result: [`Began`].
pub const SLEEP: &str = "sleep";
/// Built in: computes. Argument and result as for [`SLEEP`].
pub const SPIN: &str = "spin";
/// Built in: runs a command line by `/bin/sh -c`. Argument: the command line. Result: an [`ExecResult`].
pub const EXEC: &str = "exec";

/// When a run began, in nanoseconds of the executor's `CLOCK_MONOTONIC`; `replay` measures with it. Encoded as 8 bytes
/// each, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Began {
    /// The slot asked for a task.
    pub asked: Nanos,
    /// The function started.
    pub started: Nanos,
}

impl Began {
    /// Encodes it as a result.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        [self.asked.to_be_bytes(), self.started.to_be_bytes()].concat()
    }

    /// Decodes it from a result; `None` if the bytes are malformed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (asked, started) = bytes.split_first_chunk::<8>()?;
        let started = u64::from_be_bytes(started.try_into().ok()?);
        Some(Self { asked: u64::from_be_bytes(*asked), started })
    }
}

/// The outcome of a command line. Encoded as exit code, length of stdout (32 bits each, network byte order), stdout,
/// stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecResult {
    /// The exit code, or 128 + the signal that ended it.
    pub code: i32,
    /// All it wrote to stdout.
    pub stdout: Vec<u8>,
    /// All it wrote to stderr.
    pub stderr: Vec<u8>,
}

impl ExecResult {
    /// Encodes it as a result.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.stdout.len() + self.stderr.len());
        bytes.extend_from_slice(&self.code.to_be_bytes());
        let length = u32::try_from(self.stdout.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&self.stdout);
        bytes.extend_from_slice(&self.stderr);
        bytes
    }

    /// Decodes it from a result; `None` if the bytes are malformed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (code, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (stdout, stderr) = rest.split_at_checked(length)?;
        Some(Self { code: i32::from_be_bytes(*code), stdout: stdout.to_vec(), stderr: stderr.to_vec() })
    }
}
