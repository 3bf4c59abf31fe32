//! The engines of Midflight's programs.
//!
//! [`Tasks`] is the cluster's one task queue, the C core: datagrams in, datagrams out. `docs/internals/core.md` explains
//! its structures, `docs/internals/tasks.md` the protocol. [`asic`] is the same queue as a program of a switch's pipeline,
//! in the model of such a switch. What the protocol demands of each packet, `crates/spec` says.

pub mod asic;
mod cookie;
mod ffi;
#[cfg(feature = "kernel")]
pub mod kernel;
mod memory;
#[cfg(feature = "mutants")]
pub mod mutants;
mod purge;
mod read;
mod tasks;
mod verdict;
mod xdp_mode;

pub use cookie::Cookies;
pub use ffi::{OPERATIONS, Stats, TICK_SLOTS, WAIT_BUCKETS};
pub use purge::{Purge, Which};
pub use read::read;
pub use tasks::{ConfigError, Out, Tasks, TasksConfig};
pub use verdict::Verdict;
pub use xdp_mode::XdpMode;

/// A datagram and where it goes.
pub type Datagram = (std::net::SocketAddr, Vec<u8>);
