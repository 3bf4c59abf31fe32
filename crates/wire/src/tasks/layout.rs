//! The packet structures, with the layout of `dataplane/include/midflight/tasks_wire.h`, which explains each field.

use super::{Operation, SLOT_PLACES};
use crate::{Address, Header};
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// TASK_INFO: a task as its client describes it.
    pub struct TaskInfo {
        /// For people: `<uid, jid, tid>` names a task.
        pub tid: U32,
        pub function: U32,
        /// Queue level (T4).
        pub priority: u8,
        /// Required of the executor (T5).
        pub resources: u8,
        /// 254: `argument` is an [`Appended`]; 255: a [`BlobRef`].
        pub argument_length: u8,
        pub attempt: u8,
        pub argument: [u8; 16],
    }

    /// In place of an argument that is appended to the packet's records.
    pub struct Appended {
        pub length: U16,
        pub reserved: [u8; 14],
    }

    /// Location of bytes that exceed a packet.
    pub struct BlobRef {
        /// Random and secret: permits fetching the bytes.
        pub id: U64,
        pub length: U32,
        /// TCP; the IP address is the packet's.
        pub port: U16,
        pub reserved: U16,
    }

    /// client → switch; [`TaskInfo`] records follow, then appended arguments, then a [`Preference`] if the tasks have one.
    pub struct Submit {
        pub header: Header,
        /// Random and secret: identifies the process to the switch.
        pub client: U64,
        /// Proves that the sender receives packets at its address (T13).
        pub cookie: U64,
        /// A secret of the client, the switch and the executors with tasks of this SUBMIT. Clients and executors prove that they
        /// know it.
        pub token: U64,
        pub uid: U32,
        pub jid: U32,
    }

    /// Ends a SUBMIT whose tasks have a placement preference (T19).
    pub struct Preference {
        /// As in [`Register`]; 0: any.
        pub place: U32,
        /// Milliseconds for which the tasks wait for a slot at the place.
        pub patience_ms: U32,
    }

    /// switch → client: the response to SUBMIT.
    pub struct SubmitAck {
        pub header: Header,
        pub client: U64,
        /// Bitmap of the tasks that the switch accepted.
        pub taken: U32,
        /// Bitmap of the tasks that the client must submit again.
        pub not_taken: U32,
        pub reason: u8,
        pub reserved: [u8; 3],
        pub room: U32,
    }

    /// executor → switch: registers `count` slots.
    pub struct Register {
        pub header: Header,
        /// As in [`Submit`].
        pub executor: U64,
        /// As in [`Submit`].
        pub cookie: U64,
        /// Number of the first slot, assigned by the executor.
        pub first: U32,
        pub resources: u8,
        /// A [`super::SlotKind`].
        pub kind: u8,
        /// Bits 16 to 31 of the executor's next counter, for a switch that compares only the lower half.
        pub counter: U16,
        /// Places of these slots (T19), such as their machine and rack; 0: none.
        pub places: [U32; SLOT_PLACES],
    }

    /// switch → executor; [`SlotName`] records follow.
    pub struct Registered {
        pub header: Header,
        pub executor: U64,
        pub first: U32,
        /// Determines the KEEPALIVE interval (T10).
        pub lease_ms: U32,
        /// The sender's address as the switch sees it; differs behind a NAT.
        pub seen: Address,
        pub reason: u8,
        pub reserved: u8,
        /// If not 0, the switch does not park slots, and a slot polls at this interval.
        pub poll_us: U16,
    }

    /// A registered slot.
    pub struct SlotName {
        pub slot: U32,
        /// Random at each registration and secret.
        pub generation: U32,
    }

    /// A slot's wait for a task.
    pub struct Wait {
        pub slot: U32,
        pub generation: U32,
        /// Larger than the last: the last task is done. Equal: a repeat.
        pub sequence: U32,
    }

    /// switch → executor; the [`Wait`] records are void; without records all are.
    pub struct Reset {
        pub header: Header,
        /// Counter of the packet that caused this, which an off-path attacker must guess.
        pub counter: U64,
    }

    /// executor → switch; [`Wait`] records follow.
    pub struct Retrieve {
        pub header: Header,
        /// Increases with each packet, so that the switch rejects copies (T13).
        pub counter: U64,
        /// What these slots offer from now on, without a new registration.
        pub resources: u8,
        /// 1: prefetch waits: the switch assigns a queued task or nothing, parks no slot, and repeats the header's sequence.
        pub ahead: u8,
        pub reserved: [u8; 6],
    }

    /// switch → executor; [`Assignment`] records follow, then appended arguments.
    pub struct Assign {
        pub header: Header,
    }

    /// A task for a waiting slot.
    pub struct Assignment {
        pub token: U64,
        pub slot: U32,
        pub generation: U32,
        /// Earlier ones are ignored.
        pub sequence: U32,
        /// By the switch's clock.
        pub waited_us: U32,
        pub task: TaskInfo,
        pub uid: U32,
        pub jid: U32,
        /// The client's address: the executor sends the completion there directly.
        pub address: Address,
        /// With `index`, names the task to the client.
        pub submission: U32,
        pub index: u8,
        pub reserved: [u8; 3],
    }

    /// switch → executor; [`Wait`] records follow.
    pub struct NoOp {
        pub header: Header,
    }

    /// executor → switch; [`Wait`] records follow.
    pub struct Keepalive {
        /// Epoch 0 only probes the switch.
        pub header: Header,
        pub counter: U64,
    }

    /// executor → switch; [`Leave`] records follow.
    pub struct Release {
        pub header: Header,
        pub counter: U64,
    }

    /// A slot that leaves, or returns its assignment.
    pub struct Leave {
        pub slot: U32,
        pub generation: U32,
        /// The slot's last wait.
        pub sequence: U32,
        /// A [`super::LeaveHow`].
        pub done: u8,
        pub reserved: [u8; 3],
    }

    /// switch → executor; [`SlotName`] records follow.
    pub struct Released {
        pub header: Header,
        pub counter: U64,
    }

    /// executor → client; [`Completion`] records follow, each with its result.
    pub struct Complete {
        pub header: Header,
        /// A public name, not the secret identity.
        pub executor: U64,
    }

    /// How an attempt ended.
    pub struct Completion {
        /// Proves knowledge of the SUBMIT's token; the client ignores other completions.
        pub proof: U64,
        /// By the executor's clock, like `held_us`.
        pub ran_ns: U64,
        pub submission: U32,
        pub waited_us: U32,
        pub held_us: U32,
        /// Without the padding to a multiple of four.
        pub result_length: U16,
        pub index: u8,
        pub attempt: u8,
        pub status: u8,
        /// 1: the result is a [`BlobRef`].
        pub by_reference: u8,
        pub reserved: U16,
    }

    /// client → executor; [`Completed`] records follow.
    pub struct CompleteAck {
        pub header: Header,
    }

    /// A completion that the client received.
    pub struct Completed {
        /// Proves knowledge of the SUBMIT's token.
        pub proof: U64,
        pub submission: U32,
        pub index: u8,
        pub attempt: u8,
        /// Whether the executor may drop the result.
        pub state: u8,
        pub reserved: u8,
    }

    /// A submitted task.
    pub struct TaskName {
        pub submission: U32,
        pub index: u8,
        pub reserved: [u8; 3],
    }

    /// client → switch; [`TaskName`] records follow.
    pub struct Probe {
        /// The sequence also counts repeats, so that the client can measure the round trip.
        pub header: Header,
        pub client: U64,
        pub cookie: U64,
    }

    /// switch → client: the response to PROBE.
    pub struct ProbeAck {
        pub header: Header,
        pub client: U64,
        pub seen: Address,
        pub room: U32,
        /// The queued or assigned ones.
        pub open: U32,
        /// Whether the switch remembers the client; without its record it cannot recognise repeats.
        pub known: u8,
        pub reserved: [u8; 3],
    }

    /// client → switch; [`TaskName`] records follow.
    pub struct Cancel {
        /// The sequence is from the SUBMIT window, so that a repeat gets the same response.
        pub header: Header,
        pub client: U64,
        pub cookie: U64,
    }

    /// switch → client; a [`Holder`] record for each task that an executor has.
    pub struct CancelAck {
        pub header: Header,
        pub client: U64,
        /// Bitmap: bit i is set if task i of the CANCEL was removed from the queue.
        pub taken_out: U32,
        pub reason: u8,
        pub reserved: [u8; 3],
    }

    /// The executor of a cancelled task.
    pub struct Holder {
        pub executor: Address,
        /// Index in the CANCEL.
        pub index: u8,
        pub reserved: [u8; 3],
    }

    /// client → executor; [`RunName`] records follow.
    pub struct Stop {
        pub header: Header,
    }

    /// A task at an executor.
    pub struct RunName {
        /// Proves knowledge of the SUBMIT's token, which identifies the task's client.
        pub proof: U64,
        pub submission: U32,
        pub index: u8,
        pub reserved: [u8; 3],
    }

    /// switch → client or executor: repeat the packet with this cookie.
    pub struct Cookie {
        pub header: Header,
        pub identity: U64,
        pub cookie: U64,
    }
}

