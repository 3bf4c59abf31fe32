//! Arguments and results that exceed a packet, by reference: the side that has the bytes serves them over TCP, the other
//! side fetches them. A reference (`BlobRef`: id, length, port) is in the packet; the IP address is that of its sender.
//!
//! Small arguments are packed: many of them are in one blob, a *pack*, and a fetch brings a part of it, with the arguments
//! of tasks that probably come next (`docs/internals/arguments.md`).
//!
//! `format` has the bytes of requests and answers. Places for connections are shared between source addresses (T14), and within
//! a share those that have not proved anything give way to later ones; a client that gets none is told so, and tries again a
//! little later. A connection is closed on an unknown name, on a request without proof, on a malformed one, and when one of the
//! times of [`BlobOptions`] runs out. Each reason for refusing or closing has a counter of its own in [`BlobCounters`].

mod arguments;
mod content;
mod counters;
mod fetch;
mod format;
mod options;
mod pack;
mod server;
mod store;
#[cfg(test)]
mod tests;

pub use arguments::ArgumentCounts;
pub(crate) use arguments::Arguments;
pub(crate) use content::{Content, Piece};
pub use counters::BlobCounters;
pub(crate) use fetch::{FetchError, Fetcher};
pub use options::BlobOptions;
pub(crate) use pack::{PACKED_MAX, Packs};
pub(crate) use server::BlobServer;
pub(crate) use store::{BlobLease, BlobStore, StoreFull};

use counters::Closing;

/// The bytes that must be transferred within [`BlobOptions::progress_timeout`], or the rest if that is less.
const PROGRESS_BYTES: usize = 256 << 10;
