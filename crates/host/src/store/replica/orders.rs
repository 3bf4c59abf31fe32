//! An operator's orders. Any thread may give one; the replica's thread carries it out.

use midflight_endpoint::Nanos;
use midflight_store::replica::{Backup, ChangeError, HandOverError, Member, Replica};
// Unlike crossbeam's channels, these drop queued orders with the receiver, which tells the callers.
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

const WAITING_MAX: usize = 16;

/// An order for a leading replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaOrder {
    /// Adds a member; its replica may start to wait for this before or after.
    Add(Member),
    /// Removes the member of this id.
    Remove(u64),
    /// Transfers the leadership to this member.
    Transfer(u64),
    /// Deletes all data.
    Flush,
}

impl ReplicaOrder {
    /// Whether completion is awaited, not only the begin.
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

/// An order, or the wish for a backup, and who waits for it.
#[derive(Debug)]
enum Wish {
    Order(ReplicaOrder, SyncSender<Begun>),
    Backup(SyncSender<Result<Backup, ChangeError>>),
}

#[derive(Debug)]
pub(super) struct Orders(SyncSender<Wish>);

/// Dropping it tells the callers that their orders will not be carried out.
#[derive(Debug)]
pub(super) struct Waiting {
    orders: Receiver<Wish>,
    /// The caller of a transfer; a replica has one at a time.
    hand_over: Option<SyncSender<Begun>>,
}

pub(super) fn queue() -> (Orders, Waiting) {
    let (sender, orders) = sync_channel(WAITING_MAX);
    (Orders(sender), Waiting { orders, hand_over: None })
}

impl Orders {
    /// Waits until the order has begun; for a transfer, until its outcome is known.
    pub(super) fn carry_out(&self, order: ReplicaOrder, wake: impl FnOnce()) -> Result<(), String> {
        self.wait(|reply| Wish::Order(order, reply), wake)
    }

    pub(super) fn backup(&self, wake: impl FnOnce()) -> Result<Backup, String> {
        self.wait(Wish::Backup, wake)
    }

    fn wait<T>(
        &self,
        wish: impl FnOnce(SyncSender<Result<T, ChangeError>>) -> Wish,
        wake: impl FnOnce(),
    ) -> Result<T, String> {
        let ended = || "the replica has ended".to_owned();
        let (reply, answer) = sync_channel(1);
        self.0.try_send(wish(reply)).map_err(|refused| match refused {
            TrySendError::Full(_) => "too many orders wait already".into(),
            TrySendError::Disconnected(_) => ended(),
        })?;
        wake();
        answer.recv().map_err(|_| ended())?.map_err(|error| error.to_string())
    }
}

impl Waiting {
    pub(super) fn begin(&mut self, now: Nanos, replica: &mut Replica) {
        for wish in self.orders.try_iter() {
            let (order, reply) = match wish {
                Wish::Order(order, reply) => (order, reply),
                Wish::Backup(reply) => {
                    let _ = reply.try_send(replica.backup(now));
                    continue;
                }
            };
            let has_outcome = order.has_outcome();
            match order.begin(now, replica) {
                Ok(()) if has_outcome => self.hand_over = Some(reply),
                // Fails if the caller no longer waits.
                begun => drop(reply.try_send(begun)),
            }
        }
    }

    pub(super) fn handed_over(&mut self, outcome: Result<(), HandOverError>) {
        if let Some(reply) = self.hand_over.take() {
            let _ = reply.try_send(outcome.map_err(ChangeError::from));
        }
    }
}
