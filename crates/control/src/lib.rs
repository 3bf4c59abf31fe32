//! The control side of a switch: its configuration and its status.
//!
//! - [`admin`]: the operator's requests, over a Unix socket of the switch's machine;
//! - [`config`]: the documented TOML configuration: keys of all switches, and a table for the program;
//! - [`executor`]: the status of an executor;
//! - [`file`](mod@file): files that users write, with one-line errors;
//! - [`load`]: load reports in ORCA's format, for other proxies;
//! - [`metrics`]: a [`Snapshot`] of the switch, and its Prometheus text;
//! - [`watch`]: live views of it;
//! - [`http`]: the server of `/metrics`, `/healthz` and `/status`;
//! - [`tasks`], [`store`]: the table and the metrics of a program each; [`cache`]: also of its controller, clients and agents.
//!
//! This crate does not touch the data path: it turns the switch's snapshots into text.

pub mod admin;
pub mod cache;
pub mod config;
pub mod executor;
pub mod file;
pub mod http;
pub mod load;
pub mod metrics;
pub mod store;
pub mod tasks;
pub mod watch;

pub use cache::{CacheStatus, CacheTable};
pub use config::{Config, EngineConfig, EngineKind, ProgramTable, SwitchTable};
pub use file::FileError;
pub use metrics::{EngineStatus, ProgramStatus, ShellCounters, Snapshot, Surroundings};
pub use store::{StoreStatus, StoreTable};
pub use tasks::{ExecutorsTable, TasksStatus, TasksTable};
