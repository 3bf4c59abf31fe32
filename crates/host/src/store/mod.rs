//! A client of the store, for any number of threads: blocking operations, and handles to wait for or await.

mod answers;
pub mod backup;
mod builder;
mod client;
#[cfg(feature = "gateway")]
pub mod gateway;
mod handler;
#[cfg(feature = "replica")]
pub mod replica;
mod scan;

pub use builder::StoreBuilder;
pub use client::{Cas, StoreClient, StoreCounts};
pub use midflight_store::client::{
    Answer, Change, Condition, Cursor, Expiry, Operation, Page, PlaceInValue, Reached, Step, StoreError, Update,
    Updated, ValuePiece,
};
pub use scan::Scan;
