//! The structures, laid out as in `docs/cache-wire.md`. C does not have them.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// A request to an agent; then its key and value.
    pub struct BackendAsk {
        pub magic: U32,
        pub version: u8,
        /// A [`super::BackendOperation`].
        pub operation: u8,
        pub key_length: u8,
        pub reserved: u8,
        /// For the application; stored with the value.
        pub flags: U32,
        /// Seconds until the backend drops the value; 0: never.
        pub expires_s: U32,
        pub length: U32,
    }

    /// A response; then its content.
    pub struct BackendTell {
        pub magic: U32,
        pub version: u8,
        /// A [`super::BackendStatus`].
        pub status: u8,
        pub reserved: U16,
        /// The flags of the SET.
        pub flags: U32,
        /// Bytes that follow; of LONG: those of the value, which does not follow.
        pub length: U32,
    }
}
