//! A client of a replicated cache. A get asks one replica by the cache's protocol; sets and deletes go to all replicas over TCP.
//!
//! | file | subject |
//! |---|---|
//! | `builder` | configuration and start |
//! | `client` | get, and what all operations share |
//! | `handler` | reads answers and completes gets |
//! | `pending` | who waits for a get |
//! | `long` | gets that continue over TCP |
//! | `writes` | set and delete |
//! | `streams`, `exchange` | connections to servers; one request and its answer |
//! | `error`, `counters` | errors and counts |
//!
//! With features, the processes inside the network:
//!
//! | folder | subject |
//! |---|---|
//! | `agent` | the agent in front of a backend |
//! | `operator` | the threads of an operator: its selector, and the keeper of its rules |
//! | `controller` | the controller of all operators |
//! | `control_stream` | the stream between controller and keeper; their secret |
//! | `log_limit` | log lines that a peer may cause |

#[cfg(feature = "agent")]
pub mod agent;
mod builder;
mod client;
#[cfg(feature = "operator")]
pub mod control_stream;
#[cfg(feature = "operator")]
pub mod controller;
mod counters;
mod error;
mod exchange;
mod handler;
#[cfg(feature = "operator")]
mod log_limit;
mod long;
#[cfg(feature = "operator")]
pub mod operator;
mod pending;
mod streams;
mod writes;

pub use builder::CacheBuilder;
pub use client::{CacheClient, Value};
pub use counters::{CacheCounters, CacheCounts};
pub use error::{CacheError, FailedServer, ServerError, WriteError};
pub use midflight_cache::client::Counters;
pub use midflight_cache::select::{Algorithm, UnknownAlgorithm};
pub use midflight_wire::cache::backend::{KEY_MAX, VALUE_MAX};
pub use pending::GetOutcome;
pub use writes::SetOptions;
