//! The packet structures, field for field as `dataplane/include/midflight/wire.h` lays them out, which
//! says more of each field. A test compares the two layouts and `docs/wire.md`.

use crate::mutants::planted;
use crate::{Operation, SLOT_PLACES};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// 24 bytes that open every packet but VERSION.
    pub struct Header {
        /// Recognises a datagram of another protocol.
        pub magic: U16,
        /// Another version is answered by [`Version`].
        pub version: u8,
        pub operation: u8,
        /// Records that follow: with the operation it says how long the datagram must be (T11).
        pub count: u8,
        /// Names the key of `tag`; 0 until there are keys.
        pub key: u8,
        pub reserved: U16,
        /// Drawn by the switch at its start: tells packets for an earlier switch from those for this one (T9).
        pub epoch: U32,
        /// The sender's: tells repeats apart; an answer repeats it.
        pub sequence: U32,
        /// Room for a signature, which a later version could not insert.
        pub tag: U64,
    }

    /// switch → any: the answer to a packet of another version, the same in all versions.
    pub struct Version {
        pub magic: U16,
        /// The one that the sender speaks.
        pub version: u8,
        pub operation: u8,
        /// Makes the packet one word of 64 bits.
        pub reserved: [u8; 4],
    }

    /// An IPv6 address (IPv4 mapped) and a UDP port.
    pub struct Address {
        /// IPv4 as ::ffff:a.b.c.d, so that all addresses have one size.
        pub ip: [u8; 16],
        pub port: U16,
        /// 0, so that an address can be compared as whole words.
        pub reserved: U16,
    }

    /// TASK_INFO: what a client says of a task.
    pub struct TaskInfo {
        /// For people, who name a task by `<uid, jid, tid>`.
        pub tid: U32,
        /// A number, because a switch cannot parse names.
        pub function: U32,
        /// The queue's level (T4).
        pub priority: u8,
        /// A mask of what the executor must have (T5).
        pub resources: u8,
        /// 255: `argument` is a [`BlobRef`].
        pub argument_length: u8,
        /// Tells the completions of a task apart that ran twice.
        pub attempt: u8,
        pub argument: [u8; 16],
    }

    /// Where bytes that exceed the packet are.
    pub struct BlobRef {
        /// Random: whoever knows it may fetch the bytes.
        pub id: U64,
        /// Bytes: the receiver can refuse before it connects.
        pub length: U32,
        /// TCP; the receiver has the IP address from the packet.
        pub port: U16,
        /// 0: the bytes are a blob. Else they are in a pack, of many arguments, and begin [`crate::PACK_UNIT`] × (`at` − 1)
        /// bytes behind its beginning.
        pub at: U16,
    }

    /// client → switch; [`TaskInfo`] records follow, and behind them a [`Preference`] if the tasks have one.
    pub struct Submit {
        pub header: Header,
        /// Random and secret: names the process to the switch.
        pub client: U64,
        /// Proves that the sender receives what is sent to its address (T13).
        pub cookie: U64,
        /// Known to the executors that were given tasks of this SUBMIT: they and the client prove themselves to each other by it, and
        /// do not send it.
        pub token: U64,
        pub uid: U32,
        /// Once for all tasks here: a SUBMIT never mixes jobs.
        pub jid: U32,
    }

    /// The end of a SUBMIT whose tasks prefer to run somewhere (T19).
    pub struct Preference {
        /// Where: as in [`Register`]; 0: anywhere.
        pub place: U32,
        /// Milliseconds that they wait for a slot there.
        pub patience_ms: U32,
    }

    /// switch → client.
    pub struct SubmitAck {
        pub header: Header,
        /// The SUBMIT's: an attacker that forges an answer must know it.
        pub client: U64,
        /// Bitmap of the tasks that the switch is now responsible for.
        pub taken: U32,
        /// Bitmap of the tasks that the client still has to submit.
        pub not_taken: U32,
        /// Of `not_taken`: decides when to try again.
        pub reason: u8,
        pub reserved: [u8; 3],
        /// Tasks that the queue still had room for: the client paces itself by it.
        pub room: U32,
    }

    /// executor → switch.
    pub struct Register {
        pub header: Header,
        /// Random and secret: names the process to the switch.
        pub executor: U64,
        /// As in [`Submit`].
        pub cookie: U64,
        /// The executor's own number of the first slot; a repeat gets the same slots.
        pub first: U32,
        /// A mask of what these slots offer.
        pub resources: u8,
        /// A [`crate::SlotKind`].
        pub kind: u8,
        /// Bits 16 to 31 of the executor's next counter: where a switch begins that compares the lower half only.
        pub counter: U16,
        /// Where these slots are (T19): their machine and their rack, say; 0: none.
        pub places: [U32; SLOT_PLACES],
    }

    /// switch → executor; [`SlotName`] records follow.
    pub struct Registered {
        pub header: Header,
        pub executor: U64,
        /// The REGISTER's: says which slots these are.
        pub first: U32,
        /// Sets how often the executor sends KEEPALIVE (T10).
        pub lease_ms: U32,
        /// The sender as the switch sees it: differs behind a NAT.
        pub seen: Address,
        /// Why there are fewer slots than asked for.
        pub reason: u8,
        pub reserved: u8,
        /// Not 0: the switch parks no slots, and a slot asks again after this time.
        pub poll_us: U16,
    }

    /// A registered slot.
    pub struct SlotName {
        pub slot: U32,
        /// Random, new at each registration: nobody else can act for the slot.
        pub generation: U32,
    }

    /// A slot's wait for a task.
    pub struct Wait {
        pub slot: U32,
        pub generation: U32,
        /// Larger than the last: the last task is done; equal: a repeat.
        pub sequence: U32,
    }

    /// switch → executor; [`Wait`] records follow, or none: all are void.
    pub struct Reset {
        pub header: Header,
        /// Of the packet that this answers: an attacker must guess it.
        pub counter: U64,
    }

    /// executor → switch; [`Wait`] records follow.
    pub struct Retrieve {
        pub header: Header,
        /// One more in each packet: a copy has an old counter (T13).
        pub counter: U64,
        /// What these slots offer from now on, without a new registration.
        pub resources: u8,
        /// 1: they take a queued task or nothing, and are never parked. The header's sequence is then a number that the
        /// answer repeats.
        pub ahead: u8,
        pub reserved: [u8; 6],
    }

    /// switch → executor; [`Assignment`] records follow.
    pub struct Assign {
        pub header: Header,
    }

    /// A task for a waiting slot.
    pub struct Assignment {
        pub token: U64,
        pub slot: U32,
        pub generation: U32,
        /// The wait that this answers: the executor ignores answers to older ones.
        pub sequence: U32,
        /// By the switch's clock, for the client's statistics.
        pub waited_us: U32,
        pub task: TaskInfo,
        pub uid: U32,
        pub jid: U32,
        /// The client's: the completion goes there, not through the switch.
        pub address: Address,
        /// With `index`: names the task to the client.
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
        /// Epoch 0: only asks whether a switch is alive.
        pub header: Header,
        /// As in [`Retrieve`].
        pub counter: U64,
    }

    /// executor → switch; [`Leave`] records follow.
    pub struct Release {
        pub header: Header,
        /// As in [`Retrieve`].
        pub counter: U64,
    }

    /// A slot that leaves, or gives back what it was given.
    pub struct Leave {
        pub slot: U32,
        pub generation: U32,
        /// The slot's last wait.
        pub sequence: U32,
        /// A [`crate::LeaveHow`].
        pub done: u8,
        pub reserved: [u8; 3],
    }

    /// switch → executor; [`SlotName`] records follow.
    pub struct Released {
        pub header: Header,
        /// As in [`Reset`].
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
        /// That its sender knows the SUBMIT's token: the client ignores what is not proven.
        pub proof: U64,
        /// For the client's statistics, as the next two times.
        pub ran_ns: U64,
        pub submission: U32,
        pub waited_us: U32,
        pub held_us: U32,
        /// Bytes that follow, before padding to a multiple of four.
        pub result_length: U16,
        pub index: u8,
        /// The acknowledgement repeats it.
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

    /// A completion that the client has.
    pub struct Completed {
        /// That its sender knows the SUBMIT's token.
        pub proof: U64,
        pub submission: U32,
        pub index: u8,
        pub attempt: u8,
        /// Whether the executor may forget the result.
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
        /// Its sequence counts repeats too, so that the round trip can be measured.
        pub header: Header,
        pub client: U64,
        pub cookie: U64,
    }

    /// switch → client.
    pub struct ProbeAck {
        pub header: Header,
        pub client: U64,
        pub seen: Address,
        pub room: U32,
        /// Bitmap of the tasks that are queued or assigned.
        pub open: U32,
        /// A switch that has forgotten the client cannot recognise repeats.
        pub known: u8,
        pub reserved: [u8; 3],
    }

    /// client → switch; [`TaskName`] records follow.
    pub struct Cancel {
        /// Its sequence is from the window of SUBMIT, so that a repeat gets the same answer.
        pub header: Header,
        pub client: U64,
        pub cookie: U64,
    }

    /// switch → client; [`Holder`] records follow, for the tasks that executors have.
    pub struct CancelAck {
        pub header: Header,
        pub client: U64,
        /// Bitmap of the tasks that were queued and will not run.
        pub taken_out: U32,
        pub reason: u8,
        pub reserved: [u8; 3],
    }

    /// Which executor has a task that the client cancels.
    pub struct Holder {
        pub executor: Address,
        /// The task's record in the CANCEL.
        pub index: u8,
        pub reserved: [u8; 3],
    }

    /// client → executor; [`RunName`] records follow.
    pub struct Stop {
        pub header: Header,
    }

    /// A task that an executor has.
    pub struct RunName {
        /// That its sender knows the SUBMIT's token, and so is the task's client.
        pub proof: U64,
        pub submission: U32,
        pub index: u8,
        pub reserved: [u8; 3],
    }

    /// client → executor: the argument of a task that it probably gets; [`Piece`] records follow.
    pub struct Argument {
        pub header: Header,
        /// Names the argument to who has the task's reference, and to nobody else.
        pub name: U64,
        /// Proves that the sender has the reference, and that the bytes are as it sent them.
        pub tag: [u8; 16],
        /// Of the argument, in bytes.
        pub length: U32,
        pub reserved: U32,
    }

    /// Bytes of an argument, encrypted.
    pub struct Piece {
        pub bytes: [u8; crate::PACK_UNIT as usize],
    }

    /// switch → client or executor: repeat the packet with this cookie.
    pub struct Cookie {
        /// Its sequence is that of the packet that this answers.
        pub header: Header,
        /// Says whose cookie this is.
        pub identity: U64,
        pub cookie: U64,
    }
}

