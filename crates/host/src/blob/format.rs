//! How blobs are asked for, and how such a request is answered. Integers are in network byte order; a connection carries any number of
//! requests, one after another:
//!
//! | request, 24 or 32 bytes | | answer, 16 bytes, then the bytes | |
//! |---|---|---|---|
//! | magic "MB" | 16 bits | magic "MB" | 16 bits |
//! | version 2 | 8 bits | version 2 | 8 bits |
//! | operation: 1 a whole blob, 2 a part of a pack | 8 bits | status: 0 here it is, 1 not here, 2 no place | 8 bits |
//! | reserved, 0 | 32 bits | length of what follows; 0 but with status 0 | 32 bits |
//! | name | 64 bits | proof; 0 but with status 0 | 64 bits |
//! | nonce, random | 64 bits | | |
//! | operation 2: offset in bytes | 32 bits | | |
//! | operation 2: bytes at most, from 1 on | 32 bits | | |
//!
//! A part ends where the pack ends at present; a pack is not here as a whole, and a blob not in parts.
//!
//! An id is random, and does not travel here: who listens at a port now may be another process than the one that made the reference,
//! because that one has ended. The request has a name instead, and the answer a proof, which only who knows the id can make
//! ([`midflight_tasks::blob`]). The name is SipHash-2-4 of nothing under the key (id, 1); the proof that of nonce, port of the
//! reference (16 bits) and length, under the key (id, 2). Whoever knows the name may fetch.

use midflight_tasks::blob::BlobSecret;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 2] = *b"MB";
const VERSION: u8 = 2;
pub(super) const OPERATION_WHOLE: u8 = 1;
pub(super) const OPERATION_PART: u8 = 2;
pub(super) const STATUS_HERE: u8 = 0;
pub(super) const STATUS_UNKNOWN: u8 = 1;
pub(super) const STATUS_NO_PLACE: u8 = 2;

/// How a request begins.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Request {
    magic: [u8; 2],
    version: u8,
    pub(super) operation: u8,
    reserved: U32,
    pub(super) name: U64,
    pub(super) nonce: U64,
}

/// What follows where a part is asked for.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Part {
    pub(super) offset: U32,
    pub(super) most: U32,
}

/// How an answer begins.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Answer {
    magic: [u8; 2],
    version: u8,
    pub(super) status: u8,
    pub(super) length: U32,
    pub(super) proof: U64,
}

impl Request {
    /// Asks for a blob, or for a part of a pack, which then follows.
    pub(super) fn new(operation: u8, secret: BlobSecret, nonce: u64) -> Self {
        let (name, nonce) = (secret.request_name().into(), nonce.into());
        Self { magic: MAGIC, version: VERSION, operation, reserved: 0.into(), name, nonce }
    }

    /// Whether it is one of this version.
    pub(super) fn is_ours(&self) -> bool {
        (self.magic, self.version) == (MAGIC, VERSION)
    }
}

impl Answer {
    /// `length` bytes follow, and this is who has them.
    pub(super) fn here(length: u32, proof: u64) -> Self {
        Self { magic: MAGIC, version: VERSION, status: STATUS_HERE, length: length.into(), proof: proof.into() }
    }

    /// Nothing follows.
    pub(super) fn nothing(status: u8) -> Self {
        Self { status, ..Self::here(0, 0) }
    }

    /// Whether it is one of this version.
    pub(super) fn is_ours(&self) -> bool {
        (self.magic, self.version) == (MAGIC, VERSION)
    }
}
