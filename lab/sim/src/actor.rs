//! Actors: what runs on a node of the world.

use crate::{Context, NodeId};
use midflight_endpoint::{File, Link, Nanos};
use rand_pcg::Pcg64;
use std::any::Any;
use std::net::SocketAddr;

/// What runs on a node.
pub trait Actor: Any {
    /// Called when its process starts.
    fn start(&mut self, _context: &mut Context<'_>) {}

    /// A datagram has arrived.
    fn datagram(&mut self, _context: &mut Context<'_>, _from: SocketAddr, _datagram: &[u8]) {}

    /// A datagram to another node passes the actor's switch ([`crate::World::attach`]). The actor may change or keep
    /// it, or change its target.
    fn passing(&mut self, _context: &mut Context<'_>, _passing: &mut Passing<'_>) -> Passage {
        Passage::GoesOn
    }

    /// A requested wake-up.
    fn wake(&mut self, _context: &mut Context<'_>, _wake: Wake) {}

    /// A request from its user ([`crate::Action::Command`]). It ignores unknown ones.
    fn command(&mut self, _context: &mut Context<'_>, _command: Box<dyn Any>) {}

    /// Its disk has made this batch and all before it durable ([`Context::persist`]).
    fn persisted(&mut self, _context: &mut Context<'_>, _batch: u64) {}

    /// An event on a link ([`Context::drive_replica`]).
    fn link(&mut self, _context: &mut Context<'_>, _link: Link, _event: LinkEvent<'_>) {}

    /// Time that one of its threads ([`crate::World::set_threads`]) works on this datagram before [`Actor::datagram`] is
    /// called.
    fn cost(&self, _from: SocketAddr, _datagram: &[u8]) -> Nanos {
        0
    }

    /// The same for a message of a link.
    fn message_cost(&self, _message: &[u8]) -> Nanos {
        0
    }
}

/// A datagram that passes a switch.
#[derive(Debug)]
pub struct Passing<'a> {
    /// The sending node, as far as the world knows.
    pub from: NodeId,
    /// The source address.
    pub source: SocketAddr,
    /// The target; may be changed.
    pub to: SocketAddr,
    /// The payload; may be changed.
    pub datagram: &'a mut Vec<u8>,
}

/// Outcome of a datagram that has passed a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It is forwarded as it is now.
    GoesOn,
    /// The program has kept it; it may send the result later ([`Context::forward`]).
    Ends,
}

/// Why an actor is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time requested with [`Context::wake_at`].
    Time,
    /// The token given to [`Context::after`].
    Token(u64),
}

/// An event on a link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent<'a> {
    /// The link is up.
    Up,
    /// The link has broken.
    Broken,
    /// A message has arrived.
    Message(&'a [u8]),
    /// The link was full, and has room again.
    Room,
}

/// What a process gets when it starts.
#[derive(Debug)]
pub struct Birth {
    /// Its node.
    pub node: NodeId,
    /// Its address.
    pub address: SocketAddr,
    /// By its node's clock.
    pub now: Nanos,
    /// Random numbers of this life only.
    pub random: Pcg64,
    /// The durable files of its disk.
    pub files: Vec<(File, Vec<u8>)>,
}

/// Creates a process, at first and after each crash.
pub type Factory = Box<dyn Fn(&mut Birth) -> Box<dyn Actor>>;
