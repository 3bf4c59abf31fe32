//! What every endpoint needs: the interface of a protocol without I/O, time, and small parts that all protocols use.
//! `docs/internals/endpoints.md` says how drivers use it.

mod backoff;
mod round_trip;
pub mod serial;

use std::net::SocketAddr;

pub use backoff::Backoff;
pub use round_trip::RoundTrip;

/// Nanoseconds of the driver's monotonic clock.
pub type Nanos = u64;

/// A millisecond.
pub const MS: Nanos = 1_000_000;

/// A second.
pub const SECOND: Nanos = 1_000 * MS;

/// A protocol without I/O: a driver feeds it datagrams and time, and sends what it wants sent.
///
/// A driver's turn: `handle` what arrived, `handle_timeout` if it is due, do what the user asked; then
/// `poll_event` until `None`; then `poll_transmit` until `None`; then sleep until `poll_timeout` or the next input.
/// Packets are written in `poll_transmit`, so what comes in together shares packets.
pub trait Endpoint {
    /// What the driver must know or do.
    type Event;

    /// A datagram has arrived.
    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]);

    /// `poll_timeout` is due.
    fn handle_timeout(&mut self, now: Nanos);

    /// Writes the next datagram to send into `buffer` and returns where to; `None` when there is none.
    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr>;

    /// The next event; `None` when there is none.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When `handle_timeout` is wanted next; `None`: not before something else happens.
    fn poll_timeout(&self) -> Option<Nanos>;
}
