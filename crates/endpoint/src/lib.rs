//! The common parts of all endpoints: the interface of a protocol without I/O, time, and small parts that all protocols use.
//! `docs/internals/endpoints.md` says how drivers use it.

mod backoff;
mod deadlines;
mod durable;
mod linked;
#[doc(hidden)]
pub mod mutants;
mod round_trip;
pub mod serial;

use std::net::SocketAddr;

pub use backoff::Backoff;
pub use deadlines::Deadlines;
pub use durable::{Change, Durable, File, Persist};
pub use linked::{Lane, Link, Linked, MESSAGE_MAX};
pub use round_trip::RoundTrip;

/// Nanoseconds of the driver's monotonic clock.
pub type Nanos = u64;

/// A millisecond.
pub const MS: Nanos = 1_000_000;

/// A second.
pub const SECOND: Nanos = 1_000 * MS;

/// A protocol without I/O: a driver passes it datagrams and the time, and sends the datagrams that it writes.
///
/// A driver's turn: `handle` each datagram that arrived, `handle_timeout` if it is due, do the user's requests; then
/// `poll_event` until `None`; then `poll_transmit` until `None`; then sleep until `poll_timeout` or the next input.
/// Packets are written in `poll_transmit`, so requests that came together share packets.
pub trait Endpoint {
    /// An event that the driver must know or act on.
    type Event;

    /// A datagram has arrived.
    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]);

    /// `poll_timeout` is due.
    fn handle_timeout(&mut self, now: Nanos);

    /// Writes the next datagram to send into `buffer` and returns where to; `None` when there is none.
    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr>;

    /// The next event; `None` when there is none.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When `handle_timeout` must be called next; `None`: not before another input.
    fn poll_timeout(&self) -> Option<Nanos>;
}
