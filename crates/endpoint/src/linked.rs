//! An endpoint with streams to its peers in addition to datagrams.

use crate::{Endpoint, Nanos};

/// An endpoint with links to its peers. A link delivers messages whole, in order and once, until it breaks.
///
/// The driver connects to the peers in [`peers`](Linked::peers) and reconnects after a break.
pub trait Linked: Endpoint {
    /// The identity by which its peers know it.
    fn name(&self) -> u64;

    /// Peers to connect to, with their addresses. A peer that this endpoint does not know yet may connect first.
    fn peers(&self) -> Vec<(u64, std::net::SocketAddr)>;

    /// A link is connected.
    fn link_up(&mut self, now: Nanos, link: Link);

    /// A link broke. The peer may or may not have received the last messages.
    fn link_broken(&mut self, now: Nanos, link: Link);

    /// Processes a message received on a link.
    fn handle_message(&mut self, now: Nanos, link: Link, message: &[u8]);

    /// Writes the link's next message into `buffer`, which the caller cleared; `false` if there is none. Called only while the
    /// link has room, which bounds memory for a slow peer.
    fn poll_message(&mut self, now: Nanos, link: Link, buffer: &mut Vec<u8>) -> bool;
}

/// A connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Identity of the peer.
    pub peer: u64,
    /// Purpose of the link.
    pub lane: Lane,
    /// Changes with each connection, to recognise late input of an old one.
    pub generation: u64,
}

/// Purpose of a link. Two lanes keep heartbeats from waiting behind a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Small, urgent messages.
    Prompt,
    /// Long messages, such as snapshots.
    Bulk,
}

/// Longest message, in bytes.
pub const MESSAGE_MAX: usize = 4 << 20;
