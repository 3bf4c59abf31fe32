//! The endpoints of the store program as state machines without I/O: client and replica of a linearizable store.
//! Protocol: `docs/internals/store.md`.

pub mod client;
#[cfg(feature = "replica")]
pub mod log;
#[cfg(feature = "replica")]
pub mod replica;
mod transaction;
mod update;

#[doc(hidden)]
pub use midflight_endpoint::mutants;
