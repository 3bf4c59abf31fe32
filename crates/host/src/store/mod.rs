//! A client of the store: blocking operations, from any number of threads.

mod builder;
mod client;
mod handler;
mod pending;
#[cfg(feature = "replica")]
pub mod replica;

pub use builder::StoreBuilder;
pub use client::{Cas, StoreClient, StoreCounts};
pub use midflight_store::client::{Answer, Failure, Operation, Reached, SubmitError};
pub use pending::{StoreError, StoreHandle};
