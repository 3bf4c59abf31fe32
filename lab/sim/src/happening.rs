//! Events of a world, and their receivers.

use crate::{Actor, NodeId};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::net::SocketAddr;

/// An event of a node, of the network, or of a program.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'a> {
    /// A node died.
    Crashed {
        /// The node.
        node: NodeId,
    },
    /// A node restarted.
    Restarted {
        /// The node.
        node: NodeId,
    },
    /// A node was paused.
    Paused {
        /// The node.
        node: NodeId,
    },
    /// A node resumed.
    Resumed {
        /// The node.
        node: NodeId,
    },
    /// A node has a new address.
    Moved {
        /// The node.
        node: NodeId,
        /// Its new address.
        to: SocketAddr,
    },
    /// A partition began.
    Partitioned,
    /// All partitions ended.
    Healed,
    /// An actor's record ([`crate::Context::record`]), of a type that only its program knows.
    Program(&'a dyn Any),
}

impl<'a> Happening<'a> {
    /// The actor's record, if it is of this type.
    #[must_use]
    pub fn of<T: Any>(&self) -> Option<&'a T> {
        match self {
            Self::Program(what) => what.downcast_ref(),
            _ => None,
        }
    }
}

/// Receives events and keeps what it needs: everything (tests), or histograms in constant memory (figures).
pub trait Sink: Any {
    /// An event at `at`, by the world's clock.
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>);
}

/// Sees everything without taking part: a checker. Times are by the world's clock.
pub trait Observer: Any {
    /// A datagram has arrived, before it is handled.
    fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let (_, _, _, _) = (at, from, to, datagram);
    }

    /// A node has handled a datagram, or was woken (`None`); `actor` is its state afterwards.
    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) {
        let (_, _, _, _) = (at, node, actor, datagram);
    }

    /// An event.
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let (_, _) = (at, happening);
    }
}
