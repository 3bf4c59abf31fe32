//! The packet formats of the cache: NetRS's.
//!
//! [`layout`](NetrsRequest) has the structures of `dataplane/include/midflight/cache_wire.h`. [`parse`] reads a datagram into
//! a [`Packet`].

pub mod backend;
pub mod control;
mod layout;
mod parse;

pub use layout::*;
pub use parse::{Packet, Reject, parse};

/// "MFNR": begins the magic field.
pub const NETRS_MAGIC: u32 = 0x4D46_4E52;
/// Version of the format, in the magic field.
pub const NETRS_VERSION: u8 = 1;
/// The paper's f: this bit of the kind makes switches forward a packet like any other.
pub const NETRS_XOR: u8 = 0x80;
/// Bytes of a server's status.
pub const NETRS_STATUS_MAX: usize = 64;
/// Replicas of a group.
pub const CANDIDATES_MAX: usize = 8;
/// RSNode id: no label yet.
pub const NO_RSNODE: u16 = 0;
/// RSNode id: the request's group is degraded.
pub const ILLEGAL_RSNODE: u16 = 65535;

codes! {
    /// Kind of a packet: the last byte of its magic field.
    Kind {
        /// switch → any: the version that the switch supports.
        Version = 0,
        /// client → operator → RSNode: select a replica and forward the request.
        Request = 1,
        /// server → operator → RSNode: the response.
        Response = 2,
        /// operator → client: the response, which no selector needs to see any more.
        Monitored = 3,
        /// operator → client: repeat the request with this cookie.
        Cookie = 4,
        /// server → client: the response to a request that passed no operator.
        Direct = 5,
    }
}
