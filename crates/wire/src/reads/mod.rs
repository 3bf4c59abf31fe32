//! The packet formats of the reads program.
//!
//! [`layout`](Request) holds the structures, byte for byte as in `dataplane/include/midflight/reads_wire.h`; [`parse`] reads a
//! datagram into a [`Packet`] or says why it is none; [`key_hash`] is the frozen mapping of keys.

mod hash;
mod layout;
mod parse;

pub use hash::{hashed_part, key_hash};
pub use layout::*;
pub use parse::{Packet, parse};

/// Replicas of a set: one bit each in a bitmap.
pub const REPLICAS_MAX: usize = 8;
/// A set has up to 2^20 key groups.
pub const KGROUP_BITS_MAX: u8 = 20;
/// Bytes of a key.
pub const KEY_MAX: usize = 1024;
/// `slot`: no replica.
pub const NO_SLOT: u8 = 255;
/// `flags`, set by the switch: the key group is unstable, only the leader may answer.
pub const FLAG_LEADER_ONLY: u8 = 1;
/// `flags`, set by the client: the value is not wanted, only whether there is one.
pub const FLAG_EXISTS: u8 = 2;
/// `flags`, set by the switch: it does not know whether the replica is up to date; the replica's mode does.
pub const FLAG_ANY_REPLICA: u8 = 4;
/// `flags` of a READ, set by the client: the reply may come from an address that it does not know; left by the switch: the reply may go
/// to the client directly, and has the flag then.
pub const FLAG_DIRECT: u8 = 8;
/// `flags` of a reply to a client, set by the switch: READs may ask for direct replies.
pub const FLAG_OFFERS_DIRECT: u8 = 16;
/// Set by a client in a request: for a while, each switch that answers it has had no session.
pub const FLAG_UNSERVED: u8 = 32;
/// Bytes that key and arguments of a WRITE may have together. A value that was written fits a READ_REPLY with its key.
pub const DATA_MAX: usize = crate::PACKET_MAX - size_of::<Request>() - size_of::<Write>();

codes! {
    /// What a packet is for.
    Operation {
        /// client → switch → replica: the value of a key.
        Read = 1,
        /// replica → switch → client: this one.
        ReadReply = 2,
        /// client → switch → leader: a command that changes data.
        Write = 3,
        /// leader → switch → client: what came of it.
        WriteReply = 4,
        /// replica → switch: which incarnation, and what time?
        Hello = 5,
        /// leader → switch: the session begins, or goes on.
        Heartbeat = 6,
        /// leader → switch: the session ends.
        EndSession = 7,
        /// switch → replica: how it stands with the set.
        State = 8,
    }

    /// What became of a request.
    Status {
        /// It is done; the value follows, if the command has one.
        Done = 0,
        /// There is no such key.
        NotFound = 1,
        /// CAS: the key has another value, which follows.
        Conflict = 2,
        /// INCR: the value is no number of 64 bits, or the sum is none.
        NotANumber = 3,
        /// Of the switch: repeat it with this cookie.
        Cookie = 4,
        /// Of the switch: it has no session of this set.
        Inactive = 5,
        /// Of the switch: it serves no such set.
        UnknownSet = 6,
        /// Of a replica: the request is of a session that it does not lead.
        NotLeader = 7,
        /// Of the leader: a later write of the key group came first.
        Reordered = 8,
        /// The hash is not the key's.
        BadHash = 9,
        /// The client's id is not, or not any more.
        UnknownClient = 10,
        /// The client has begun a later write since.
        Stale = 11,
        /// A queue of the replica is full.
        Busy = 12,
        /// The result would exceed what a value may have.
        TooLarge = 13,
        /// No room for another client id.
        ClientsFull = 14,
        /// A command that does not exist, or with arguments that it does not take.
        BadRequest = 15,
        /// Of a follower, to the switch: it does not have LOG_IDX.
        Behind = 16,
        /// The store has as many bytes as it may.
        Full = 17,
        /// No majority of the replicas has room on its disk.
        DiskFull = 18,
    }

    /// What a WRITE does.
    Command {
        /// A new client id, the value of the answer.
        Open = 1,
        /// Sets a value.
        Put = 2,
        /// Removes a key.
        Delete = 3,
        /// Sets a value if the present one is as expected.
        Cas = 4,
        /// Adds to a number.
        Incr = 5,
    }
}
