//! A client of the store: operations that wait for their answers, from any number of threads.
//!
//! `builder` describes and starts a client; `client` has the operations; `pending` is what one waits on; `handler` passes answers
//! to those who wait.

mod builder;
mod client;
mod handler;
mod pending;

pub use builder::KvBuilder;
pub use client::{Cas, KvClient, KvCounts};
pub use midflight_reads::client::{Answer, Failure, Operation, Reached, SubmitError};
pub use pending::{KvError, KvHandle};
