//! What happens in a world, and who hears of it.

use crate::{Actor, NodeId};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::net::SocketAddr;

/// Something that happened: to a node, to the network, or in a program.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'a> {
    /// A node died.
    Crashed {
        /// Which one.
        node: NodeId,
    },
    /// A node came back.
    Restarted {
        /// Which one.
        node: NodeId,
    },
    /// A node stands still.
    Paused {
        /// Which one.
        node: NodeId,
    },
    /// A node goes on.
    Resumed {
        /// Which one.
        node: NodeId,
    },
    /// A node has another address.
    Moved {
        /// Which one.
        node: NodeId,
        /// Its address from now on.
        to: SocketAddr,
    },
    /// A partition began.
    Partitioned,
    /// All partitions ended.
    Healed,
    /// An actor recorded something ([`crate::Context::record`]): of a type of its program's, which the world does not know.
    Program(&'a dyn Any),
}

impl<'a> Happening<'a> {
    /// What an actor recorded, if it is of this type.
    #[must_use]
    pub fn of<T: Any>(&self) -> Option<&'a T> {
        match self {
            Self::Program(what) => what.downcast_ref(),
            _ => None,
        }
    }
}

/// Hears what happens and keeps what it needs of it: all (tests), or histograms (figures: constant memory whatever the number
/// of tasks).
pub trait Sink: Any {
    /// Something happened at `at`, by the world's clock.
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>);
}

/// Sees everything, without a part in it: a checker. Times are by the world's clock.
pub trait Observer: Any {
    /// A datagram has arrived, and is about to be handled.
    fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let (_, _, _, _) = (at, from, to, datagram);
    }

    /// A node has handled a datagram, or was woken (`None`); this is its actor afterwards.
    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) {
        let (_, _, _, _) = (at, node, actor, datagram);
    }

    /// Something happened.
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let (_, _) = (at, happening);
    }
}