fixed_parts! {
    Submit SubmitAck Register Registered Reset Retrieve Assign Keepalive Release Released Complete CompleteAck Probe
    ProbeAck Cancel CancelAck NoOp Cookie Stop
}

impl SlotName {
    /// A wait of this slot.
    #[must_use]
    pub fn wait(&self, sequence: u32) -> Wait {
        Wait { slot: self.slot, generation: self.generation, sequence: sequence.into() }
    }
}

impl RunName {
    /// The task at this index of a SUBMIT, with this proof.
    #[must_use]
    pub const fn new(proof: u64, submission: u32, index: u8) -> Self {
        Self { proof: U64::new(proof), submission: U32::new(submission), index, reserved: [0; 3] }
    }
}

impl TaskName {
    /// The task at this index of a SUBMIT.
    #[must_use]
    pub const fn new(submission: u32, index: u8) -> Self {
        Self { submission: U32::new(submission), index, reserved: [0; 3] }
    }
}

impl TaskInfo {
    /// A task of level 1 without requirements or argument.
    pub const PLAIN: Self = Self {
        tid: U32::ZERO,
        function: U32::ZERO,
        priority: 1,
        resources: 0,
        argument_length: 0,
        attempt: 0,
        argument: [0; super::ARGUMENT_MAX],
    };
}

impl TaskInfo {
    /// Length of the argument that is appended to the records; 0 if none is.
    #[must_use]
    pub fn appended_length(&self) -> usize {
        if self.argument_length != super::APPENDED {
            return 0;
        }
        let [high, low, ..] = self.argument;
        usize::from(u16::from_be_bytes([high, low]))
    }

    /// Bytes that the argument takes behind the records.
    #[must_use]
    pub fn appended_bytes(&self) -> usize {
        self.appended_length().next_multiple_of(super::APPENDED_UNIT)
    }

    /// Whether the argument's length suits its form.
    #[must_use]
    pub fn has_good_argument(&self) -> bool {
        match self.argument_length {
            super::BY_REFERENCE => true,
            super::APPENDED => (super::ARGUMENT_MAX + 1..=super::APPENDED_MAX).contains(&self.appended_length()),
            length => usize::from(length) <= super::ARGUMENT_MAX,
        }
    }
}
