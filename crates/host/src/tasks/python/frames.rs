//! The frames between executor and worker: a header, then as many bytes as it says. `docs/internals/python.md` explains their use;
//! `python/midflight/worker.py` has the same numbers.

pub(super) const FRAMES: u32 = 4;
pub(super) const HEADER_BYTES: usize = 16;

pub(super) mod to {
    /// The bytes of the blob `number`, up to 64 KiB.
    pub(crate) const BLOB: u8 = 1;
    /// The blob `number` as a sealed memfd. The worker answers `READY`; then comes one byte with the descriptor (`SCM_RIGHTS`). The worker
    /// maps it privately, because Linux before 6.7 refuses shared maps of sealed memory.
    pub(crate) const MEMORY: u8 = 2;
    /// The worker forgets the blob `number`.
    pub(crate) const DROP: u8 = 3;
    /// The call `number`: the number of the function, those of the shared arguments (`count`), 32 bits each; the calls.
    pub(crate) const CALL: u8 = 4;
    /// The worker answers `DIGEST`.
    pub(crate) const ENVIRONMENT: u8 = 5;
    /// The answer to `WAITS`. Flag 1: the slot is lent; 0: as many calls wait as may.
    pub(crate) const LENT: u8 = 6;

    /// Flags of a `CALL`: the worker reports the begin; the previous task was told to stop.
    pub(crate) const SAYS_WHEN: u8 = 1;
    pub(crate) const WAS_STOPPED: u8 = 2;
}

pub(super) mod from {
    /// `number`: version of this form. 2 bytes: Python major, minor; a line that describes it.
    pub(crate) const HELLO: u8 = 1;
    /// The answer to `MEMORY`.
    pub(crate) const READY: u8 = 2;
    /// The result of the call `number`; the flag says that an exception is in it.
    pub(crate) const DONE: u8 = 3;
    /// Digest of the environment, 8 bytes.
    pub(crate) const DIGEST: u8 = 4;
    /// The first function of the call is called now. Only if the call's flag asks for it.
    pub(crate) const BEGUN: u8 = 5;
    /// The call waits for other calls. May be repeated.
    pub(crate) const WAITS: u8 = 6;
    /// The call continues.
    pub(crate) const GOES_ON: u8 = 7;
    /// 4 bytes: the first of its calls that has not begun, and will not; then a result of those that have ended, if all is not longer
    /// than 1,000 bytes.
    pub(crate) const NOT_BEGUN: u8 = 8;
    /// The worker does not begin the call, because modules have changed. In its first call this is an invalid answer.
    pub(crate) const STALE: u8 = 9;
    /// A blob's number (32 bits), and the bytes of its own memory that the blob's objects take (64). Before `DONE`, for blobs that came
    /// as `MEMORY`.
    pub(crate) const LOADED: u8 = 10;

    /// Flag of a `WAITS`: no reply is expected.
    pub(crate) const SILENT: u8 = 1;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) flag: u8,
    pub(super) count: u16,
    pub(super) number: u32,
    pub(super) length: u64,
}

impl Header {
    pub(super) fn alone(kind: u8, number: u32) -> Self {
        Self { kind, number, ..Self::default() }
    }

    pub(super) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind;
        bytes[1] = self.flag;
        bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [kind, flag, c0, c1, n0, n1, n2, n3, length @ ..] = *bytes;
        Self {
            kind,
            flag,
            count: u16::from_le_bytes([c0, c1]),
            number: u32::from_le_bytes([n0, n1, n2, n3]),
            length: u64::from_le_bytes(length),
        }
    }
}
