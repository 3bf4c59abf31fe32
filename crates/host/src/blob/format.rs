//! How blobs are asked for, and how that is answered. Integers are in network byte order. The server begins; then a connection carries
//! any number of requests, one after another:
//!
//! | greeting, 16 bytes | | request, 32 or 40 bytes | | answer, 16 bytes, then the bytes | |
//! |---|---|---|---|---|---|
//! | magic "MB" | 16 bits | magic "MB" | 16 bits | magic "MB" | 16 bits |
//! | version 2 | 8 bits | version 2 | 8 bits | version 2 | 8 bits |
//! | status: 0 welcome, 1 no place for more | 8 bits | operation: 1 a whole blob, 2 a part of a pack | 8 bits | status: 0 here it is, 1 not here | 8 bits |
//! | reserved, 0 | 32 bits | reserved, 0 | 32 bits | length of what follows | 32 bits |
//! | challenge, random | 64 bits | name | 64 bits | proof | 64 bits |
//! | | | nonce, random | 64 bits | | |
//! | | | proof | 64 bits | | |
//! | | | operation 2: offset in bytes | 32 bits | | |
//! | | | operation 2: bytes at most, from 1 on | 32 bits | | |
//!
//! A part ends where the pack ends at present; a pack is not here as a whole, and a blob not in parts. With another status than 0,
//! challenge, length and proof are 0, and the server closes the connection.
//!
//! An id is random, and does not travel here: who listens at a port now may be another process than the one that made the reference,
//! because that one has ended. The request has a name instead, and both ends prove that they know the id, each by a hash of what the
//! other has just drawn at random, and of both ends' addresses, as each sees them: what is proved to a relay has its addresses
//! ([`midflight_tasks::blob`]). All are SipHash-2-4, k0 is the id, and k1 says what the hash is for:
//!
//! | | k1 | of |
//! |---|---|---|
//! | name | 1 | nothing |
//! | proof of a request | 2 | challenge, requests before this one on the connection (64 bits), nonce, offset and bytes at most (32 bits each; 0 for a whole blob), ends |
//! | proof of an answer | 3 | nonce, length, ends |
//!
//! *Ends* are the server's and then the client's IP address (128 bits; IPv4 ones mapped to IPv6) and port.

use midflight_tasks::blob::{Asked, BlobSecret};
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 2] = *b"MB";
const VERSION: u8 = 2;
pub(super) const OPERATION_WHOLE: u8 = 1;
pub(super) const OPERATION_PART: u8 = 2;
/// Of a greeting and of an answer: what was wanted.
pub(super) const STATUS_OK: u8 = 0;
/// Of a greeting: the server has no place for more connections. Of an answer: there is no such blob.
pub(super) const STATUS_REFUSED: u8 = 1;

/// How all that is sent begins.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Start {
    magic: [u8; 2],
    version: u8,
    /// The operation of a request, else a status.
    pub(super) code: u8,
}

/// How a server begins a connection.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Greeting {
    pub(super) start: Start,
    reserved: U32,
    pub(super) challenge: U64,
}

/// How a request begins.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Request {
    pub(super) start: Start,
    reserved: U32,
    pub(super) name: U64,
    pub(super) nonce: U64,
    proof: U64,
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
    pub(super) start: Start,
    pub(super) length: U32,
    pub(super) proof: U64,
}

impl Start {
    fn new(code: u8) -> Self {
        Self { magic: MAGIC, version: VERSION, code }
    }

    /// Whether it is of this version.
    pub(super) fn is_ours(&self) -> bool {
        (self.magic, self.version) == (MAGIC, VERSION)
    }
}

impl Greeting {
    /// There is a place.
    pub(super) fn welcome(challenge: u64) -> Self {
        Self { start: Start::new(STATUS_OK), reserved: 0.into(), challenge: challenge.into() }
    }

    /// There is none.
    pub(super) fn no_place() -> Self {
        Self { start: Start::new(STATUS_REFUSED), ..Self::welcome(0) }
    }
}

impl Request {
    /// Asks for a blob, or for a part of a pack, which then follows.
    pub(super) fn new(operation: u8, secret: BlobSecret, asked: &Asked) -> Self {
        let (name, nonce, proof) = (secret.request_name(), asked.nonce, secret.request_proof(asked));
        let (start, reserved) = (Start::new(operation), 0.into());
        Self { start, reserved, name: name.into(), nonce: nonce.into(), proof: proof.into() }
    }

    /// Whether who asks knows the id. `next`: of the connection, with nothing of this request yet.
    pub(super) fn is_proved(&self, secret: BlobSecret, next: &Asked, part: Option<&Part>) -> bool {
        let (offset, most) = part.map_or((0, 0), |part| (part.offset.get(), part.most.get()));
        secret.request_proof(&Asked { nonce: self.nonce.get(), offset, most, ..*next }) == self.proof.get()
    }
}

impl Answer {
    /// `length` bytes follow, and this is who has them.
    pub(super) fn here(length: u32, proof: u64) -> Self {
        Self { start: Start::new(STATUS_OK), length: length.into(), proof: proof.into() }
    }

    /// There is no such blob.
    pub(super) fn not_here() -> Self {
        Self { start: Start::new(STATUS_REFUSED), ..Self::here(0, 0) }
    }
}
