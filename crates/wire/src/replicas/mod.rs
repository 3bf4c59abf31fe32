//! The packet formats of the replicas program: NetRS's.
//!
//! [`layout`](NetrsRequest) holds the structures, byte for byte as in `dataplane/include/midflight/replicas_wire.h`; [`parse`] reads a
//! datagram into a [`Packet`] or says why it is none.

pub mod control;
mod layout;
mod parse;
pub mod store;

pub use layout::*;
pub use parse::{Packet, Reject, parse};

/// "MFNR": how the magic field begins.
pub const NETRS_MAGIC: u32 = 0x4D46_4E52;
/// The version of the format, in the magic field.
pub const NETRS_VERSION: u8 = 1;
/// f of the paper: this bit of the kind. With it, switches pass a packet on as any other.
pub const NETRS_XOR: u8 = 0x80;
/// Bytes of a server's status.
pub const NETRS_STATUS_MAX: usize = 64;
/// Replicas of a group.
pub const CANDIDATES_MAX: usize = 8;
/// RSNode id: not labelled yet.
pub const NO_RSNODE: u16 = 0;
/// RSNode id: the request's group is degraded.
pub const ILLEGAL_RSNODE: u16 = 65535;

codes! {
    /// What a packet is: the last byte of its magic field.
    Kind {
        /// switch → any: this is the version that I speak.
        Version = 0,
        /// client → operator → RSNode: select a replica, and ask it.
        Request = 1,
        /// server → operator → RSNode: the answer.
        Response = 2,
        /// operator → client: the answer, which no selector has to see any more.
        Monitored = 3,
        /// operator → client: repeat the request with this cookie.
        Cookie = 4,
        /// server → client: the answer to a request that passed no operator.
        Direct = 5,
    }
}
