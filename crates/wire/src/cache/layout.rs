//! The packet structures, with the layout of `dataplane/include/midflight/cache_wire.h`, which explains each field.

use super::{Kind, NETRS_MAGIC, NETRS_VERSION, NETRS_XOR};
use crate::Address;
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// Begins all packets: RID, MF and RV.
    pub struct Netrs {
        /// RID: the operator that selects for this request. A response repeats it.
        pub rsnode: U16,
        /// MF: devices that do not know it forward the packet like any other.
        pub magic: U32,
        pub version: u8,
        /// A [`Kind`], with [`NETRS_XOR`] on the way to a server.
        pub kind: u8,
        /// RV: set by the RSNode; a response repeats it.
        pub retained: U16,
    }

    /// A request on its way to an RSNode or server; then [`Ends`] and the application's request.
    pub struct NetrsRequest {
        pub start: Netrs,
        /// RGID: identifies the replicas with the key; never reused.
        pub group: [u8; 3],
    }

    /// A response; then its status, [`Ends`], and the application's response.
    pub struct NetrsResponse {
        pub start: Netrs,
        /// SM: location of the server.
        pub marker: U32,
        /// SSL: bytes of the status that follows.
        pub status_length: U16,
    }

    /// SS: the server's status.
    pub struct ServerStatus {
        pub queue: U16,
        /// Counts the server's responses.
        pub sequence: U16,
        /// Without the wait; 0: unknown.
        pub service_us: U32,
    }

    /// The ends of a request, before the application's payload.
    pub struct Ends {
        /// From the client: its cookie. Afterwards: the address for the response.
        pub client: Address,
        /// From the client: its backup. From the selector on: the selected server.
        pub server: Address,
        /// Chosen by the client; a response repeats it.
        pub request: U64,
        pub tag: U64,
    }
}

impl Netrs {
    /// A packet of this kind without a label.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            rsnode: 0.into(),
            magic: NETRS_MAGIC.into(),
            version: NETRS_VERSION,
            kind: kind as u8,
            retained: 0.into(),
        }
    }

    /// The same on the way to a server: f is applied to its magic field.
    #[must_use]
    pub fn for_server(kind: Kind) -> Self {
        Self { kind: kind as u8 | NETRS_XOR, ..Self::new(kind) }
    }
}

impl NetrsRequest {
    /// Id of the replica group.
    #[must_use]
    pub fn group(&self) -> u32 {
        let [high, middle, low] = self.group;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// The bytes of a replica group's id (24 bits).
    #[must_use]
    pub fn group_bytes(group: u32) -> [u8; 3] {
        let [_, high, middle, low] = group.to_be_bytes();
        [high, middle, low]
    }
}
