//! The control side of a switch: its configuration, and what it reports.
//!
//! - [`admin`]: the operator's requests, over a Unix socket of the switch's machine;
//! - [`config`]: the documented TOML configuration: keys of all switches, and a table for the program of this one;
//! - [`executor`]: what an executor reports;
//! - [`file`](mod@file): files that people write, with one-line errors;
//! - [`load`]: load reports in ORCA's form, for proxies that are not ours;
//! - [`metrics`]: a [`Snapshot`] of the switch, and its Prometheus text;
//! - [`watch`]: what people see of it while it works;
//! - [`http`]: the server of `/metrics`, `/healthz` and `/status`;
//! - [`tasks`], [`reads`]: the table and the metrics of a program each; [`replicas`]: also the controller of its network.
//!
//! Nothing here touches the data path: the switch hands out snapshots, this crate turns them into text.

pub mod admin;
pub mod config;
pub mod executor;
pub mod file;
pub mod http;
pub mod load;
pub mod metrics;
pub mod reads;
pub mod replicas;
pub mod tasks;
pub mod watch;

pub use config::{Config, EngineConfig, EngineKind, ProgramTable, SwitchTable};
pub use file::FileError;
pub use metrics::{EngineStatus, ProgramStatus, ShellCounters, Snapshot, Surroundings};
pub use reads::{ReadsStatus, ReadsTable};
pub use replicas::{ReplicasStatus, ReplicasTable};
pub use tasks::{ExecutorsTable, TasksStatus, TasksTable};
