//! The structures that all programs share, with the layout of `dataplane/include/midflight/wire.h`, which explains each field. A test
//! compares both with `docs/wire.md`.

use crate::mutants::planted;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// The 24 bytes that begin every packet except VERSION.
    pub struct Header {
        pub magic: U16,
        pub version: u8,
        pub operation: u8,
        /// Determines the length, with `operation` (T11).
        pub count: u8,
        pub key: u8,
        pub reserved: U16,
        /// Random at each start of the switch (T9).
        pub epoch: U32,
        /// Chosen by the sender and repeated in the response: identifies repeats.
        pub sequence: U32,
        pub tag: U64,
    }

    /// switch → any: the response to another version, the same in all versions.
    pub struct Version {
        pub magic: U16,
        pub version: u8,
        pub operation: u8,
        pub reserved: [u8; 4],
    }

    /// An IPv6 or mapped IPv4 address, and a UDP port.
    pub struct Address {
        pub ip: [u8; 16],
        pub port: U16,
        pub reserved: U16,
    }
}

impl Header {
    /// A header of this version with `count` 0.
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

impl Version {
    /// The response to a packet of another version.
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
