//! Calls of Python functions: the head of an argument, which an executor reads, and the results that are the executor's own.
//! `docs/internals/python.md` has the layout.

use midflight_wire::BlobRef;
use zerocopy::FromZeros;

/// The format that this executor reads.
const VERSION: u8 = 1;
const MAGIC: [u8; 2] = *b"MP";
/// Bytes before the blobs.
const FIXED_BYTES: usize = 16;
const BLOB_BYTES: usize = 16;

/// An argument, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonHead<'a> {
    /// Major and minor version of the client's Python.
    pub python: (u8, u8),
    /// Attempts after an exception.
    pub retries: u8,
    /// Attempts in all, after the death of a worker.
    pub attempts: u8,
    /// The environment that the workers must have; 0: any.
    pub environment: u64,
    /// The function that is called.
    pub function: BlobRef,
    /// Arguments that many calls have.
    pub shared: Vec<BlobRef>,
    /// For the worker.
    pub calls: &'a [u8],
}

/// A result that says why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonRefusal {
    /// What kind of error.
    pub code: PythonError,
    /// That ended the worker; 0: none.
    pub signal: u8,
    /// For people.
    pub text: String,
}

/// What kind of error; the client has an exception for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PythonError {
    /// Another Python, environment or format.
    Mismatch = 1,
    /// The worker died in the task.
    WorkerDied = 2,
    /// No worker could be started.
    NoWorker = 3,
    /// The function or a shared argument could not be fetched.
    NotFetched = 4,
}

impl PythonRefusal {
    /// Without a signal.
    #[must_use]
    pub fn new(code: PythonError, text: impl Into<String>) -> Self {
        Self { code, signal: 0, text: text.into() }
    }

    /// As the result of this attempt.
    #[must_use]
    pub fn encode(&self, attempt: u8) -> Vec<u8> {
        let mut bytes = vec![b'E', self.code as u8, self.signal, attempt];
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
}

impl<'a> PythonHead<'a> {
    /// Reads the head of an argument.
    ///
    /// # Errors
    /// What the client is told: this is no such argument, or of another format.
    pub fn parse(argument: &'a [u8]) -> Result<Self, PythonRefusal> {
        let (fixed, rest) = argument.split_at_checked(FIXED_BYTES).ok_or_else(malformed)?;
        let [m0, m1, version, major, minor, retries, attempts, shared, environment @ ..] = fixed else {
            return Err(malformed());
        };
        if [*m0, *m1] != MAGIC {
            return Err(malformed());
        }
        if *version != VERSION {
            return Err(PythonRefusal::new(
                PythonError::Mismatch,
                format!(
                    "the client's midflight writes format {version}, this executor reads {VERSION}: use one release of \
                     Midflight on all machines"
                ),
            ));
        }
        let environment = environment.try_into().map(u64::from_le_bytes).map_err(|_| malformed())?;
        let (blobs, calls) = rest.split_at_checked(BLOB_BYTES * (1 + usize::from(*shared))).ok_or_else(malformed)?;
        let mut blobs = blobs.chunks_exact(BLOB_BYTES).map(blob);
        Ok(Self {
            python: (*major, *minor),
            retries: *retries,
            attempts: *attempts,
            environment,
            function: blobs.next().ok_or_else(malformed)?,
            shared: blobs.collect(),
            calls,
        })
    }
}

fn malformed() -> PythonRefusal {
    PythonRefusal::new(
        PythonError::Mismatch,
        "no argument of midflight's Python package: call `python` by that package only",
    )
}

/// A reference of [`BLOB_BYTES`] bytes.
fn blob(bytes: &[u8]) -> BlobRef {
    let number = |range: std::ops::Range<usize>| {
        bytes[range].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    BlobRef {
        id: number(0..8).into(),
        length: (number(8..12) as u32).into(),
        port: (number(12..14) as u16).into(),
        ..BlobRef::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(version: u8, shared: u8, blobs: u8) -> Vec<u8> {
        let mut bytes = vec![b'M', b'P', version, 3, 11, 2, 3, shared, 9, 0, 0, 0, 0, 0, 0, 0];
        for blob in 1..=blobs {
            bytes.extend([blob, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x39, 0x30, 0, 0]);
        }
        bytes.extend(b"calls");
        bytes
    }

    #[test]
    fn an_argument_has_its_parts() {
        let bytes = argument(1, 1, 2);
        let head = PythonHead::parse(&bytes).unwrap();
        assert_eq!((head.python, head.retries, head.attempts, head.environment), ((3, 11), 2, 3, 9));
        assert_eq!((head.function.id.get(), head.function.length.get(), head.function.port.get()), (1, 256, 12_345));
        assert_eq!(head.shared.iter().map(|blob| blob.id.get()).collect::<Vec<_>>(), [2]);
        assert_eq!(head.calls, b"calls");
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for length in 0..argument(1, 1, 2).len() - 5 {
            assert_eq!(PythonHead::parse(&argument(1, 1, 2)[..length]).unwrap_err(), malformed(), "{length} bytes");
        }
        assert!(PythonHead::parse(&argument(2, 0, 1)).unwrap_err().text.contains("format 2"));
        assert_eq!(PythonHead::parse(b"what is no argument at all, but long").unwrap_err(), malformed());
    }
}
