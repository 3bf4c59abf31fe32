//! Client and executor of the tasks program, as state machines without I/O. `docs/internals/tasks.md` is the
//! protocol; `docs/internals/endpoints.md` says how drivers use them.

pub mod blob;
pub mod client;
pub mod executor;

pub mod functions;
pub mod place;
pub mod proof;
pub mod resources;

#[doc(hidden)]
pub use midflight_endpoint::mutants;
