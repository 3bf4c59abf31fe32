//! An endpoint that has links to its peers, beside datagrams.

use crate::{Endpoint, Nanos};

/// An endpoint that has links to its peers. A link carries messages whole, in order, each once, until it breaks.
///
/// The driver makes the links, to the peers that [`peers`](Linked::peers) names, and makes them again when they break.
pub trait Linked: Endpoint {
    /// Its own name, by which its peers know it.
    fn name(&self) -> u64;

    /// The peers to have links to, each with its address. Links to others come up too, when those make them: who does not know yet
    /// that a peer has come must hear it from that peer.
    fn peers(&self) -> Vec<(u64, std::net::SocketAddr)>;

    /// A link is there.
    fn link_up(&mut self, now: Nanos, link: Link);

    /// It is gone. What was sent on it may have arrived, or not.
    fn link_broken(&mut self, now: Nanos, link: Link);

    /// A message has arrived on a link.
    fn handle_message(&mut self, now: Nanos, link: Link, message: &[u8]);

    /// Writes the next message for this link into `buffer` (cleared before); `false` if there is none. Called only while the link
    /// has room, so a slow peer costs no more memory.
    fn poll_message(&mut self, now: Nanos, link: Link, buffer: &mut Vec<u8>) -> bool;
}

/// A link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Which peer.
    pub peer: u64,
    /// Which of the links to it.
    pub lane: Lane,
    /// A new one each time that the link comes up: what is late of an old one is not taken for the new one's.
    pub generation: u64,
}

/// What a link is for. Heartbeats never wait behind a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What must arrive soon.
    Prompt,
    /// What is long.
    Bulk,
}

/// Bytes of the longest message.
pub const MESSAGE_MAX: usize = 4 << 20;
