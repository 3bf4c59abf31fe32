//! The frames between executor and worker; see `docs/internals/python.md`.

pub(super) const FRAMES: u32 = 3;
pub(super) const HEADER_BYTES: usize = 16;

pub(super) mod to {
    pub(crate) const BLOB: u8 = 1;
    pub(crate) const MEMORY: u8 = 2;
    pub(crate) const DROP: u8 = 3;
    pub(crate) const CALL: u8 = 4;
    pub(crate) const ENVIRONMENT: u8 = 5;
    pub(crate) const LENT: u8 = 6;

    /// Flags of a `CALL`: the worker reports the begin; the previous task was told to stop.
    pub(crate) const SAYS_WHEN: u8 = 1;
    pub(crate) const WAS_STOPPED: u8 = 2;
}

pub(super) mod from {
    pub(crate) const HELLO: u8 = 1;
    pub(crate) const READY: u8 = 2;
    pub(crate) const DONE: u8 = 3;
    pub(crate) const DIGEST: u8 = 4;
    pub(crate) const BEGUN: u8 = 5;
    pub(crate) const WAITS: u8 = 6;
    pub(crate) const GOES_ON: u8 = 7;
    pub(crate) const NOT_BEGUN: u8 = 8;
    pub(crate) const STALE: u8 = 9;
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
