//! Arguments and results that exceed a packet, by reference: the side that has the bytes serves them over TCP. The packet carries a
//! reference (`BlobRef`: id, length, port); the IP address is its sender's.
//!
//! `format` defines requests and answers. Source addresses share the connections (T14); within a share, those without proof are evicted
//! first. A refused client is told so and retries. [`BlobCounters`] counts each reason for closing a connection.

mod arguments;
mod content;
mod counters;
mod fetch;
mod format;
mod options;
mod server;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use arguments::Arguments;
pub(crate) use content::{Content, Piece};
pub use counters::BlobCounters;
pub(crate) use fetch::{FetchError, Fetcher};
pub use options::BlobOptions;
pub(crate) use server::BlobServer;
pub(crate) use store::{BlobLease, BlobStore};

use counters::Closing;

/// Bytes to be transferred within [`BlobOptions::progress_timeout`], or the rest if less.
const PROGRESS_BYTES: usize = 256 << 10;
