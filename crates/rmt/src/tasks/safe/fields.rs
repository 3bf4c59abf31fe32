//! The header fields of the safe queue's packets, and the metadata that its stages pass to later ones.

use super::Config;
use crate::{Builder, Field, Match, Width};

/// What a packet is: the field `op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// client → switch: tasks.
    Submit = 1,
    /// executor → switch: wants a task.
    Retrieve = 2,
    /// switch → switch: a search. It carries a task that needs a place, and an executor that needs a task. The parser accepts
    /// it from the recirculation port only.
    Swap = 3,
    /// switch → switch: the rest of a SUBMIT. Likewise.
    Rest = 4,
    /// switch → executor: a task.
    Assign = 6,
    /// switch → executor: no task.
    NoOp = 7,
    /// switch → client: which tasks were taken, which were not.
    SubmitAck = 8,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Submit, Self::Retrieve, Self::Swap, Self::Rest, Self::Assign, Self::NoOp, Self::SubmitAck];

    fn name(self) -> &'static str {
        match self {
            Self::Submit => "SUBMIT",
            Self::Retrieve => "RETRIEVE",
            Self::Swap => "SWAP",
            Self::Rest => "REST",
            Self::Assign => "ASSIGN",
            Self::NoOp => "NO_OP",
            Self::SubmitAck => "SUBMIT_ACK",
        }
    }

    /// Numbers and names, for tables to read.
    fn names() -> [(u32, &'static str); 7] {
        Self::ALL.map(|kind| (kind as u32, kind.name()))
    }

    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// Why a task was not taken: the field `why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Why {
    /// The level's queue was full.
    Full = 1,
    /// There is no such level.
    Level = 2,
}

/// The header fields. A packet has all of them; those that its kind does not name mean nothing.
#[derive(Clone, Debug)]
pub struct Fields {
    /// [`Kind`].
    pub op: Field,
    /// The receiver of the answer: the client of a SUBMIT, else the executor. The source of the IP packet.
    pub address: Field,
    /// Its UDP port, upper and lower byte.
    pub port: [Field; 2],
    /// The requester's own number of the request; the answer carries it.
    pub sequence: Field,
    /// UID of a SUBMIT, of its tasks.
    pub uid: Field,
    /// JID, likewise.
    pub jid: Field,
    /// How many records, 1 to 32; in REST and SUBMIT_ACK those left.
    pub tasks: Field,
    /// The first record's bit in the next two.
    pub bit: Field,
    /// The tasks that were taken; the lowest bit is the first task.
    pub taken: Field,
    /// Those that were not.
    pub refused: Field,
    /// [`Why`], of the last that was not.
    pub why: Field,
    /// TID, the first record's, or the one task's that the packet carries.
    pub tid: Field,
    /// TPRIO, 1 (the highest) to the number of levels.
    pub tprio: Field,
    /// TRSRC.
    pub trsrc: Field,
    /// TDESC: function id and inline argument, as many words as the program has.
    pub tdesc: Vec<Field>,
    /// How often the client has submitted the task before, the first record's, or the one task's that the packet carries.
    pub attempt: Field,
    /// Bytes of the inline argument, likewise.
    pub argument_length: Field,
    /// The number, in its SUBMIT, of the last record that was taken or refused, from 0, and 255 before the first; of the one task that
    /// the packet carries, its own.
    pub index: Field,
    /// The address of the task's client, in ASSIGN and SWAP.
    pub client_ip: Field,
    /// Its port, upper and lower byte.
    pub client_port: [Field; 2],
    /// EXEC_RSRC: what the executor has.
    pub exec_rsrc: Field,
    /// MIN_LEVEL of a RETRIEVE: the first level at which it looks; the level of a SWAP.
    pub level: Field,
    /// SWAP_IDX: with which entry a SWAP is exchanged next.
    pub swap_idx: Field,
    /// The value of `credit` that a REST carries.
    pub credit: Field,
    /// The level of that value; 0: the REST carries none.
    pub credit_of: Field,
    pub(super) inside: Inside,
}

/// Metadata.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    /// What the packet is doing, and its level: [`role`].
    pub(super) role: Field,
    /// `accepted` may not go beyond this.
    pub(super) limit: Field,
    /// `accepted` as it was.
    pub(super) number: Field,
    /// `add_ptr` as a SWAP found it.
    pub(super) add: Field,
    /// The pointer to the entry that this packet is about.
    pub(super) at: Field,
    /// Which of two levels gave a task: 1 or 2; 0: none.
    pub(super) found: [Field; 2],
    /// The resources that the task needs and the executor does not have.
    pub(super) missing: Field,
}

