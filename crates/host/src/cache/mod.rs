//! A client of a replicated cache: gets by the replicas protocol, each from one replica; sets and deletes at all replicas, over TCP.
//!
//! | file | subject |
//! |---|---|
//! | `builder` | describes and starts a client |
//! | `client` | get, and what all operations share |
//! | `handler` | reads answers, and passes them to those who wait |
//! | `pending` | what one waits on: a handle, or a queue of many |
//! | `long` | values that no datagram holds, and gets that a server could not answer: other replicas are asked over TCP |
//! | `writes` | set and delete |
//! | `streams`, `exchange` | connections to servers: kept for the next operation; one request and one answer on each |
//! | `error`, `counters` | what can go wrong, and what became of everything |

mod builder;
mod client;
mod counters;
mod error;
mod exchange;
mod handler;
mod long;
mod pending;
mod streams;
mod writes;

pub use builder::CacheBuilder;
pub use client::{CacheClient, Value};
pub use counters::{CacheCounters, CacheCounts};
pub use error::{CacheError, FailedServer, ServerError, WriteError};
pub use midflight_replicas::client::{Counters, Failure};
pub use midflight_replicas::select::{Algorithm, UnknownAlgorithm};
pub use midflight_wire::replicas::store::{KEY_MAX, VALUE_MAX};
pub use pending::{Completed, Completions, GetHandle, GetOutcome};
