//! The endpoints of the reads program, as state machines without I/O: a client of a linearizable store, and a replica of it.
//! `docs/internals/reads.md` is the protocol.

pub mod client;
#[cfg(feature = "replica")]
pub mod log;
#[cfg(feature = "replica")]
pub mod replica;

#[doc(hidden)]
pub use midflight_endpoint::mutants;
