//! The structures, field for field as `docs/replicas-wire.md` lays them out. Operators have no use for them.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// A request for a store; then its key and its value.
    pub struct StoreAsk {
        pub magic: U32,
        pub version: u8,
        /// [`super::StoreOperation`].
        pub operation: u8,
        /// Bytes of the key.
        pub key_length: u8,
        pub reserved: u8,
        /// The application's, kept with the value.
        pub flags: U32,
        /// Seconds until the store forgets the value; 0: never.
        pub expires_s: U32,
        /// Bytes of the value.
        pub length: U32,
    }

    /// An answer; then what it says.
    pub struct StoreTell {
        pub magic: U32,
        pub version: u8,
        /// [`super::StoreStatus`].
        pub status: u8,
        pub reserved: U16,
        /// As the value was set with.
        pub flags: U32,
        /// Bytes that follow; of LONG: those of the value, which does not follow.
        pub length: U32,
    }
}
