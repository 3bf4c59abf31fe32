//! The safe face of Midflight's C core, the soft engine.
//!
//! [`Tasks`] is the cluster's one task queue: datagrams in, datagrams out. `docs/internals/core.md` explains its
//! structures, `docs/internals/tasks.md` the protocol.

mod ffi;
mod memory;
mod tasks;
mod verdict;

pub use ffi::{OPERATIONS, Stats, WAIT_BUCKETS};
pub use tasks::{ConfigError, Out, Tasks, TasksConfig};
pub use verdict::Verdict;
