//! A client of the store: blocking operations, from any number of threads.

mod builder;
mod client;
mod handler;
mod pending;

pub use builder::KvBuilder;
pub use client::{Cas, KvClient, KvCounts};
pub use midflight_reads::client::{Answer, Failure, Operation, Reached, SubmitError};
pub use pending::{KvError, KvHandle};