/// What a packet is doing. The lowest two bits of the field are the level, from 0.
pub(super) mod role {
    /// A task is to be queued; the limit is the lagging copy.
    pub(in super::super) const SUBMIT: u32 = 1;
    /// A task is to be queued; the limit is the value of `credit` that the packet has read, or a newer one.
    pub(in super::super) const REST: u32 = 2;
    /// A task of a level that does not exist.
    pub(in super::super) const REFUSE: u32 = 3;
    /// An executor wants a task of this level or a lower one; behind the counts: there is none.
    pub(in super::super) const RETRIEVE: u32 = 4;
    /// A search within the queue.
    pub(in super::super) const SWAP: u32 = 5;
    /// A task was taken in, and is written.
    pub(in super::super) const STORE: u32 = 6;
    /// A search is at the tail, where its task is written.
    pub(in super::super) const PLACE: u32 = 7;
    /// An executor takes the head.
    pub(in super::super) const TAKE: u32 = 8;
    /// A search during which the queue ran empty: [`SWAP`] with one more bit.
    pub(in super::super) const AGAIN: u32 = SWAP | 8;
}

/// This role at this level.
pub(super) fn at_level(role: u32, level: u32) -> u32 {
    role << 2 | level
}

/// This role at any level.
pub(super) fn any_level(role: u32) -> Match {
    Match::Masked { mask: 0xFC, value: role << 2 }
}

/// The words of TDESC.
const TDESC: [&str; 5] = ["function", "argument", "argument_2", "argument_3", "argument_4"];

impl Fields {
    pub(super) fn declare(b: &mut Builder, config: Config) -> Self {
        use Width::{W8, W32};
        let fields = Self {
            op: b.header("op", W8),
            address: b.header("address", W32),
            port: ["port_high", "port_low"].map(|name| b.header(name, W8)),
            sequence: b.header("sequence", W32),
            uid: b.header("uid", W32),
            jid: b.header("jid", W32),
            tasks: b.header("tasks", W8),
            bit: b.header("bit", W32),
            taken: b.header("taken", W32),
            refused: b.header("refused", W32),
            why: b.header("why", W8),
            tid: b.header("tid", W32),
            tprio: b.header("tprio", W8),
            trsrc: b.header("trsrc", W8),
            tdesc: TDESC[..=config.words as usize].iter().map(|name| b.header(*name, W32)).collect(),
            attempt: b.header("attempt", W8),
            argument_length: b.header("argument_length", W8),
            index: b.header("index", W8),
            client_ip: b.header("client_ip", W32),
            client_port: ["client_port_high", "client_port_low"].map(|name| b.header(name, W8)),
            exec_rsrc: b.header("exec_rsrc", W8),
            level: b.header("level", W8),
            swap_idx: b.header("swap_idx", W32),
            credit: b.header("credit", W32),
            credit_of: b.header("credit_of", W8),
            inside: Inside {
                role: b.metadata("role", W8),
                limit: b.metadata("limit", W32),
                number: b.metadata("number", W32),
                add: b.metadata("add", W32),
                at: b.metadata("at", W32),
                found: ["found12", "found34"].map(|name| b.metadata(name, W8)),
                missing: b.metadata("missing", W8),
            },
        };
        fields.name_values(b);
        b.record(&fields.record());
        fields
    }

    /// The fields of a task in a SUBMIT.
    fn record(&self) -> Vec<Field> {
        [&[self.tid, self.tprio, self.trsrc, self.attempt, self.argument_length], &self.tdesc[..]].concat()
    }

    fn name_values(&self, b: &mut Builder) {
        b.name_values(self.op, &Kind::names());
        b.name_values(self.why, &[(Why::Full as u32, "FULL"), (Why::Level as u32, "LEVEL")]);
        let roles = [
            (role::SUBMIT, "SUBMIT"),
            (role::REST, "REST"),
            (role::REFUSE, "REFUSE"),
            (role::RETRIEVE, "RETRIEVE"),
            (role::SWAP, "SWAP"),
            (role::STORE, "STORE"),
            (role::PLACE, "PLACE"),
            (role::TAKE, "TAKE"),
            (role::AGAIN, "AGAIN"),
        ];
        b.name_values(self.inside.role, &roles.map(|(role, name)| (at_level(role, 0), name)));
    }
}