impl Header {
    /// A header of this version with no records yet ([`crate::Builder`] counts them).
    #[must_use]
    pub fn new(operation: impl Into<u8>, epoch: u32, sequence: u32) -> Self {
        Self {
            magic: crate::MAGIC.into(),
            version: crate::VERSION,
            operation: operation.into(),
            count: 0,
            key: 0,
            reserved: 0.into(),
            epoch: epoch.into(),
            sequence: sequence.into(),
            tag: 0.into(),
        }
    }
}

fixed_parts! {
    Submit SubmitAck Register Registered Reset Retrieve Assign Keepalive Release Released Complete CompleteAck Probe
    ProbeAck Cancel CancelAck NoOp Cookie Stop Argument
}

impl SlotName {
    /// Its wait with this sequence.
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

impl BlobRef {
    /// Where in a pack the bytes begin; `None` if they are a blob.
    #[must_use]
    pub fn offset(&self) -> Option<u32> {
        u32::from(self.at.get()).checked_sub(1).map(|units| units * crate::PACK_UNIT)
    }
}

impl TaskInfo {
    /// A task of the highest level that needs nothing and has no argument.
    pub const PLAIN: Self = Self {
        tid: U32::ZERO,
        function: U32::ZERO,
        priority: 1,
        resources: 0,
        argument_length: 0,
        attempt: 0,
        argument: [0; crate::ARGUMENT_MAX],
    };
}

impl Version {
    /// Says that we speak this version.
    pub const OURS: Self = Self {
        magic: U16::new(crate::MAGIC),
        version: crate::VERSION,
        operation: crate::VERSION_OPERATION,
        reserved: [0; 4],
    };
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(v4) if planted(56) => v4.to_ipv6_compatible(),
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self { ip: ip.octets(), port: address.port().into(), reserved: 0.into() }
    }
}

impl From<Address> for SocketAddr {
    fn from(address: Address) -> Self {
        SocketAddr::new(Ipv6Addr::from(address.ip).to_canonical(), address.port.get())
    }
}
