//! Calls of Python functions: the head of an argument, which the executor reads, and results that the executor creates itself.
//! `docs/internals/python.md` explains them.
//!
//! An argument, with little-endian integers:
//!
//! | bytes | |
//! |---|---|
//! | 2 | magic "MP" |
//! | 1 | version of this format, 2 |
//! | 2 | Python of the client: major, minor |
//! | 1 | `retries`: attempts after an exception |
//! | 1 | `attempts`: total attempts, if workers die or exceed `timeout` |
//! | 1 | number of shared arguments, at most 255 |
//! | 8 | digest of the client's environment; 0: any |
//! | 8 | `timeout` in nanoseconds: how long a worker may take for the calls; 0: unlimited |
//! | 16 | blob of the function: id 64 bits, length 32, port 16, 0 |
//! | 16 each | blobs of the shared arguments |
//! | rest | the calls: `python/midflight/_entries.py` has their form |

use midflight_wire::tasks::BlobRef;
use std::time::Duration;
use zerocopy::FromZeros;

const VERSION: u8 = 2;
const MAGIC: [u8; 2] = *b"MP";
const FIXED_BYTES: usize = 24;
const BLOB_BYTES: usize = 16;
const SHARED_AT: usize = 7;

/// Shared arguments of one task.
pub const PYTHON_SHARED_MAX: usize = 255;

/// An argument, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonHead<'a> {
    /// How to run the calls.
    pub options: PythonCallOptions,
    /// The called function.
    pub function: BlobRef,
    /// Arguments that calls share.
    pub shared: Vec<BlobRef>,
    /// For the worker.
    pub calls: &'a [u8],
}

/// How to run calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonCallOptions {
    /// Major and minor version of the client's Python.
    pub python: (u8, u8),
    /// Attempts after an exception.
    pub retries: u8,
    /// Total attempts after the death of a worker or a timeout.
    pub attempts: u8,
    /// Environment required of the workers; 0: any.
    pub environment: u64,
    /// Time for the calls of one task. Default: unlimited.
    pub timeout: Option<Duration>,
}

/// The error that an executor reports in place of a worker's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFailure {
    /// Kind of error.
    pub code: PythonError,
    /// Signal that ended the worker; 0: none.
    pub signal: u8,
    /// Message for people.
    pub text: String,
}

/// Kind of error; the client has an exception for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PythonError {
    /// Another Python, environment or format.
    Mismatch = 1,
    /// The worker died during the task.
    WorkerDied = 2,
    /// No worker could be started.
    NoWorker = 3,
    /// The function or a shared argument could not be fetched.
    NotFetched = 4,
    /// The calls exceeded their timeout.
    TimedOut = 5,
}

impl PythonFailure {
    /// An error without a signal.
    #[must_use]
    pub fn new(code: PythonError, text: impl Into<String>) -> Self {
        Self { code, signal: 0, text: text.into() }
    }

    /// Encodes it as the result of this attempt.
    #[must_use]
    pub fn encode(&self, attempt: u8) -> Vec<u8> {
        let mut bytes = vec![b'E', self.code as u8, self.signal, attempt];
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
}

impl PythonCallOptions {
    /// Appends the head of an argument, which the calls follow. At most [`PYTHON_SHARED_MAX`] blobs are `shared`.
    pub fn append_head(&self, bytes: &mut Vec<u8>, function: &BlobRef, shared: impl IntoIterator<Item = BlobRef>) {
        let start = bytes.len();
        let Self { python: (major, minor), retries, attempts, environment, timeout } = *self;
        bytes.extend(MAGIC);
        bytes.extend([VERSION, major, minor, retries, attempts, 0]);
        bytes.extend(environment.to_le_bytes());
        // A timeout beyond 64 bits exceeds 500 years.
        let nanos = timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos().max(1)).unwrap_or(0));
        bytes.extend(nanos.to_le_bytes());
        append_blob(bytes, function);
        for blob in shared {
            append_blob(bytes, &blob);
            bytes[start + SHARED_AT] += 1;
        }
    }
}

impl<'a> PythonHead<'a> {
    /// Length of a head with `shared` shared arguments, in bytes.
    #[must_use]
    pub const fn bytes(shared: usize) -> usize {
        FIXED_BYTES + BLOB_BYTES * (1 + shared)
    }

