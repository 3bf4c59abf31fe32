//! Streams between controllers and operators, as in production: messages arrive in order, each once, until the
//! connection breaks. Controllers connect. Messages without a connection are lost.

use crate::{Context, NodeId};
use midflight_endpoint::{Durable, Endpoint, Lane, Link, Linked, Nanos, Persist};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// The streams of a process. The node's number is its name for the others.
#[derive(Debug)]
pub(super) struct Streams {
    name: u64,
    peers: Vec<(u64, SocketAddr)>,
    /// Existing streams, and their unsent messages.
    waiting: BTreeMap<Link, VecDeque<Vec<u8>>>,
    due: Option<Nanos>,
}

fn name(node: NodeId) -> u64 {
    node.index() as u64
}

impl Streams {
    /// From this node to the nodes at these addresses; others may connect to it.
    pub(super) fn new(context: &Context<'_>, to: impl IntoIterator<Item = SocketAddr>) -> Self {
        let peer = |at: SocketAddr| Some((name(context.node_at(at)?), at));
        let peers = to.into_iter().filter_map(peer).collect();
        Self { name: name(context.node()), peers, waiting: BTreeMap::new(), due: None }
    }

    /// Address of a stream's other end, if this process has made it.
    pub(super) fn address(&self, link: Link) -> Option<SocketAddr> {
        self.peers.iter().find(|(peer, _)| *peer == link.peer).map(|(_, at)| *at)
    }

    pub(super) fn answer(&mut self, link: Link, message: Vec<u8>) {
        if let Some(waiting) = self.waiting.get_mut(&link) {
            waiting.push_back(message);
        }
    }

    /// Sends a message to an address, if there is a stream to it.
    pub(super) fn send(&mut self, to: SocketAddr, message: Vec<u8>) {
        let peer = self.peers.iter().find(|(_, at)| *at == to).map(|(peer, _)| *peer);
        if let Some(link) = self.waiting.keys().find(|link| Some(link.peer) == peer).copied() {
            self.answer(link, message);
        }
    }

    /// The end of a driver's turn; `due`: the process's requested wake-up.
    pub(super) fn drive(&mut self, context: &mut Context<'_>, due: Nanos) {
        self.due = Some(due);
        context.drive_replica(self);
    }
}

impl Endpoint for Streams {
    type Event = ();

    fn handle(&mut self, _now: Nanos, _from: SocketAddr, _datagram: &[u8]) {}

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, _now: Nanos, _buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.due
    }
}

impl Durable for Streams {
    fn poll_persist(&mut self) -> Option<Persist> {
        None
    }

    fn persisted(&mut self, _now: Nanos, _id: u64) {}
}

impl Linked for Streams {
    fn name(&self) -> u64 {
        self.name
    }

    fn peers(&self) -> Vec<(u64, SocketAddr)> {
        self.peers.clone()
    }

    /// One stream to each peer; the other lane is for long messages.
    fn link_up(&mut self, _now: Nanos, link: Link) {
        if link.lane == Lane::Prompt {
            self.waiting.insert(link, VecDeque::new());
        }
    }

    fn link_broken(&mut self, _now: Nanos, link: Link) {
        self.waiting.remove(&link);
    }

    fn handle_message(&mut self, _now: Nanos, _link: Link, _message: &[u8]) {}

    fn poll_message(&mut self, _now: Nanos, link: Link, buffer: &mut Vec<u8>) -> bool {
        let Some(message) = self.waiting.get_mut(&link).and_then(VecDeque::pop_front) else { return false };
        buffer.extend_from_slice(&message);
        true
    }
}
