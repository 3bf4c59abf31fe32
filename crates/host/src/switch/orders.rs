//! What the operator wants of the program: asked by any thread, done by the switch's between packets, a bounded part at a
//! time.

use super::hosted::Hosted;
use crossbeam_channel::{Receiver, Sender, bounded};
use midflight_dataplane::program::{Program, SoftProgram};

/// Orders that may wait for their turn.
const WAITING_MAX: usize = 16;

/// An order that is done, or why it could not be.
pub(super) type Done<P> = Result<<P as Program>::Order, String>;

#[derive(Debug)]
struct Order<P: Program> {
    order: P::Order,
    reply: Sender<Done<P>>,
}

/// To the switch's thread.
#[derive(Debug)]
pub(super) struct Orders<P: Program> {
    asked: Sender<Order<P>>,
    to_do: Receiver<Order<P>>,
}

impl<P: SoftProgram> Orders<P> {
    pub(super) fn new() -> Self {
        let (asked, to_do) = bounded(WAITING_MAX);
        Self { asked, to_do }
    }

    /// Gives an order; it comes back when all of it is done. `None`: too many wait already.
    pub(super) fn give(&self, order: P::Order) -> Option<Receiver<Done<P>>> {
        let (reply, answer) = bounded(1);
        self.asked.try_send(Order { order, reply }).ok()?;
        Some(answer)
    }
}

/// The order that the switch's thread is at.
#[derive(Debug)]
pub(super) struct OrderInHand<P: Program>(Option<Order<P>>);

impl<P: SoftProgram> OrderInHand<P> {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Goes on with a bounded part. Whether there is more to do.
    pub(super) fn go_on(&mut self, orders: &Orders<P>, engine: &mut dyn Hosted<P>) -> bool {
        let Some(Order { mut order, reply }) = self.0.take().or_else(|| orders.to_do.try_recv().ok()) else {
            return false;
        };
        let ended = match engine.order(&mut order) {
            Ok(false) => {
                self.0 = Some(Order { order, reply });
                return true;
            }
            Ok(true) => Ok(order),
            Err(error) => Err(error.to_string()),
        };
        // Whoever asked may have gone.
        let _ = reply.try_send(ended);
        true
    }
}
