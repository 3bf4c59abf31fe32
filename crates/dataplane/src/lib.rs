//! The engines of Midflight's programs.
//!
//! [`Tasks`] is the cluster's one task queue, the C core: datagrams in, datagrams out. `docs/internals/core.md` explains
//! its structures, `docs/internals/tasks.md` the protocol. [`asic`] is the same queue as a program of a switch's pipeline,
//! in the model of such a switch. [`model`] says what the protocol demands of each packet, and [`transcript`] tells stories
//! to any engine.

pub mod asic;
mod cookie;
mod ffi;
#[cfg(feature = "kernel")]
pub mod kernel;
mod memory;
pub mod model;
#[cfg(feature = "mutants")]
pub mod mutants;
mod purge;
mod read;
mod tasks;
pub mod transcript;
mod verdict;
mod xdp_mode;

pub use cookie::Cookies;
pub use ffi::{OPERATIONS, Stats, TICK_SLOTS, WAIT_BUCKETS};
pub use purge::{Purge, Which};
pub use tasks::{ConfigError, Out, Tasks, TasksConfig};
pub use verdict::Verdict;
pub use xdp_mode::XdpMode;

/// A datagram and where it goes.
pub type Datagram = (std::net::SocketAddr, Vec<u8>);
