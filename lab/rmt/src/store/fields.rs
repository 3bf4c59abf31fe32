//! The packets' header fields, and the metadata between stages.
//!
//! A replica is a bit: the lowest is slot 0. So a set of replicas and a single one use the same kind of field.

use super::Config;
use crate::Width::{W8, W16, W32};
use crate::{Builder, Field};
use std::array::from_fn;

/// Replicas of a set.
pub const REPLICAS: usize = 8;

kinds! {
    /// client → replica.
    Read = 1, "READ";
    /// replica → client.
    ReadReply = 2, "READ_REPLY";
    /// client → leader.
    Write = 3, "WRITE";
    /// leader → client.
    WriteReply = 4, "WRITE_REPLY";
    /// controller → switch: a session begins, or a HEARTBEAT extends it. The parser accepts it from the controller's port only.
    Session = 16, "SESSION";
    /// controller → switch: the session has ended. Accepted likewise.
    End = 17, "END";
}

fields! {
    /// The header fields. Every packet has all of them; those that its kind does not use are undefined.
    pub struct Fields(b, config) {
        /// [`Kind`]. A refused request leaves as its reply.
        pub op: Field = b.header("op", W8),
        /// The place of its set. The table of sets gives this and the next three.
        pub place: Field = b.header("place", W32),
        /// The set has 2^this key groups.
        pub bits: Field = b.header("bits", W8),
        /// 1: `reply_check = "relaxed"`.
        pub relaxed: Field = b.header("relaxed", W8),
        /// 1: the policy avoids the leader.
        pub avoid: Field = b.header("avoid", W8),
        /// The time, in the switch's units; in SESSION and END the end of the lease.
        pub now: Field = b.header("now", W32),
        /// A random number.
        pub lot: Field = b.header("lot", W32),
        /// SID: term, number.
        pub sid: [Field; 2] = ["sid_term", "sid_number"].map(|name| b.header(name, W32)),
        /// The upper half of SEQ.
        pub seq_high: Field = b.header("seq_high", W32),
        /// The lower half of SEQ, the only one that the switch counts with.
        pub seq: Field = b.header("seq", W32),
        /// The upper half of LOG_IDX, and of s in SESSION.
        pub index_high: Field = b.header("index_high", W32),
        /// The lower half of LOG_IDX.
        pub index: Field = b.header("index", W32),
        /// The upper half of the key's hash.
        pub hash: Field = b.header("hash", W32),
        /// The port of `client`; 0: a reply without a client.
        pub client_port: Field = b.header("client_port", W16),
        /// WRITE_REPLY: the replicas that have the index. SESSION: those with an address and a weight.
        pub replicas: Field = b.header("replicas", W8),
        /// The replica that a reply comes from; in SESSION the leader.
        pub from: Field = b.header("from", W8),
        /// The destination replica; 0: the client.
        pub to: Field = b.header("to", W8),
        /// `status`, as on the wire.
        pub status: Field = b.header("status", W8),
        /// `flags`, as on the wire.
        pub flags: Field = b.header("flags", W8),
        /// How much of the packet is cut off: [`Cut`](super::Cut).
        pub cut: Field = b.header("cut", W8),
        /// Outcome: [`Did`](super::Did). In a switch the counter of an entry of `route`.
        pub did: Field = b.header("did", W8),
        /// SESSION: 1: it begins.
        pub begins: Field = b.header("begins", W8),
        /// SESSION: 1: no write for a while.
        pub idle: Field = b.header("idle", W8),
        /// SESSION: the number that key groups store for it.
        pub generation: Field = b.header("generation", W32),
        /// SESSION: one more than the lower half of each replica's index, and 0 below the session's.
        pub matched: [Field; REPLICAS] = from_fn(|slot| b.header(format!("matched_{slot}"), W32)),
        pub(super) inside: Inside = Inside::declared(b, config),
    }
}

