//! The format of requests for blobs and of their answers. Integers are in network byte order. The server speaks first; then a connection
//! carries any number of requests in sequence:
//!
//! | greeting, 16 bytes | | request, 32 bytes | | answer, 16 bytes, then the bytes | |
//! |---|---|---|---|---|---|
//! | magic "MB" | 16 bits | magic "MB" | 16 bits | magic "MB" | 16 bits |
//! | version 3 | 8 bits | version 3 | 8 bits | version 3 | 8 bits |
//! | status: 0 welcome, 1 no place for more | 8 bits | operation: 1 | 8 bits | status: 0 here it is, 1 not here | 8 bits |
//! | reserved, 0 | 32 bits | reserved, 0 | 32 bits | length of what follows | 32 bits |
//! | challenge, random | 64 bits | name | 64 bits | proof | 64 bits |
//! | | | nonce, random | 64 bits | | |
//! | | | proof | 64 bits | | |
//!
//! With a status other than 0, challenge, length and proof are 0, and the server closes the connection.
//!
//! An id is random and secret: it is not sent here, because another process may have the port by now. The request carries a name instead.
//! Both ends prove that they know the id, each by a hash of the other's fresh random number and of both ends' addresses as each sees them.
//! A relay has other addresses, so a proof does not pass through it ([`midflight_tasks::blob`]). All hashes are SipHash-2-4; k0 is the id,
//! k1 the purpose:
//!
//! | | k1 | of |
//! |---|---|---|
//! | name | 1 | nothing |
//! | proof of a request | 2 | challenge, requests before this one on the connection (64 bits), nonce, ends |
//! | proof of an answer | 3 | nonce, length, ends |
//!
//! *Ends* are IP address (128 bits; IPv4 mapped to IPv6) and port of the server, then of the client.

use midflight_tasks::blob::{Asked, BlobSecret};
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 2] = *b"MB";
const VERSION: u8 = 3;
pub(super) const OPERATION_FETCH: u8 = 1;
/// In a greeting and in an answer: success.
pub(super) const STATUS_OK: u8 = 0;
/// In a greeting: no free connection. In an answer: no such blob.
pub(super) const STATUS_REFUSED: u8 = 1;

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Start {
    magic: [u8; 2],
    version: u8,
    /// Operation of a request, otherwise a status.
    pub(super) code: u8,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Greeting {
    pub(super) start: Start,
    reserved: U32,
    pub(super) challenge: U64,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Request {
    pub(super) start: Start,
    reserved: U32,
    pub(super) name: U64,
    pub(super) nonce: U64,
    proof: U64,
}

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

    pub(super) fn is_ours(&self) -> bool {
        (self.magic, self.version) == (MAGIC, VERSION)
    }
}

impl Greeting {
    pub(super) fn welcome(challenge: u64) -> Self {
        Self { start: Start::new(STATUS_OK), reserved: 0.into(), challenge: challenge.into() }
    }

    pub(super) fn no_place() -> Self {
        Self { start: Start::new(STATUS_REFUSED), ..Self::welcome(0) }
    }
}

impl Request {
    pub(super) fn new(secret: BlobSecret, asked: &Asked) -> Self {
        let (name, nonce, proof) = (secret.request_name(), asked.nonce, secret.request_proof(asked));
        let (start, reserved) = (Start::new(OPERATION_FETCH), 0.into());
        Self { start, reserved, name: name.into(), nonce: nonce.into(), proof: proof.into() }
    }

    /// Whether the client knows the id. `next` describes the connection before this request.
    pub(super) fn is_proved(&self, secret: BlobSecret, next: &Asked) -> bool {
        secret.request_proof(&Asked { nonce: self.nonce.get(), ..*next }) == self.proof.get()
    }
}

impl Answer {
    /// Announces `length` bytes and proves that the server knows the id.
    pub(super) fn here(length: u32, proof: u64) -> Self {
        Self { start: Start::new(STATUS_OK), length: length.into(), proof: proof.into() }
    }

    pub(super) fn not_here() -> Self {
        Self { start: Start::new(STATUS_REFUSED), ..Self::here(0, 0) }
    }
}
