//! What the operator wants to be gone from the queue: asked by any thread, done by the switch's between packets, a bounded
//! number of tasks at a time.

use super::life::Core;
use crossbeam_channel::{Receiver, Sender, bounded};
use midflight_dataplane::{Purge, Which};

/// Purges that may wait for their turn.
const WAITING_MAX: usize = 16;

/// How many tasks a purge took out, or why it could not.
pub(super) type Purged = Result<u32, String>;

#[derive(Debug)]
struct Order {
    purge: Purge,
    reply: Sender<Purged>,
}

/// The way to the switch's thread.
#[derive(Clone, Debug)]
pub(super) struct Purges {
    asked: Sender<Order>,
    to_do: Receiver<Order>,
}

impl Purges {
    pub(super) fn new() -> Self {
        let (asked, to_do) = bounded(WAITING_MAX);
        Self { asked, to_do }
    }

    /// Asks for a purge; the answer comes when all of the queue was looked at. `None`: too many wait already.
    pub(super) fn ask(&self, which: Which) -> Option<Receiver<Purged>> {
        let (reply, answer) = bounded(1);
        self.asked.try_send(Order { purge: Purge::new(which), reply }).ok()?;
        Some(answer)
    }
}

/// The purge that the switch's thread is at.
#[derive(Debug, Default)]
pub(super) struct Purging(Option<Order>);

impl Purging {
    /// Goes on for a bounded number of tasks. Whether there is more to do.
    pub(super) fn go_on(&mut self, purges: &Purges, core: &mut impl Core) -> bool {
        let Some(mut order) = self.0.take().or_else(|| purges.to_do.try_recv().ok()) else { return false };
        let ended = match core.purge(&mut order.purge) {
            Ok(false) => None,
            Ok(true) => Some(Ok(order.purge.purged())),
            Err(why) => Some(Err(why)),
        };
        match ended {
            // Whoever asked may have gone.
            Some(answer) => _ = order.reply.try_send(answer),
            None => self.0 = Some(order),
        }
        true
    }
}
