//! The head of an argument, and the results that are the executor's own. `docs/internals/python.md` has the layout.

use midflight_wire::BlobRef;
use zerocopy::FromZeros;

/// The format that this executor reads.
const VERSION: u8 = 1;
const MAGIC: [u8; 2] = *b"MP";
/// Bytes before the blobs.
const FIXED_BYTES: usize = 16;
const BLOB_BYTES: usize = 16;

/// An argument, in its parts.
#[derive(Debug)]
pub(super) struct Head<'a> {
    /// Major and minor version of the client's Python.
    pub(super) python: (u8, u8),
    /// Attempts after an exception.
    pub(super) retries: u8,
    /// Attempts in all, after the death of a worker.
    pub(super) attempts: u8,
    /// The environment that the workers must have; 0: any.
    pub(super) environment: u64,
    pub(super) function: BlobRef,
    pub(super) shared: Vec<BlobRef>,
    /// For the worker.
    pub(super) calls: &'a [u8],
}

/// A result that says why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: Code,
    /// That ended the worker.
    pub(super) signal: u8,
    pub(super) text: String,
}

/// What kind of error; the client has an exception for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Code {
    /// Another Python, environment or format.
    Mismatch = 1,
    /// The worker died in the task.
    WorkerDied = 2,
    /// No worker could be started.
    NoWorker = 3,
    /// The function or a shared argument could not be fetched.
    NotFetched = 4,
}

impl Refusal {
    pub(super) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, signal: 0, text: text.into() }
    }

    /// As a result.
    pub(super) fn encode(&self, attempt: u8) -> Vec<u8> {
        let mut bytes = vec![b'E', self.code as u8, self.signal, attempt];
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
}

impl<'a> Head<'a> {
    pub(super) fn parse(argument: &'a [u8]) -> Result<Self, Refusal> {
        let (fixed, rest) = argument.split_at_checked(FIXED_BYTES).ok_or_else(malformed)?;
        let [m0, m1, version, major, minor, retries, attempts, shared, environment @ ..] = fixed else {
            return Err(malformed());
        };
        if [*m0, *m1] != MAGIC {
            return Err(malformed());
        }
        if *version != VERSION {
            return Err(Refusal::new(
                Code::Mismatch,
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

fn malformed() -> Refusal {
    Refusal::new(Code::Mismatch, "no argument of midflight's Python package: call `python` by that package only")
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
        let head = Head::parse(&bytes).unwrap();
        assert_eq!((head.python, head.retries, head.attempts, head.environment), ((3, 11), 2, 3, 9));
        assert_eq!((head.function.id.get(), head.function.length.get(), head.function.port.get()), (1, 256, 12_345));
        assert_eq!(head.shared.iter().map(|blob| blob.id.get()).collect::<Vec<_>>(), [2]);
        assert_eq!(head.calls, b"calls");
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for length in 0..argument(1, 1, 2).len() - 5 {
            assert_eq!(Head::parse(&argument(1, 1, 2)[..length]).unwrap_err(), malformed(), "{length} bytes");
        }
        assert!(Head::parse(&argument(2, 0, 1)).unwrap_err().text.contains("format 2"));
        assert_eq!(Head::parse(b"what is no argument at all, but long").unwrap_err(), malformed());
    }
}