    /// Parses an argument.
    ///
    /// # Errors
    /// The result for the client: the argument is malformed, or has another format.
    pub fn parse(argument: &'a [u8]) -> Result<Self, PythonFailure> {
        // Another format may be shorter.
        let [m0, m1, version, ..] = argument else { return Err(malformed()) };
        if [*m0, *m1] != MAGIC {
            return Err(malformed());
        }
        if *version != VERSION {
            return Err(PythonFailure::new(
                PythonError::Mismatch,
                format!(
                    "the client's midflight writes format {version}, this executor reads {VERSION}: use one release of \
                     Midflight on all machines"
                ),
            ));
        }
        let (fixed, rest) = argument.split_at_checked(FIXED_BYTES).ok_or_else(malformed)?;
        let [_, _, _, major, minor, retries, attempts, shared, numbers @ ..] = fixed else { return Err(malformed()) };
        let (environment, nanos) = numbers.split_at_checked(8).ok_or_else(malformed)?;
        let timeout = Some(Duration::from_nanos(number(nanos))).filter(|timeout| !timeout.is_zero());
        let blob_bytes = Self::bytes(usize::from(*shared)) - FIXED_BYTES;
        let (blobs, calls) = rest.split_at_checked(blob_bytes).ok_or_else(malformed)?;
        let mut blobs = blobs.chunks_exact(BLOB_BYTES).map(blob);
        Ok(Self {
            options: PythonCallOptions {
                python: (*major, *minor),
                retries: *retries,
                attempts: *attempts,
                environment: number(environment),
                timeout,
            },
            function: blobs.next().ok_or_else(malformed)?,
            shared: blobs.collect(),
            calls,
        })
    }
}

fn malformed() -> PythonFailure {
    PythonFailure::new(
        PythonError::Mismatch,
        "no argument of midflight's Python package: call `python` by that package only",
    )
}

/// Little-endian, at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef {
        id: number(&bytes[0..8]).into(),
        length: (number(&bytes[8..12]) as u32).into(),
        port: (number(&bytes[12..14]) as u16).into(),
        ..BlobRef::new_zeroed()
    }
}

fn append_blob(bytes: &mut Vec<u8>, blob: &BlobRef) {
    bytes.extend(blob.id.get().to_le_bytes());
    bytes.extend(blob.length.get().to_le_bytes());
    bytes.extend(blob.port.get().to_le_bytes());
    bytes.extend([0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: PythonCallOptions = PythonCallOptions {
        python: (3, 11),
        retries: 2,
        attempts: 3,
        environment: 0x0102_0304_0506_0708,
        timeout: Some(Duration::from_millis(1_500)),
    };

    fn reference(id: u64) -> BlobRef {
        BlobRef { id: id.into(), length: 256.into(), port: 12_345.into(), reserved: 0.into() }
    }

    fn argument(options: &PythonCallOptions, shared: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        options.append_head(&mut bytes, &reference(1), (0..shared).map(|n| reference(2 + n)));
        bytes.extend(b"calls");
        bytes
    }

    #[test]
    fn an_argument_is_read_as_it_was_written() {
        for options in [OPTIONS, PythonCallOptions { timeout: None, environment: 0, ..OPTIONS }] {
            for count in [0, 1, 255] {
                let bytes = argument(&options, count);
                assert_eq!(bytes.len(), PythonHead::bytes(count as usize) + 5);
                let shared = (0..count).map(|n| reference(2 + n)).collect();
                let head = PythonHead { options, function: reference(1), shared, calls: b"calls" };
                assert_eq!(PythonHead::parse(&bytes), Ok(head));
            }
        }
    }

    #[test]
    fn a_timeout_that_is_too_long_for_the_format_is_none_and_one_that_is_too_short_is_the_shortest() {
        for (timeout, read) in [(Duration::MAX, None), (Duration::ZERO, Some(Duration::from_nanos(1)))] {
            let bytes = argument(&PythonCallOptions { timeout: Some(timeout), ..OPTIONS }, 0);
            assert_eq!(PythonHead::parse(&bytes).unwrap().options.timeout, read);
        }
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        let bytes = argument(&OPTIONS, 1);
        for length in 0..bytes.len() - 5 {
            assert_eq!(PythonHead::parse(&bytes[..length]).unwrap_err(), malformed(), "{length} bytes");
        }
        let mut other = bytes.clone();
        other[2] = 1;
        for length in [3, 40] {
            assert!(PythonHead::parse(&other[..length]).unwrap_err().text.contains("format 1"));
        }
        assert_eq!(PythonHead::parse(b"what is no argument at all, but long").unwrap_err(), malformed());
    }
}
