//! What runs on a node of the world.

use crate::{Context, NodeId};
use midflight_endpoint::{File, Link, Nanos};
use rand_pcg::Pcg64;
use std::any::Any;
use std::net::SocketAddr;

/// What runs on a node.
pub trait Actor: Any {
    /// It begins to run.
    fn start(&mut self, _context: &mut Context<'_>) {}

    /// A datagram has arrived.
    fn datagram(&mut self, _context: &mut Context<'_>, _from: SocketAddr, _datagram: &[u8]) {}

    /// A datagram to another node passes the switch that it is in ([`crate::World::attach`]). It may change the datagram and
    /// where it goes, or keep it.
    fn passing(&mut self, _context: &mut Context<'_>, _passing: &mut Passing<'_>) -> Passage {
        Passage::GoesOn
    }

    /// A time that it asked for has come.
    fn wake(&mut self, _context: &mut Context<'_>, _wake: Wake) {}

    /// Its user wants something of it ([`crate::Action::Command`]). What means nothing to it, it ignores.
    fn command(&mut self, _context: &mut Context<'_>, _command: Box<dyn Any>) {}

    /// Its disk has made safe this batch and all before it ([`Context::persist`]).
    fn persisted(&mut self, _context: &mut Context<'_>, _batch: u64) {}

    /// Something has happened on a link ([`Context::drive_replica`]).
    fn link(&mut self, _context: &mut Context<'_>, _link: Link, _event: LinkEvent<'_>) {}

    /// How long it takes to decide about this datagram, one after the other, before [`Actor::datagram`] is called:
    /// what a scheduler of one thread costs.
    fn cost(&self, _from: SocketAddr, _datagram: &[u8]) -> Nanos {
        0
    }
}

/// A datagram on its way through a switch.
#[derive(Debug)]
pub struct Passing<'a> {
    /// Who sent it, as far as the world knows.
    pub from: NodeId,
    /// Where that was when it sent it.
    pub source: SocketAddr,
    /// Where it goes; may be changed.
    pub to: SocketAddr,
    /// Its bytes; may be changed.
    pub datagram: &'a mut Vec<u8>,
}

/// What becomes of a datagram that has passed a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It goes on, as it is now.
    GoesOn,
    /// The program has kept it; it may send what comes of it later ([`Context::forward`]).
    Ends,
}

/// Why an actor is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time asked for by [`Context::wake_at`].
    Time,
    /// What was given to [`Context::after`].
    Token(u64),
}

/// What has happened on a link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent<'a> {
    /// It is there.
    Up,
    /// It is gone.
    Broken,
    /// A message has arrived.
    Message(&'a [u8]),
    /// It had no room, and has some now.
    Room,
}

/// What a process finds when it begins.
#[derive(Debug)]
pub struct Birth {
    /// Its node.
    pub node: NodeId,
    /// Where it is reached.
    pub address: SocketAddr,
    /// By its node's clock.
    pub now: Nanos,
    /// Of this life only.
    pub random: Pcg64,
    /// What its disk has kept.
    pub files: Vec<(File, Vec<u8>)>,
}

/// Makes a new process, at first and after each crash.
pub type Factory = Box<dyn Fn(&mut Birth) -> Box<dyn Actor>>;
