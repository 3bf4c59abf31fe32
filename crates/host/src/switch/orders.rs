//! Orders of the operator. Any thread may give one; the switch's thread carries it out between packets, a bounded part at a time.

use super::hosted::Hosted;
use crossbeam_channel::{Receiver, Sender, bounded};
use midflight_dataplane::program::{Program, SoftProgram};

/// Orders that may wait for their turn.
const WAITING_MAX: usize = 16;

/// An order with its results, or why it failed.
pub(super) type Done<P> = Result<<P as Program>::Order, String>;

#[derive(Debug)]
struct Order<P: Program> {
    order: P::Order,
    reply: Sender<Done<P>>,
}

/// The queue of orders for the switch's thread.
#[derive(Debug)]
pub(super) struct Orders<P: Program> {
    sender: Sender<Order<P>>,
    receiver: Receiver<Order<P>>,
}

impl<P: SoftProgram> Orders<P> {
    pub(super) fn new() -> Self {
        let (sender, receiver) = bounded(WAITING_MAX);
        Self { sender, receiver }
    }

    /// Queues an order. The receiver returned gets it back when all of it is done. `None`: too many wait already.
    pub(super) fn give(&self, order: P::Order) -> Option<Receiver<Done<P>>> {
        let (reply, answer) = bounded(1);
        self.sender.try_send(Order { order, reply }).ok()?;
        Some(answer)
    }
}

/// The order that the switch's thread is carrying out, if any.
#[derive(Debug)]
pub(super) struct CurrentOrder<P: Program>(Option<Order<P>>);

impl<P: SoftProgram> CurrentOrder<P> {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Does the next bounded part of this order, or of the next one. `false`: there was nothing to do.
    pub(super) fn go_on(&mut self, orders: &Orders<P>, engine: &mut dyn Hosted<P>) -> bool {
        let Some(Order { mut order, reply }) = self.0.take().or_else(|| orders.receiver.try_recv().ok()) else {
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
        // It fails if the caller no longer waits, and then nobody needs the result.
        let _ = reply.try_send(ended);
        true
    }
}
