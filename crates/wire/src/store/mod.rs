//! The packet formats of the store.
//!
//! [`layout`](Request) has the structures of `dataplane/include/midflight/store_wire.h`. [`parse`] reads a datagram into a
//! [`Packet`]. [`key_hash`] is the fixed mapping of keys. `scan` has the pages of a SCAN, `piece` the
//! pieces of a value.

mod hash;
mod layout;
mod parse;
mod piece;
mod scan;

pub use hash::{hashed_part, key_hash};
pub use layout::*;
pub use parse::{Packet, parse};
pub use piece::{PlaceInValue, ValuePiece, piece_room};
pub use scan::{Cursor, Page, PageWriter, scan_order};

/// Replicas of a set; a bitmap has one bit for each.
pub const REPLICAS_MAX: usize = 8;
/// Largest binary logarithm of a set's number of key groups.
pub const KGROUP_BITS_MAX: u8 = 20;
/// Longest key, in bytes.
pub const KEY_MAX: usize = 1024;
/// `slot` for no replica.
pub const NO_SLOT: u8 = 255;
/// `flags`, set by the switch: the key group is unstable, so only the leader may answer.
pub const FLAG_LEADER_ONLY: u8 = 1;
/// `flags`, set by the client: it only asks whether the key has a value.
pub const FLAG_EXISTS: u8 = 2;
/// `flags`, set by the switch: the replica decides by its mode whether it is current; the switch does not know.
pub const FLAG_ANY_REPLICA: u8 = 4;
/// `flags` of a READ: the client accepts a reply from an unknown address. The switch keeps it if the replica may reply directly;
/// the reply then has it too.
pub const FLAG_DIRECT: u8 = 8;
/// `flags` of a reply to a client, set by the switch: READs may ask for direct replies.
pub const FLAG_OFFERS_DIRECT: u8 = 16;
/// `flags`, set by the client: every switch that answered it recently had no session.
pub const FLAG_UNSERVED: u8 = 32;
/// `flags`, set by the client: a SCAN, whose key is a [`Cursor`].
pub const FLAG_SCAN: u8 = 64;
/// `flags`, set by the client: a READ of a piece of a value, whose key is a [`PlaceInValue`].
pub const FLAG_PIECE: u8 = 128;
/// `flags` of a client that reach the replica, and return with its reply.
pub const FLAGS_KEPT: u8 = FLAG_EXISTS | FLAG_SCAN | FLAG_PIECE;
/// `flags` of an [`Update`]: the reply has the value before.
pub const UPDATE_RETURNS_VALUE: u8 = 1;
/// `flags` of a [`Step`]: unless its condition holds at the beginning, no step runs.
pub const STEP_REQUIRED: u8 = 1;
/// Longest value, in bytes.
pub const VALUE_MAX: usize = 8 << 20;
/// Bytes of key and arguments together in a WRITE. A written value thus fits a READ_REPLY with its key.
pub const DATA_MAX: usize = crate::PACKET_MAX - size_of::<Request>() - size_of::<Write>();

codes! {
    /// The purpose of a packet.
    Operation {
        /// client → switch → replica: read the value of a key.
        Read = 1,
        /// replica → switch → client: the value.
        ReadReply = 2,
        /// client → switch → leader: a command that changes data.
        Write = 3,
        /// leader → switch → client: the outcome.
        WriteReply = 4,
        /// replica → switch: asks for incarnation and time.
        Hello = 5,
        /// leader → switch: begins or continues a session.
        Heartbeat = 6,
        /// leader → switch: ends a session.
        EndSession = 7,
        /// switch → replica: the state of the set.
        State = 8,
    }

    /// Outcome of a request.
    Status {
        /// Done; the value follows if the command returns one.
        Done = 0,
        /// The key does not exist.
        NotFound = 1,
        /// CAS and CREATE: the key has another value, which follows. UPDATE: its condition does not hold.
        Conflict = 2,
        /// INCR and UPDATE: the value or the sum is not a 64-bit number.
        NotANumber = 3,
        /// From the switch: repeat the request with this cookie.
        Cookie = 4,
        /// From the switch: the set has no session here.
        Inactive = 5,
        /// From the switch: it does not serve this set.
        UnknownSet = 6,
        /// From a replica: it does not lead the request's session.
        NotLeader = 7,
        /// From the leader: a later write of the key group arrived first.
        Reordered = 8,
        /// The hash does not match the key.
        BadHash = 9,
        /// The client's id is unknown or expired.
        UnknownClient = 10,
        /// The client has since begun a later write.
        Stale = 11,
        /// A queue of the replica is full.
        Busy = 12,
        /// The result would exceed a value's bound.
        TooLarge = 13,
        /// The table of client ids is full.
        ClientsFull = 14,
        /// An undefined command, or invalid arguments.
        BadRequest = 15,
        /// From a follower to the switch: it has not applied LOG_IDX.
        Behind = 16,
        /// The store has reached its bound of bytes.
        Full = 17,
        /// No majority of the replicas has room on its disk.
        DiskFull = 18,
        /// READ: a piece of the value follows.
        Piece = 19,
        /// UPDATE: the staged value is not there, or not whole.
        NotStaged = 20,
        /// A write whose reply would have the value before, which does not fit. It did not run.
        TooLong = 21,
    }

    /// Command of a WRITE.
    Command {
        /// Opens a client id and returns it.
        Open = 1,
        /// Sets a value.
        Put = 2,
        /// Removes a key.
        Delete = 3,
        /// Sets a value if the current one is as expected.
        Cas = 4,
        /// Adds to a number.
        Incr = 5,
        /// Sets the value of a key that does not exist.
        Create = 6,
        /// Changes value and expiry if a condition holds.
        Update = 7,
        /// Keeps a part of a value, for an update.
        Stage = 8,
        /// Updates several keys with the same hash in one step.
        Transact = 9,
    }

    /// `condition` of an [`Update`].
    ConditionCode {
        /// None.
        Always = 0,
        /// The key does not exist.
        Absent = 1,
        /// The key exists.
        Present = 2,
        /// The key has the expected value, which follows.
        Equals = 3,
        /// The key has expired.
        Due = 4,
        /// The key exists and does not expire.
        Lasting = 5,
        /// The key exists and expires.
        Expiring = 6,
        /// The key would expire later than it does.
        Later = 7,
        /// The key would expire earlier than it does.
        Earlier = 8,
        /// The key has this revision, which follows.
        Unchanged = 9,
    }

    /// `change` of an [`Update`].
    ChangeCode {
        /// The value stays.
        Keep = 0,
        /// The value is replaced by the last argument.
        Set = 1,
        /// The last argument is appended.
        Append = 2,
        /// The key is removed.
        Remove = 3,
        /// `addend` is added.
        Add = 4,
        /// The value is replaced by the one that is staged under the number `addend`.
        SetStaged = 5,
        /// The value that is staged under the number `addend` is appended.
        AppendStaged = 6,
    }

    /// `expiry` of an [`Update`].
    ExpiryCode {
        /// The expiry stays.
        Keep = 0,
        /// The key does not expire.
        Never = 1,
        /// The key expires `after` milliseconds from now.
        After = 2,
    }
}
