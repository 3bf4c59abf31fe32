//! The header fields of the published queue's packets, and the metadata between stages.

use super::Config;
use crate::Width::{W8, W16, W32};
use crate::{Builder, Field};

kinds! {
    /// client → switch: the job_submission packet.
    Submit = 1, "SUBMIT";
    /// executor → switch: wants a task.
    Retrieve = 2, "RETRIEVE";
    /// switch → switch: a search. It carries a task that needs a place, and an executor that needs a task.
    Swap = 3, "SWAP";
    /// switch → switch: sets a pointer.
    Repair = 4, "REPAIR";
    /// switch → switch: an executor is owed a no-op.
    OweNoOp = 5, "OWE_NO_OP";
    /// switch → executor: the task_assignment packet.
    Assign = 6, "ASSIGN";
    /// switch → executor: no task.
    NoOp = 7, "NO_OP";
    /// switch → client: these tasks were refused.
    Full = 8, "FULL";
}

values! {
    /// The header's `ptr` of a REPAIR (listing 3).
    pointer {
        ADD = 1,
        RETRIEVE = 2,
    }
}

fields! {
    /// The header fields. Every packet has all of them; those that its kind does not use are zero.
    pub struct Fields(b, config) {
        /// [`Kind`].
        pub op: Field = b.header("op", W8),
        /// The receiver of the answer: the client of a SUBMIT, else the executor. The source of the IP packet.
        pub address: Field = b.header("address", W32),
        /// Its UDP port.
        pub port: Field = b.header("port", W16),
        /// UID of a SUBMIT's tasks.
        pub uid: Field = b.header("uid", W32),
        /// JID of a SUBMIT's tasks.
        pub jid: Field = b.header("jid", W32),
        /// #TASKS: how many records.
        pub tasks: Field = b.header("tasks", W8),
        /// TID of the first record, or of the task that the packet carries.
        pub tid: Field = b.header("tid", W32),
        /// TPRIO, 1 (the highest) to the number of levels.
        pub tprio: Field = b.header("tprio", W8),
        /// TRSRC, a byte; its word's upper byte is zero.
        pub trsrc: Field = b.header("trsrc", W16),
        /// TDESC.
        pub tdesc: Vec<Field> = (0..config.words).map(|n| b.header(format!("tdesc{n}"), W32)).collect(),
        /// The address of the task's client, in ASSIGN and SWAP.
        pub client_ip: Field = b.header("client_ip", W32),
        /// Its port.
        pub client_port: Field = b.header("client_port", W16),
        /// EXEC_RSRC, a byte in a word: the executor's resources.
        pub exec_rsrc: Field = b.header("exec_rsrc", W16),
        /// RTRV_PRIO: the level of a RETRIEVE, SWAP or REPAIR.
        pub rtrv_prio: Field = b.header("rtrv_prio", W8),
        /// SWAP_IDX: the entry that a SWAP exchanges next.
        pub swap_idx: Field = b.header("swap_idx", W32),
        /// pkt_retrieve_ptr: `retrieve_ptr` when SWAP_IDX was set.
        pub pkt_retrieve_ptr: Field = b.header("pkt_retrieve_ptr", W32),
        /// Which pointer a REPAIR sets.
        pub ptr: Field = b.header("ptr", W8),
        /// The pointer's new value in a REPAIR.
        pub value: Field = b.header("value", W32),
        pub(super) inside: Inside = Inside::declared(b, config),
    }
}

fields! {
    /// Metadata.
    pub(super) struct Inside(b, _config) {
        /// `op` of a well-formed packet, else zero. A REPAIR has a kind for each pointer.
        pub(super) kind: Field = b.metadata("kind", W8),
        /// The queue's number, from 0.
        pub(super) level: Field = b.metadata("level", W8),
        /// The level's two bits in the bitmap.
        pub(super) add_flag: Field = b.metadata("add_flag", W8),
        pub(super) retrieve_flag: Field = b.metadata("retrieve_flag", W8),
        /// The pointers as the packet found them.
        pub(super) add: Field = b.metadata("add", W32),
        pub(super) retrieve: Field = b.metadata("retrieve", W32),
        /// add − retrieve.
        pub(super) length: Field = b.metadata("length", W32),
        /// add − SWAP_IDX.
        pub(super) ahead: Field = b.metadata("ahead", W32),
        /// The pointer to this packet's entry.
        pub(super) at: Field = b.metadata("at", W32),
        /// The next pointer.
        pub(super) next: Field = b.metadata("next", W32),
        /// State of the pointers: [`status`].
        pub(super) status: Field = b.metadata("status", W8),
        /// The flag that the packet sets or clears.
        pub(super) flag: Field = b.metadata("flag", W8),
        /// The bitmap before the packet, then the packet's own flag in it.
        pub(super) flags: Field = b.metadata("flags", W8),
        /// The pointer that needs a repair.
        pub(super) broken: Field = b.metadata("broken", W8),
        /// `is_valid` and TRSRC: what the packet stores, and the previous contents.
        pub(super) mine: Field = b.metadata("mine", W16),
        pub(super) theirs: Field = b.metadata("theirs", W16),
        /// `is_valid`, and the required resources that the executor lacks.
        pub(super) missing: Field = b.metadata("missing", W16),
        /// The entry's number among those of all levels.
        pub(super) cell: Field = b.bridged("cell", W32),
        /// Egress's operation on the entry: [`entry`].
        pub(super) entry: Field = b.bridged("entry", W8),
    }
}

/// Lawful kinds; those of packets are [`Kind`]'s numbers.
pub(super) const REPAIR_ADD: u32 = 16;
pub(super) const REPAIR_RETRIEVE: u32 = 17;

/// The word of an entry in ingress: `is_valid`, above TRSRC's byte.
pub(super) const VALID: u32 = 0x100;

values! {
    /// State of the pointers for a SUBMIT or a SWAP.
    status {
        /// The queue has space.
        SPACE = 1,
        /// The queue is full.
        FULL = 2,
        /// `retrieve_ptr` is ahead of `add_ptr`.
        OVERRUN = 3,
        /// A SWAP's entry is within the queue.
        INSIDE = 4,
        /// A SWAP's entry is outside of the queue.
        TAIL = 5,
    }
}

values! {
    /// Operations of egress.
    entry {
        /// Writes the entry; the packet's job has further tasks.
        STORE = 1,
        /// Writes the entry; that was the job's last task.
        STORE_LAST = 2,
        /// Reads the entry into the packet.
        LOAD = 3,
        /// Exchanges the entry with the packet's.
        EXCHANGE = 4,
        /// No entry: the packet becomes a SUBMIT.
        RESUBMIT = 5,
    }
}

impl Fields {
    pub(super) fn declare(b: &mut Builder, config: Config) -> Self {
        let fields = Self::declared(b, config);
        let inside = &fields.inside;
        for (field, names) in [
            (fields.op, Kind::NAMES),
            (inside.kind, Kind::NAMES),
            (inside.kind, &[(REPAIR_ADD, "REPAIR add"), (REPAIR_RETRIEVE, "REPAIR retrieve")]),
            (inside.status, &[(0, "none")]),
            (inside.status, status::NAMES),
            (inside.broken, pointer::NAMES),
            (inside.missing, &[(VALID, "valid, nothing missing")]),
            (inside.entry, entry::NAMES),
        ] {
            b.name_values(field, names);
        }
        b.record(&[&[fields.tid, fields.tprio, fields.trsrc], &fields.tdesc[..]].concat());
        fields
    }
}