fields! {
    pub(super) struct Inside(b, _config) {
        /// Kind of packet: [`kind`].
        pub(super) kind: Field = b.metadata("kind", W8),
        /// Handling of the packet: [`role`].
        pub(super) role: Field = b.metadata("role", W8),
        /// 1: the session's lease is valid.
        pub(super) active: Field = b.metadata("active", W8),
        pub(super) sid: [Field; 2] = ["own_term", "own_number"].map(|name| b.metadata(name, W32)),
        pub(super) start_high: Field = b.metadata("own_start_high", W32),
        pub(super) start: Field = b.metadata("own_start", W32),
        /// 0: the packet's SID has the session's term; the session's number; LOG_IDX has the upper half of s.
        pub(super) differs: [Field; 3] = ["term_differs", "number_differs", "high_differs"].map(|name| b.metadata(name, W32)),
        /// The session's last SEQ, before this packet.
        pub(super) last: Field = b.metadata("last", W32),
        /// 1: a reply's SEQ was never assigned.
        pub(super) beyond: Field = b.metadata("beyond", W8),
        pub(super) generation: Field = b.metadata("own_generation", W32),
        pub(super) leader: Field = b.metadata("leader", W8),
        /// The cell of the packet's key group.
        pub(super) cell: Field = b.metadata("cell", W32),
        /// The generation in which that cell was last written.
        pub(super) known: Field = b.metadata("known", W32),
        /// 1: in an earlier session. The entry counts as stable, SEQ 0, index s.
        pub(super) lazy: Field = b.metadata("lazy", W8),
        pub(super) group_seq: Field = b.metadata("group_seq", W32),
        pub(super) answered: Field = b.metadata("answered", W32),
        pub(super) at: Field = b.metadata("at", W32),
        /// 1: a reply's index is below it.
        pub(super) below: Field = b.metadata("below", W8),
        pub(super) stable: Field = b.metadata("is_stable", W8),
        /// 1: this replica's matched index is not below the key group's.
        pub(super) caught: [Field; REPLICAS] = from_fn(|slot| b.metadata(format!("caught_{slot}"), W8)),
        pub(super) consistent: Field = b.metadata("consistent", W8),
        /// Replicas with an address and a weight.
        pub(super) eligible: Field = b.metadata("eligible", W8),
        /// The same without the leader, while that is avoided.
        pub(super) wanted: Field = b.metadata("wanted", W8),
        /// Replicas that may answer.
        pub(super) all: Field = b.metadata("all", W8),
        /// Preferred ones of these.
        pub(super) few: Field = b.metadata("few", W8),
        /// The random selection of 3, of 5, of 6, of 7.
        pub(super) drawn: [Field; 4] = ["of_3", "of_5", "of_6", "of_7"].map(|name| b.metadata(name, W8)),
    }
}

values! {
    /// A packet's kind, from the packet alone.
    kind {
        /// READ
        READ = 1,
        /// WRITE
        WRITE = 2,
        /// A WRITE_REPLY that may close its key group.
        CLOSE = 3,
        /// NOT_LEADER or REORDERED: the write may still be in flight.
        NOTE = 4,
        /// The reply to a leader-only READ.
        LEADERS = 5,
        /// The same, with BEHIND, which a leader never is.
        LATE = 6,
        /// Another READ_REPLY.
        REPLY = 7,
        /// The same, from a replica that lacks LOG_IDX.
        BEHIND = 8,
        /// SESSION
        SESSION = 9,
        /// END
        END = 10,
    }
}

values! {
    /// Handling of the packet, from the session, later from the key group.
    role {
        /// To a replica.
        READ = 1,
        /// To the leader.
        WRITE = 2,
        /// INACTIVE.
        REFUSE = 3,
        /// Closes its key group, and goes to the client.
        CLOSE = 4,
        /// Marks a write as answered, and goes to the client.
        NOTE = 5,
        /// Goes to the client.
        PASS = 6,
        /// Goes to the client if it is the leader's, or if its SEQ is the key group's.
        CHECK = 7,
        /// The same with a SEQ that no key group has.
        ODD = 8,
        /// Turned back: to the leader.
        TURN = 9,
        /// To the client, which must retry.
        LATE = 10,
        /// From the controller.
        SESSION = 11,
        /// From the controller.
        END = 12,
    }
}

impl Fields {
    pub(super) fn declare(b: &mut Builder, config: Config) -> Self {
        let fields = Self::declared(b, config);
        b.name_values(fields.op, Kind::NAMES);
        b.name_values(fields.did, super::Did::NAMES);
        b.name_values(fields.inside.kind, kind::NAMES);
        b.name_values(fields.inside.role, role::NAMES);
        fields
    }
}
