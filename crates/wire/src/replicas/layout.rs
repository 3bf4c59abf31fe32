//! The packet structures, field for field as `dataplane/include/midflight/replicas_wire.h` lays them out, which says more of each
//! field.

use super::{Kind, NETRS_MAGIC, NETRS_VERSION, NETRS_XOR};
use crate::Address;
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// What opens all packets: RID, MF and RV.
    pub struct Netrs {
        /// RID: the operator that selects for this request. An answer repeats it.
        pub rsnode: U16,
        /// MF: who does not know it passes the packet on as any other,
        pub magic: U32,
        pub version: u8,
        /// [`Kind`]; with [`NETRS_XOR`] on the way to a server.
        pub kind: u8,
        /// RV: the RSNode's; an answer repeats it.
        pub retained: U16,
    }

    /// A request, on its way to an RSNode or to a server; then [`Ends`] and what the application asks.
    pub struct NetrsRequest {
        pub start: Netrs,
        /// RGID: which replicas have the key; never used again for others.
        pub group: [u8; 3],
    }

    /// An answer; then its status, [`Ends`], and what the application answers.
    pub struct NetrsResponse {
        pub start: Netrs,
        /// SM: where the server is.
        pub marker: U32,
        /// SSL: bytes of the status that follows.
        pub status_length: U16,
    }

    /// SS: what a server says of itself.
    pub struct ServerStatus {
        /// Requests that wait, without those that are being served.
        pub queue: U16,
        /// Counts the server's answers.
        pub sequence: U16,
        /// How long this request was served, without its wait; 0: not known.
        pub service_us: U32,
    }

    /// The ends of a request: what opens the application's payload.
    pub struct Ends {
        /// From the client its cookie; then where the answer goes.
        pub client: Address,
        /// From the client its backup; from the selector on, the server that was chosen.
        pub server: Address,
        /// Which request of this client; an answer repeats it.
        pub request: U64,
        /// Room for a signature.
        pub tag: U64,
    }
}

impl Netrs {
    /// A packet of this kind, not labelled.
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

    /// The same on the way to a server: f of its magic field.
    #[must_use]
    pub fn for_server(kind: Kind) -> Self {
        Self { kind: kind as u8 | NETRS_XOR, ..Self::new(kind) }
    }
}

impl NetrsRequest {
    /// The replica group.
    #[must_use]
    pub fn group(&self) -> u32 {
        let [high, middle, low] = self.group;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// The bytes of a replica group's id: its lower 24 bits.
    #[must_use]
    pub fn group_bytes(group: u32) -> [u8; 3] {
        let [_, high, middle, low] = group.to_be_bytes();
        [high, middle, low]
    }
}
