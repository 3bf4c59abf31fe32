//! The header fields of the safe queue's packets, and the metadata between stages.

use super::Config;
use crate::Width::{W8, W32};
use crate::{Builder, Compare, Field, Match};

kinds! {
    /// client → switch: tasks.
    Submit = 1, "SUBMIT";
    /// executor → switch: wants a task.
    Retrieve = 2, "RETRIEVE";
    /// switch → switch: a search. It carries a task that needs a place, and an executor that needs a task. The parser accepts it from the
    /// recirculation port only.
    Swap = 3, "SWAP";
    /// switch → switch: the rest of a SUBMIT. Accepted likewise.
    Rest = 4, "REST";
    /// switch → executor: a task.
    Assign = 6, "ASSIGN";
    /// switch → executor: no task.
    NoOp = 7, "NO_OP";
    /// switch → client: the tasks taken and refused.
    SubmitAck = 8, "SUBMIT_ACK";
}

/// Why a task was refused: the field `why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Why {
    /// The level's queue was full.
    Full = 1,
    /// There is no such level.
    Level = 2,
}

fields! {
    /// The header fields. Every packet has all of them; those that its kind does not use are undefined.
    pub struct Fields(b, config) {
        /// [`Kind`].
        pub op: Field = b.header("op", W8),
        /// The receiver of the answer: the client of a SUBMIT, else the executor. The source of the IP packet.
        pub address: Field = b.header("address", W32),
        /// Its UDP port, upper and lower byte.
        pub port: [Field; 2] = ["port_high", "port_low"].map(|name| b.header(name, W8)),
        /// The requester's number of the request, repeated in the answer.
        pub sequence: Field = b.header("sequence", W32),
        /// UID of a SUBMIT's tasks.
        pub uid: Field = b.header("uid", W32),
        /// JID of a SUBMIT's tasks.
        pub jid: Field = b.header("jid", W32),
        /// Number of records, 1 to 32; in REST and SUBMIT_ACK those left.
        pub tasks: Field = b.header("tasks", W8),
        /// The first record's bit in the next two.
        pub bit: Field = b.header("bit", W32),
        /// The accepted tasks; the lowest bit is the first task.
        pub taken: Field = b.header("taken", W32),
        /// The refused tasks.
        pub refused: Field = b.header("refused", W32),
        /// [`Why`] of the last refused task.
        pub why: Field = b.header("why", W8),
        /// TID of the first record, or of the task that the packet carries.
        pub tid: Field = b.header("tid", W32),
        /// TPRIO, 1 (the highest) to the number of levels.
        pub tprio: Field = b.header("tprio", W8),
        /// TRSRC.
        pub trsrc: Field = b.header("trsrc", W8),
        /// TDESC: function id and inline argument, as many words as the program has.
        pub tdesc: Vec<Field> = TDESC[..=config.words as usize].iter().map(|name| b.header(*name, W32)).collect(),
        /// The client's earlier submissions of the first record, or of the task that the packet carries.
        pub attempt: Field = b.header("attempt", W8),
        /// Bytes of the inline argument, likewise.
        pub argument_length: Field = b.header("argument_length", W8),
        /// The number, in its SUBMIT, of the last record taken or refused, from 0, and 255 before the first; for the task that the packet
        /// carries, its own number.
        pub index: Field = b.header("index", W8),
        /// The address of the task's client, in ASSIGN and SWAP.
        pub client_ip: Field = b.header("client_ip", W32),
        /// Its port, upper and lower byte.
        pub client_port: [Field; 2] = ["client_port_high", "client_port_low"].map(|name| b.header(name, W8)),
        /// EXEC_RSRC: the executor's resources.
        pub exec_rsrc: Field = b.header("exec_rsrc", W8),
        /// MIN_LEVEL of a RETRIEVE: its first level; the level of a SWAP.
        pub level: Field = b.header("level", W8),
        /// SWAP_IDX: the entry that a SWAP exchanges next.
        pub swap_idx: Field = b.header("swap_idx", W32),
        /// The value of `credit` that a REST carries.
        pub credit: Field = b.header("credit", W32),
        /// The level of that value; 0: the REST carries none.
        pub credit_of: Field = b.header("credit_of", W8),
        pub(super) inside: Inside = Inside::declared(b, config),
    }
}

fields! {
    pub(super) struct Inside(b, _config) {
        /// The packet's role and level: [`role`].
        pub(super) role: Field = b.metadata("role", W8),
        /// The bound of `accepted`.
        pub(super) limit: Field = b.metadata("limit", W32),
        /// `accepted` before the packet.
        pub(super) number: Field = b.metadata("number", W32),
        /// `add_ptr` as a SWAP found it.
        pub(super) add: Field = b.metadata("add", W32),
        pub(super) at: Field = b.metadata("at", W32),
        /// Which of two levels gave a task: 1 or 2; 0: none.
        pub(super) found: [Field; 2] = ["found12", "found34"].map(|name| b.metadata(name, W8)),
        /// Required resources that the executor lacks.
        pub(super) missing: Field = b.metadata("missing", W8),
    }
}

values! {
    /// A packet's role. The lowest two bits of the field are the level, from 0.
    role {
        /// Queue a task; the limit is the lagging copy.
        SUBMIT = 1,
        /// Queue a task; the limit is the packet's value of `credit`, or a newer one.
        REST = 2,
        /// A task of a level that does not exist.
        REFUSE = 3,
        /// An executor wants a task of this level or a lower one; after the counts: there is none.
        RETRIEVE = 4,
        /// A search within the queue.
        SWAP = 5,
        /// A task was accepted, and is written.
        STORE = 6,
        /// A search is at the tail, where its task is written.
        PLACE = 7,
        /// An executor takes the head.
        TAKE = 8,
        /// A search during which the queue ran empty: [`SWAP`] with one more bit.
        AGAIN = SWAP | 8,
    }
}

pub(super) fn at_level(role: u32, level: u32) -> u32 {
    role << 2 | level
}

pub(super) fn any_level(role: u32) -> Match {
    Match::Masked { mask: 0xFC, value: role << 2 }
}

/// True for packets of this role, at any level. A gateway, because keys are not enough for two tables that access one register.
#[track_caller]
pub(super) fn plays(fields: &Fields, role: u32) -> Compare {
    fields.inside.role.masked(0xFC, role << 2)
}

#[track_caller]
pub(super) fn plays_other(fields: &Fields, role: u32) -> Compare {
    fields.inside.role.masked_not(0xFC, role << 2)
}

const TDESC: [&str; 5] = ["function", "argument", "argument_2", "argument_3", "argument_4"];

impl Fields {
    pub(super) fn declare(b: &mut Builder, config: Config) -> Self {
        let fields = Self::declared(b, config);
        b.name_values(fields.op, Kind::NAMES);
        b.name_values(fields.why, &[(Why::Full as u32, "FULL"), (Why::Level as u32, "LEVEL")]);
        let roles: Vec<_> = role::NAMES.iter().map(|&(role, name)| (at_level(role, 0), name)).collect();
        b.name_values(fields.inside.role, &roles);
        b.record(&fields.record());
        fields
    }

    fn record(&self) -> Vec<Field> {
        [&[self.tid, self.tprio, self.trsrc, self.attempt, self.argument_length], &self.tdesc[..]].concat()
    }
}
