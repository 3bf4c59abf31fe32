//! Client and executor of the tasks program, without I/O. `docs/internals/tasks.md` specifies the protocol, and
//! `docs/internals/endpoints.md` explains how drivers use them.

pub mod blob;
pub mod client;
pub mod executor;

pub mod functions;
pub mod place;
pub mod proof;
pub mod resources;

#[doc(hidden)]
pub use midflight_endpoint::mutants;
