//! The packet structures, field for field as `dataplane/include/midflight/reads_wire.h` lays them out, which says more of each
//! field.

use super::Operation;
use crate::{Address, Header};
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// READ, WRITE and their replies: what the switch rewrites in place.
    pub struct Request {
        /// `epoch`: between switch and replica the low half of the set's incarnation, which others do not know.
        pub header: Header,
        /// Room for a signature over what no hop changes.
        pub end_to_end_tag: U64,
        /// Which request of this client; an answer repeats it.
        pub request: U64,
        /// SID: term and number.
        pub sid: U64,
        /// SEQ of this WRITE, or of the last WRITE to the key group.
        pub seq: U64,
        /// LOG_IDX: what a replica must have applied, or what closes the key group.
        pub index: U64,
        /// Half of the key's hash; its top bits choose the key group.
        pub hash: U32,
        /// Which replica set.
        pub set: U16,
        pub key_length: U16,
        /// From the client its cookie; from the switch on, where the answer goes.
        pub client: Address,
        /// WRITE_REPLY: a bit for each replica that has `index`.
        pub replicas: u8,
        /// The replica that this is for, or from.
        pub slot: u8,
        pub status: u8,
        pub flags: u8,
    }

    /// What follows [`Request`] in a WRITE; then the key, then the arguments.
    pub struct Write {
        /// The client's id: the log index of the entry that opened it.
        pub client: U64,
        /// Counts the client's writes up: a repeat has the same (R3).
        pub number: U64,
        /// CAS: bytes of the expected value.
        pub expected_length: U32,
        pub command: u8,
        pub reserved: [u8; 3],
    }

    /// replica → switch: which incarnation is it, and what is the time there?
    pub struct Hello {
        pub header: Header,
        /// That of the last STATE that came from there, which proves who asks; 0: none has come.
        pub incarnation: U64,
        /// Its time.
        pub echo: U64,
        pub set: U16,
        /// The sender's place in the set.
        pub slot: u8,
        pub reserved: [u8; 5],
    }

    /// A replica in a HEARTBEAT, at its place.
    pub struct Replica {
        /// Port 0: no replica has this place, or the leader does not take it for alive.
        pub address: Address,
        /// Its share of the reads of stable key groups.
        pub weight: u8,
        pub reserved: [u8; 3],
        /// Its log is the leader's up to this index.
        pub matched: U64,
    }

    /// leader → switch: the session begins, or goes on; [`Replica`] records follow.
    pub struct Heartbeat {
        pub header: Header,
        /// Another one is refused.
        pub incarnation: U64,
        pub sid: U64,
        /// s: the index of the session's entry.
        pub start: U64,
        /// The time of the last STATE that came: the lease ends a fixed time after it.
        pub echo: U64,
        pub set: U16,
        /// Its slot.
        pub leader: u8,
        /// The set has 2^this key groups.
        pub kgroup_bits: u8,
        /// 1: no write has been under way for a while.
        pub is_idle: u8,
        /// 1: a READ goes to any replica that has a weight, whatever is under way.
        pub any_replica: u8,
        pub reserved: [u8; 2],
    }

    /// leader → switch: this session ends, and all lower ones.
    pub struct EndSession {
        pub header: Header,
        pub incarnation: U64,
        pub sid: U64,
        pub set: U16,
        /// The sender's place in the set.
        pub slot: u8,
        pub reserved: [u8; 5],
    }

    /// switch → replica: the answer to HELLO, HEARTBEAT and END_SESSION.
    pub struct State {
        pub header: Header,
        /// Drawn when the set was added to this switch: another one means that all state was lost.
        pub incarnation: U64,
        /// The present or last session; 0: none.
        pub sid: U64,
        /// The highest SID that END_SESSION has ended here.
        pub ended: U64,
        /// The time here, nanoseconds.
        pub now: U64,
        /// Nanoseconds that are left of the lease; 0: inactive.
        pub lease: U64,
        /// The last SEQ of the session.
        pub seq: U64,
        pub set: U16,
        /// A leader with another number does not work with this switch.
        pub kgroup_bits: u8,
        /// Counts the requests with [`FLAG_UNSERVED`](super::FLAG_UNSERVED) that had INACTIVE as their answer.
        pub unserved: u8,
        /// T of the set here: nor does a leader with another one.
        pub lease_us: U32,
        /// READs sent to each replica since the session began.
        pub sent: [U32; super::REPLICAS_MAX],
        /// READ_REPLYs that came from it.
        pub answered: [U32; super::REPLICAS_MAX],
    }
}

fixed_parts! { Hello Heartbeat EndSession State }

impl Request {
    /// A request or reply with this operation in its header; all other fields are zero.
    #[must_use]
    pub fn new(operation: Operation) -> Self {
        let mut request = Self::new_zeroed();
        request.header = Header::new(operation, 0, 0);
        request
    }
}
