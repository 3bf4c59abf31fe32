//! The reads program in the simulated world: switches, replicas with disks and links, and clients that work without pause.

pub mod check;
mod client;
mod late;
mod nodes;
mod replica;
mod switch;

pub use client::{Ask, ClientActor, Load, Work};
pub use late::Late;
pub use nodes::{add_client, add_replica, add_switch, client, replica, switch};
pub use replica::{Order, ReplicaActor};
pub use switch::SwitchActor;

use crate::Context;
use midflight_dataplane::reads::Verdict;
use midflight_reads::client::{Answer, Failure, Operation, OperationKey};
use midflight_reads::replica::Event;

/// What happens in a store.
#[derive(Clone, Debug)]
pub enum ReadsEvent {
    /// A client begins an operation.
    Begun {
        /// Which one, of its node's present process.
        key: OperationKey,
        /// What it does.
        operation: Operation,
    },
    /// It has ended.
    Ended {
        /// Which one.
        key: OperationKey,
        /// What came of it.
        outcome: Result<Answer, Failure>,
    },
    /// A replica says something.
    Replica(Event),
    /// A replica cannot start with the files that it finds.
    Unusable(String),
    /// A switch passes a request of this session to a replica.
    Passed {
        /// Its SID.
        sid: u64,
    },
    /// A write has taken place that had to be refused.
    Obeyed,
    /// A switch's verdict on a datagram.
    Verdict(Verdict),
}

/// Records an event of the node whose turn it is, as `(NodeId, ReadsEvent)`.
fn record(context: &mut Context<'_>, event: ReadsEvent) {
    context.record(&(context.node(), event));
}
