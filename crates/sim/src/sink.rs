//! Who is told what happens in a world, and who sees it.

use crate::actors::switch::Turn;
use crate::{Happening, NodeId};
use midflight_endpoint::Nanos;
use std::any::Any;

/// Is told what happens, and owns it: a [`crate::History`] (checks), or histograms (figures: constant memory whatever
/// the number of tasks).
pub trait Sink: Any {
    /// Something happened at `at`, by the world's clock.
    fn happened(&mut self, at: Nanos, happening: Happening);
}

/// Sees what happens, without a part in it: an omniscient checker.
pub trait Observer: Any {
    /// A switch took a datagram, or time passed for it.
    fn switch_took(&mut self, at: Nanos, switch: NodeId, turn: &Turn<'_>);

    /// A datagram has arrived, and is about to be handled.
    fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let (_, _, _, _) = (at, from, to, datagram);
    }

    /// Something happened.
    fn happened(&mut self, at: Nanos, happening: &Happening) {
        let (_, _) = (at, happening);
    }
}
