//! The store program in the simulated world: switches, replicas with disks and links, and busy clients.

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
use midflight_dataplane::store::Verdict;
use midflight_store::client::{Answer, Operation, OperationKey, StoreError};
use midflight_store::replica::Event;

/// Events of a store.
#[derive(Clone, Debug)]
pub enum StoreEvent {
    /// A client begins an operation.
    Begun {
        /// Its key in the node's current process.
        key: OperationKey,
        /// The operation.
        operation: Operation,
    },
    /// A client's operation has ended.
    Ended {
        /// Its key.
        key: OperationKey,
        /// Its outcome.
        outcome: Result<Answer, StoreError>,
    },
    /// An event of a replica.
    Replica(Event),
    /// A replica cannot start with its files.
    Unusable(String),
    /// A switch passes a request to a replica.
    Passed {
        /// SID of the request's session.
        sid: u64,
    },
    /// An invalid write was executed.
    Obeyed,
    /// A switch's verdict on a datagram.
    Verdict(Verdict),
}

fn record(context: &mut Context<'_>, event: StoreEvent) {
    context.record(&(context.node(), event));
}
