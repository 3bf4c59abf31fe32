//! The control side of a switch: what it is told and what it says of itself.
//!
//! - [`admin`]: the operator's requests, over a Unix socket of the switch's machine;
//! - [`config`]: the documented TOML configuration, with every bound and timeout of the switch;
//! - [`file`](mod@file): files that people write, and what is wrong with them, on one line;
//! - [`resources`]: names of resources and the bits of a task's mask that they stand for;
//! - [`metrics`]: a [`Snapshot`] of the switch, and its Prometheus text;
//! - [`http`]: the server of `/metrics`, `/healthz` and `/status`;
//! - [`connections`]: a table of TCP connections, of which each source address has its share.
//!
//! Nothing here touches the data path: the switch hands out snapshots, this crate turns them into text.

pub mod admin;
pub mod config;
pub mod connections;
pub mod file;
pub mod http;
pub mod metrics;
pub mod resources;

pub use config::{Config, EngineConfig, EngineKind};
pub use file::FileError;
pub use metrics::{EngineStatus, ShellCounters, Snapshot};
pub use resources::{ResourceError, ResourceNames};
