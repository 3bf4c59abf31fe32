//! The packet structures, field for field as `dataplane/include/midflight/wire.h` lays them out, where each
//! field is explained. A test compares the two layouts and `docs/wire.md`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Derives what makes a structure readable from and writable to bytes at any alignment.
macro_rules! layout {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            #[allow(missing_docs, reason = "wire.h and docs/wire.md have a sentence per field")]
            pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
        )*

        /// One field of a packet structure: its name, offset and size in bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Field {
            /// Name, as in wire.h.
            pub name: &'static str,
            /// Bytes from the start of the structure.
            pub offset: usize,
            /// Bytes.
            pub size: usize,
        }

        /// Every structure with its size in bytes and its fields: what tests hold against wire.h and docs/wire.md.
        #[must_use]
        pub fn structures() -> Vec<(&'static str, usize, Vec<Field>)> {
            vec![$((
                stringify!($name),
                size_of::<$name>(),
                vec![$(Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$ty>(),
                },)*],
            ),)*]
        }
    };
}

layout! {
    /// 24 bytes that open every packet but VERSION.
    pub struct Header {
        pub magic: U16,
        pub version: u8,
        pub operation: u8,
        pub count: u8,
        pub key: u8,
        pub reserved: U16,
        pub epoch: U32,
        pub sequence: U32,
        pub tag: U64,
    }

    /// switch → any: the answer to a packet of another version, the same in all versions.
    pub struct Version {
        pub magic: U16,
        pub version: u8,
        pub operation: u8,
        pub reserved: [u8; 4],
    }

    /// An IPv6 address (IPv4 mapped) and a UDP port.
    pub struct Address {
        pub ip: [u8; 16],
        pub port: U16,
        pub reserved: U16,
    }

    /// TASK_INFO: what a client says of a task.
    pub struct TaskInfo {
        pub tid: U32,
        pub function: U32,
        pub priority: u8,
        pub resources: u8,
        pub argument_length: u8,
        pub attempt: u8,
        pub argument: [u8; 16],
    }

    /// Where bytes that exceed the packet are.
    pub struct BlobRef {
        pub id: U64,
        pub length: U32,
        pub port: U16,
        pub reserved: U16,
    }

    /// client → switch; [`TaskInfo`] records follow.
    pub struct Submit {
        pub header: Header,
        pub client: U64,
        pub cookie: U64,
        pub token: U64,
        pub uid: U32,
        pub jid: U32,
    }

    /// switch → client.
    pub struct SubmitAck {
        pub header: Header,
        pub client: U64,
        pub taken: U32,
        pub not_taken: U32,
        pub reason: u8,
        pub reserved: [u8; 3],
        pub room: U32,
    }

    /// executor → switch.
    pub struct Register {
        pub header: Header,
        pub executor: U64,
        pub cookie: U64,
        pub first: U32,
        pub resources: u8,
        pub reserved: [u8; 3],
    }

    /// switch → executor; [`SlotName`] records follow.
    pub struct Registered {
        pub header: Header,
        pub executor: U64,
        pub first: U32,
        pub lease_ms: U32,
        pub seen: Address,
        pub reason: u8,
        pub reserved: u8,
        pub poll_us: U16,
    }

    /// A registered slot.
    pub struct SlotName {
        pub slot: U32,
        pub generation: U32,
    }

    /// A slot's wait for a task.
    pub struct Wait {
        pub slot: U32,
        pub generation: U32,
        pub sequence: U32,
    }

    /// switch → executor; [`Wait`] records follow, or none: all are void.
    pub struct Reset {
        pub header: Header,
        pub counter: U64,
    }

    /// executor → switch; [`Wait`] records follow.
    pub struct Retrieve {
        pub header: Header,
        pub counter: U64,
        pub resources: u8,
        pub reserved: [u8; 7],
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
        pub sequence: U32,
        pub waited_us: U32,
        pub task: TaskInfo,
        pub uid: U32,
        pub jid: U32,
        pub address: Address,
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
        pub header: Header,
        pub counter: U64,
    }

    /// executor → switch; [`Leave`] records follow.
    pub struct Release {
        pub header: Header,
        pub counter: U64,
    }

    /// A slot that wants no more tasks.
    pub struct Leave {
        pub slot: U32,
        pub generation: U32,
        pub sequence: U32,
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
        pub executor: U64,
    }

    /// How an attempt ended.
    pub struct Completion {
        pub token: U64,
        pub ran_ns: U64,
        pub submission: U32,
        pub waited_us: U32,
        pub held_us: U32,
        pub result_length: U16,
        pub index: u8,
        pub attempt: u8,
        pub status: u8,
        pub by_reference: u8,
        pub reserved: U16,
    }

    /// client → executor; [`Completed`] records follow.
    pub struct CompleteAck {
        pub header: Header,
    }

    /// A completion that the client has.
    pub struct Completed {
        pub token: U64,
        pub submission: U32,
        pub index: u8,
        pub attempt: u8,
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
        pub open: U32,
        pub known: u8,
        pub reserved: [u8; 3],
    }

    /// client → switch; [`TaskName`] records follow.
    pub struct Cancel {
        pub header: Header,
        pub client: U64,
        pub cookie: U64,
    }

    /// switch → client.
    pub struct CancelAck {
        pub header: Header,
        pub client: U64,
        pub taken_out: U32,
        pub reason: u8,
        pub reserved: [u8; 3],
    }

    /// switch → client or executor: repeat the packet with this cookie.
    pub struct Cookie {
        pub header: Header,
        pub identity: U64,
        pub cookie: U64,
    }
}

impl Header {
    /// A header of this version with no records yet ([`crate::Builder`] counts them).
    #[must_use]
    pub fn new(operation: crate::Operation, epoch: u32, sequence: u32) -> Self {
        Self {
            magic: crate::MAGIC.into(),
            version: crate::VERSION,
            operation: operation as u8,
            count: 0,
            key: 0,
            reserved: 0.into(),
            epoch: epoch.into(),
            sequence: sequence.into(),
            tag: 0.into(),
        }
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
