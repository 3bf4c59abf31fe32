//! The packet structures, with the layout of `dataplane/include/midflight/store_wire.h`, which explains each field.

use super::Operation;
use crate::{Address, Header};
use zerocopy::byteorder::network_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// READ, WRITE and their replies, which the switch rewrites in place.
    pub struct Request {
        /// Between switch and replica, `epoch` is the low half of the set's incarnation, which is secret.
        pub header: Header,
        /// Reserved for a signature over what no hop changes.
        pub end_to_end_tag: U64,
        pub request: U64,
        /// SID: term and number.
        pub sid: U64,
        /// Of this WRITE, or of the last WRITE to the key group.
        pub seq: U64,
        /// LOG_IDX: the index that a replica must have applied, or that makes the key group stable.
        pub index: U64,
        /// Half of the key's hash; its top bits select the key group.
        pub hash: U32,
        pub set: U16,
        pub key_length: U16,
        /// From the client: its cookie. From the switch on: the address for the reply.
        pub client: Address,
        /// Of a WRITE_REPLY: replicas that have `index`.
        pub replicas: u8,
        pub slot: u8,
        pub status: u8,
        pub flags: u8,
    }

    /// Follows [`Request`] in a WRITE; the key and the arguments follow it.
    pub struct Write {
        /// The client's id: the log index of the entry that opened it.
        pub client: U64,
        /// Increases with each write of the client; a repeat has the same (R3).
        pub number: U64,
        /// Of CAS and UPDATE, in bytes.
        pub expected_length: U32,
        pub command: u8,
        pub reserved: [u8; 3],
    }

    /// First argument of UPDATE; the expected value and the new one follow.
    pub struct Update {
        /// Milliseconds until the key expires.
        pub after: U64,
        pub addend: I64,
        pub condition: u8,
        pub change: u8,
        pub expiry: u8,
        pub flags: u8,
        pub reserved: [u8; 4],
    }

    /// First part of a reply to UPDATE; the value before may follow.
    pub struct Updated {
        /// Milliseconds until the key expires; all bits set: it does not, or does not exist.
        pub left: U64,
        /// The sum, or the length of the value afterwards.
        pub number: I64,
        /// 1: the key existed before.
        pub existed: u8,
        pub reserved: [u8; 7],
    }

    /// A step of TRANSACT; its key, and what an UPDATE has, follow.
    pub struct Step {
        pub key_length: U16,
        /// Of the expected value.
        pub expected_length: U16,
        /// Of the new value.
        pub value_length: U16,
        pub flags: u8,
        pub reserved: u8,
    }

    /// What has become of a step; [`Updated`] and the value before, if it is wanted, follow.
    pub struct Stepped {
        pub value_length: U16,
        /// As of an UPDATE.
        pub status: u8,
        pub reserved: u8,
    }

    /// First part of a reply to SCAN; for each key its length and its bytes follow.
    pub struct Scanned {
        /// Order of the keys where the next page begins.
        pub next: U64,
        /// Keys of the whole store.
        pub all: U64,
        /// Keys of this order that are behind it.
        pub skip: U16,
        /// 1: this was the last page.
        pub is_last: u8,
        pub reserved: [u8; 5],
    }

    /// Precedes the key of a READ with [`FLAG_PIECE`](super::FLAG_PIECE), as a part of it.
    pub struct PieceOf {
        /// That of the pieces that the client has; 0: none.
        pub revision: U64,
        pub offset: U32,
        pub reserved: [u8; 4],
    }

    /// First part of a READ_REPLY with PIECE; the piece follows.
    pub struct Piece {
        /// Log index of the entry that last changed the key.
        pub revision: U64,
        /// Of the whole value.
        pub length: U32,
        pub offset: U32,
    }

    /// First argument of STAGE; the part follows.
    pub struct Stage {
        /// Random number of the value.
        pub staged: U64,
        /// Of the whole value.
        pub length: U32,
        pub offset: U32,
    }

    /// replica → switch: asks for the set's incarnation and the switch's time.
    pub struct Hello {
        pub header: Header,
        /// From the last STATE received, which proves that the sender received it; 0: none yet.
        pub incarnation: U64,
        pub echo: U64,
        pub set: U16,
        pub slot: u8,
        pub reserved: [u8; 5],
    }

    /// A replica, at its number's place in a HEARTBEAT.
    pub struct Replica {
        /// Port 0: there is no such replica, or the leader considers it dead.
        pub address: Address,
        /// Its weight for reads of stable key groups.
        pub weight: u8,
        pub reserved: [u8; 3],
        /// Its log matches the leader's up to this index.
        pub matched: U64,
    }

    /// leader → switch: begins or continues a session; [`Replica`] records follow.
    pub struct Heartbeat {
        pub header: Header,
        pub incarnation: U64,
        pub sid: U64,
        /// s: log index of the session's entry.
        pub start: U64,
        /// `now` of the last STATE received: the lease ends a fixed time after it.
        pub echo: U64,
        pub set: U16,
        pub leader: u8,
        pub kgroup_bits: u8,
        /// 1: no write has been in flight for a while.
        pub is_idle: u8,
        /// 1: a READ may go to any replica with a weight, whatever writes are in flight.
        pub any_replica: u8,
        pub reserved: [u8; 2],
    }

    /// leader → switch: ends this session and all lower ones.
    pub struct EndSession {
        pub header: Header,
        pub incarnation: U64,
        pub sid: U64,
        pub set: U16,
        pub slot: u8,
        pub reserved: [u8; 5],
    }

    /// switch → replica: the response to HELLO, HEARTBEAT and END_SESSION.
    pub struct State {
        pub header: Header,
        /// Random when the set is added to this switch; a new one means that its state was lost.
        pub incarnation: U64,
        /// The current or last session; 0: none.
        pub sid: U64,
        /// The highest SID that END_SESSION ended here.
        pub ended: U64,
        pub now: U64,
        /// Remaining lease in nanoseconds; 0: inactive.
        pub lease: U64,
        pub seq: U64,
        pub set: U16,
        /// A leader with another value does not use this switch.
        pub kgroup_bits: u8,
        /// Counts the requests with [`FLAG_UNSERVED`](super::FLAG_UNSERVED) that were answered INACTIVE.
        pub unserved: u8,
        /// T of the set; a leader with another value does not use this switch.
        pub lease_us: U32,
        pub sent: [U32; super::REPLICAS_MAX],
        pub answered: [U32; super::REPLICAS_MAX],
    }
}

fixed_parts! { Hello Heartbeat EndSession State }

impl Request {
    /// A request or reply with this operation; all other fields are zero.
    #[must_use]
    pub fn new(operation: Operation) -> Self {
        let mut request = Self::new_zeroed();
        request.header = Header::new(operation, 0, 0);
        request
    }
}
