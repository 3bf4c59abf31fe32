//! What an operator wants of a replica. Any thread may say so; the replica's thread begins it.

use midflight_endpoint::Nanos;
use midflight_reads::replica::{ChangeError, HandOverError, Member, Replica};
// Not crossbeam's: only these drop what is queued when the receiver goes, so that whoever waits for it hears that.
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Orders that may wait for their turn.
const WAITING_MAX: usize = 16;

/// What an operator may want of a replica that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaOrder {
    /// A new member, which waits for that or will.
    Add(Member),
    /// The member of this id leaves.
    Remove(u64),
    /// The member of this id leads.
    Transfer(u64),
    /// All data goes.
    Flush,
}

impl ReplicaOrder {
    /// Whether it is answered when it is done, by an event, and not when it is begun.
    fn has_outcome(&self) -> bool {
        matches!(self, Self::Transfer(_))
    }

    fn begin(self, now: Nanos, replica: &mut Replica) -> Result<(), ChangeError> {
        match self {
            Self::Add(member) => replica.add_member(now, member),
            Self::Remove(id) => replica.remove_member(now, id),
            Self::Transfer(to) => replica.transfer(now, to),
            Self::Flush => replica.flush(now),
        }
    }
}

type Begun = Result<(), ChangeError>;

/// Where orders are given.
#[derive(Debug)]
pub(super) struct Orders(SyncSender<(ReplicaOrder, SyncSender<Begun>)>);

/// Those that wait for the replica's thread. When it is dropped, all who wait hear that their order will not be begun.
#[derive(Debug)]
pub(super) struct Waiting {
    orders: Receiver<(ReplicaOrder, SyncSender<Begun>)>,
    /// Who waits for what comes of a hand-over. A replica has one at a time.
    hand_over: Option<SyncSender<Begun>>,
}

pub(super) fn queue() -> (Orders, Waiting) {
    let (sender, orders) = sync_channel(WAITING_MAX);
    (Orders(sender), Waiting { orders, hand_over: None })
}

impl Orders {
    /// Queues an order and waits until it is begun; a hand-over, until it is known what has come of it.
    pub(super) fn carry_out(&self, order: ReplicaOrder, wake: impl FnOnce()) -> Result<(), String> {
        let ended = || "the replica has ended".to_owned();
        let (reply, answer) = sync_channel(1);
        self.0.try_send((order, reply)).map_err(|refused| match refused {
            TrySendError::Full(_) => "too many orders wait already".into(),
            TrySendError::Disconnected(_) => ended(),
        })?;
        wake();
        answer.recv().map_err(|_| ended())?.map_err(|error| error.to_string())
    }
}

impl Waiting {
    /// Begins all that wait.
    pub(super) fn begin(&mut self, now: Nanos, replica: &mut Replica) {
        for (order, reply) in self.orders.try_iter() {
            let has_outcome = order.has_outcome();
            match order.begin(now, replica) {
                Ok(()) if has_outcome => self.hand_over = Some(reply),
                // It fails if the caller no longer waits, and then nobody needs the result.
                begun => drop(reply.try_send(begun)),
            }
        }
    }

    /// What has come of a hand-over.
    pub(super) fn handed_over(&mut self, outcome: Result<(), HandOverError>) {
        if let Some(reply) = self.hand_over.take() {
            let _ = reply.try_send(outcome.map_err(ChangeError::from));
        }
    }
}
