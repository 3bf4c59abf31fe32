//! The header fields of the published queue's packets, and the metadata that its stages pass to later ones.

use super::Config;
use crate::{Builder, Field, Width};

/// What a packet is: the field `op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// client → switch: the job_submission packet.
    Submit = 1,
    /// executor → switch: wants a task.
    Retrieve = 2,
    /// switch → switch: a search. It carries a task that needs a place, and an executor that needs a task.
    Swap = 3,
    /// switch → switch: sets a pointer.
    Repair = 4,
    /// switch → switch: an executor is owed a no-op.
    OweNoOp = 5,
    /// switch → executor: the task_assignment packet.
    Assign = 6,
    /// switch → executor: no task.
    NoOp = 7,
    /// switch → client: these tasks were not taken.
    Full = 8,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Submit, Self::Retrieve, Self::Swap, Self::Repair, Self::OweNoOp, Self::Assign, Self::NoOp, Self::Full];

    fn name(self) -> &'static str {
        match self {
            Self::Submit => "SUBMIT",
            Self::Retrieve => "RETRIEVE",
            Self::Swap => "SWAP",
            Self::Repair => "REPAIR",
            Self::OweNoOp => "OWE_NO_OP",
            Self::Assign => "ASSIGN",
            Self::NoOp => "NO_OP",
            Self::Full => "FULL",
        }
    }

    /// Numbers and names, for tables to read.
    fn names() -> [(u32, &'static str); 8] {
        Self::ALL.map(|kind| (kind as u32, kind.name()))
    }

    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// The header's `ptr` of a REPAIR (listing 3): which pointer.
pub(super) mod pointer {
    pub(in super::super) const ADD: u32 = 1;
    pub(in super::super) const RETRIEVE: u32 = 2;
}

/// The header fields. A packet has all of them; those that its kind does not name are zero.
#[derive(Clone, Debug)]
pub struct Fields {
    /// [`Kind`].
    pub op: Field,
    /// The receiver of the answer: the client of a SUBMIT, else the executor. The source of the IP packet.
    pub address: Field,
    /// Its UDP port.
    pub port: Field,
    /// UID of a SUBMIT, of its tasks.
    pub uid: Field,
    /// JID, likewise.
    pub jid: Field,
    /// #TASKS: how many records.
    pub tasks: Field,
    /// TID, the first record's, or the one task's that the packet carries.
    pub tid: Field,
    /// TPRIO, 1 (the highest) to the number of levels.
    pub tprio: Field,
    /// TRSRC, a byte; its word's upper byte is zero.
    pub trsrc: Field,
    /// TDESC.
    pub tdesc: Vec<Field>,
    /// The address of the task's client, in ASSIGN and SWAP.
    pub client_ip: Field,
    /// Its port.
    pub client_port: Field,
    /// EXEC_RSRC, a byte in a word: what the executor has.
    pub exec_rsrc: Field,
    /// RTRV_PRIO: the level at which a RETRIEVE looks; the level of a SWAP and of a REPAIR.
    pub rtrv_prio: Field,
    /// SWAP_IDX: with which entry a SWAP is exchanged next.
    pub swap_idx: Field,
    /// pkt_retrieve_ptr: `retrieve_ptr` when SWAP_IDX was set.
    pub pkt_retrieve_ptr: Field,
    /// Which pointer a REPAIR sets.
    pub ptr: Field,
    /// The value that a REPAIR sets it to.
    pub value: Field,
    pub(super) inside: Inside,
}

/// Metadata.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    /// `op` of a well-formed packet, else zero. A REPAIR has a kind for each pointer.
    pub(super) kind: Field,
    /// The queue's number, from 0.
    pub(super) level: Field,
    /// The level's two bits in the bitmap.
    pub(super) add_flag: Field,
    pub(super) retrieve_flag: Field,
    /// The pointers as the packet found them.
    pub(super) add: Field,
    pub(super) retrieve: Field,
    /// add − retrieve.
    pub(super) length: Field,
    /// add − SWAP_IDX.
    pub(super) ahead: Field,
    /// The pointer to the entry that this packet is about.
    pub(super) at: Field,
    /// The one behind it.
    pub(super) next: Field,
    /// What the pointers say: [`status`].
    pub(super) status: Field,
    /// Which flag the packet raises or clears.
    pub(super) flag: Field,
    /// The bitmap as it was, and then the packet's own flag in it.
    pub(super) flags: Field,
    /// Which pointer needs a repair.
    pub(super) broken: Field,
    /// `is_valid` and TRSRC: what the packet stores, and what was there.
    pub(super) mine: Field,
    pub(super) theirs: Field,
    /// `is_valid`, and the resources that the task needs and the executor does not have.
    pub(super) missing: Field,
    /// The entry's number among those of all levels.
    pub(super) cell: Field,
    /// What egress does with the entry: [`entry`].
    pub(super) entry: Field,
}

