//! Parts that all endpoints share: the interface of a protocol without I/O, time, and small helpers.
//! `docs/internals/endpoints.md` explains how drivers use them, `docs/internals/requester.md` the parts of clients.

mod backoff;
pub mod config;
mod counters;
mod deadlines;
mod durable;
mod linked;
#[doc(hidden)]
pub mod mutants;
mod queue;
pub mod requests;
mod round_trip;
pub mod serial;

use std::net::SocketAddr;

pub use backoff::Backoff;
pub use deadlines::Deadlines;
pub use durable::{Change, Durable, File, Persist};
pub use linked::{Lane, Link, Linked, MESSAGE_MAX};
pub use queue::Queue;
pub use round_trip::RoundTrip;

/// Nanoseconds of the driver's monotonic clock.
pub type Nanos = u64;

/// One millisecond in [`Nanos`].
pub const MS: Nanos = 1_000_000;

/// One second in [`Nanos`].
pub const SECOND: Nanos = 1_000 * MS;

/// A protocol without I/O. A driver passes it datagrams and the time, and sends the datagrams it writes.
///
/// In each turn the driver calls `handle` per received datagram, `handle_timeout` if due, and the user's requests; then
/// `poll_event` and `poll_transmit`, each until `None`. Then it sleeps until `poll_timeout` or the next input. Because only
/// `poll_transmit` writes packets, requests of one turn share them.
pub trait Endpoint {
    /// Output for the driver.
    type Event;

    /// Processes a received datagram.
    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]);

    /// Call when `poll_timeout` is due.
    fn handle_timeout(&mut self, now: Nanos);

    /// Writes the next datagram into `buffer` and returns its destination; `None` when there is none.
    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr>;

    /// The next event; `None` when there is none.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When to call `handle_timeout` next; `None` if only another input requires it.
    fn poll_timeout(&self) -> Option<Nanos>;
}
