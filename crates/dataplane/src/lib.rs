//! The safe face of Midflight's C core, the soft engine.
//!
//! [`Tasks`] is the cluster's one task queue: datagrams in, datagrams out. `docs/internals/core.md` explains its
//! structures, `docs/internals/tasks.md` the protocol. [`model`] says what the protocol demands of each packet, and
//! [`transcript`] tells stories to any engine.

mod ffi;
#[cfg(feature = "kernel")]
pub mod kernel;
mod memory;
pub mod model;
#[cfg(feature = "mutants")]
pub mod mutants;
mod tasks;
pub mod transcript;
mod verdict;

pub use ffi::{OPERATIONS, Stats, TICK_SLOTS, WAIT_BUCKETS};
pub use tasks::{ConfigError, Out, Tasks, TasksConfig};
pub use verdict::Verdict;