/// Lawful kinds; those of packets are [`Kind`]'s numbers.
pub(super) const REPAIR_ADD: u32 = 16;
pub(super) const REPAIR_RETRIEVE: u32 = 17;

/// The word of an entry in ingress: `is_valid`, above TRSRC's byte.
pub(super) const VALID: u32 = 0x100;

/// What the pointers say to a SUBMIT, or to a SWAP.
pub(super) mod status {
    /// The queue has space.
    pub(in super::super) const SPACE: u32 = 1;
    /// The queue is full.
    pub(in super::super) const FULL: u32 = 2;
    /// `retrieve_ptr` is ahead of `add_ptr`.
    pub(in super::super) const OVERRUN: u32 = 3;
    /// A SWAP's entry lies within the queue.
    pub(in super::super) const INSIDE: u32 = 4;
    /// A SWAP's entry lies outside of the queue.
    pub(in super::super) const TAIL: u32 = 5;
}

/// What egress does.
pub(super) mod entry {
    /// Writes the entry; the packet's job has further tasks.
    pub(in super::super) const STORE: u32 = 1;
    /// Writes the entry; that was the job's last task.
    pub(in super::super) const STORE_LAST: u32 = 2;
    /// Reads the entry into the packet.
    pub(in super::super) const LOAD: u32 = 3;
    /// Exchanges the entry with the packet's.
    pub(in super::super) const EXCHANGE: u32 = 4;
    /// No entry: the packet becomes a SUBMIT.
    pub(in super::super) const RESUBMIT: u32 = 5;
}

impl Fields {
    pub(super) fn declare(b: &mut Builder, config: Config) -> Self {
        use Width::{W8, W16, W32};
        let fields = Self {
            op: b.header("op", W8),
            address: b.header("address", W32),
            port: b.header("port", W16),
            uid: b.header("uid", W32),
            jid: b.header("jid", W32),
            tasks: b.header("tasks", W8),
            tid: b.header("tid", W32),
            tprio: b.header("tprio", W8),
            trsrc: b.header("trsrc", W16),
            tdesc: (0..config.words).map(|n| b.header(format!("tdesc{n}"), W32)).collect(),
            client_ip: b.header("client_ip", W32),
            client_port: b.header("client_port", W16),
            exec_rsrc: b.header("exec_rsrc", W16),
            rtrv_prio: b.header("rtrv_prio", W8),
            swap_idx: b.header("swap_idx", W32),
            pkt_retrieve_ptr: b.header("pkt_retrieve_ptr", W32),
            ptr: b.header("ptr", W8),
            value: b.header("value", W32),
            inside: Inside::declare(b),
        };
        b.name_values(fields.op, &Kind::names());
        b.record(&[&[fields.tid, fields.tprio, fields.trsrc], &fields.tdesc[..]].concat());
        fields
    }
}

impl Inside {
    fn declare(b: &mut Builder) -> Self {
        use Width::{W8, W16, W32};
        let inside = Self {
            kind: b.metadata("kind", W8),
            level: b.metadata("level", W8),
            add_flag: b.metadata("add_flag", W8),
            retrieve_flag: b.metadata("retrieve_flag", W8),
            add: b.metadata("add", W32),
            retrieve: b.metadata("retrieve", W32),
            length: b.metadata("length", W32),
            ahead: b.metadata("ahead", W32),
            at: b.metadata("at", W32),
            next: b.metadata("next", W32),
            status: b.metadata("status", W8),
            flag: b.metadata("flag", W8),
            flags: b.metadata("flags", W8),
            broken: b.metadata("broken", W8),
            mine: b.metadata("mine", W16),
            theirs: b.metadata("theirs", W16),
            missing: b.metadata("missing", W16),
            cell: b.bridged("cell", W32),
            entry: b.bridged("entry", W8),
        };
        inside.name_values(b);
        inside
    }

    fn name_values(&self, b: &mut Builder) {
        b.name_values(self.kind, &Kind::names());
        b.name_values(self.kind, &[(REPAIR_ADD, "REPAIR add"), (REPAIR_RETRIEVE, "REPAIR retrieve")]);
        let statuses = [
            (0, "none"),
            (status::SPACE, "SPACE"),
            (status::FULL, "FULL"),
            (status::OVERRUN, "OVERRUN"),
            (status::INSIDE, "INSIDE"),
            (status::TAIL, "TAIL"),
        ];
        b.name_values(self.status, &statuses);
        b.name_values(self.broken, &[(pointer::ADD, "ADD"), (pointer::RETRIEVE, "RETRIEVE")]);
        b.name_values(self.missing, &[(VALID, "valid, nothing missing")]);
        let entries = [
            (entry::STORE, "STORE"),
            (entry::STORE_LAST, "STORE_LAST"),
            (entry::LOAD, "LOAD"),
            (entry::EXCHANGE, "EXCHANGE"),
            (entry::RESUBMIT, "RESUBMIT"),
        ];
        b.name_values(self.entry, &entries);
    }
}
