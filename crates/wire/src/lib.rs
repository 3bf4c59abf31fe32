//! The packet formats of Midflight.
//!
//! [`tasks`], [`store`] and [`cache`] have the packets of a program each. They share what is here: [`layout`](crate::Header) has the
//! structures of `dataplane/include/midflight/wire.h`, [`Builder`] writes a packet into a buffer, and [`packet()`] creates one.

#[macro_use]
mod macros;

mod builder;
pub mod cache;
mod host;
mod layout;
mod mutants;
mod parse;
pub mod store;
pub mod tasks;

pub use builder::{Builder, counting, packet};
pub use host::Host;
pub use layout::*;
pub use macros::Field;
pub use parse::Reject;

/// "MF", the first two bytes of every packet.
pub const MAGIC: u16 = 0x4D46;
/// Version of the format.
pub const VERSION: u8 = 4;
/// Operation of [`Version`] packets only; those of programs start at 1.
pub const VERSION_OPERATION: u8 = 0;
/// Largest datagram in bytes: passes every link that supports IPv6 (T15).
pub const PACKET_MAX: usize = 1232;
