//! The replicas program in the simulated world: operators, each with its selector beside it, servers, and clients that work without pause.

pub mod check;
mod client;
mod controller;
mod nodes;
mod operator;
mod planner;
mod selector;
mod server;
mod streams;

pub use client::{Ask, ClientActor, Pace, Work};
pub use controller::ControllerActor;
pub use nodes::{
    Beside, add_client, add_controller, add_operator, add_selector, add_server, client, controller, operator, selector,
    server,
};
pub use operator::{Controlled, Lies, OperatorActor, Rules};
pub use planner::{Mood, Planner};
pub use selector::{ReplicaGroups, SelectorActor, Slot};
pub use server::{Condition, ServerActor, Service};

use crate::Context;
use midflight_control::replicas::Event as ControllerEvent;
use midflight_dataplane::replicas::Verdict;
use midflight_placement::Instance;
use midflight_replicas::client::{Answer, Failure, ReadKey};
use midflight_wire::replicas::{Kind, Packet, parse};
use std::net::SocketAddr;
use std::rc::Rc;

/// What happens in a store.
#[derive(Clone, Debug)]
pub enum ReplicasEvent {
    /// A client begins a read.
    Begun {
        /// Which one, of its node's present process.
        key: ReadKey,
        /// The replica group that has the key.
        group: u32,
        /// What it asks: of this read only.
        token: u64,
    },
    /// A client sends a request.
    Asked {
        /// Its number.
        number: u64,
        /// The RSNode id that it names.
        rsnode: u16,
    },
    /// A read has ended.
    Ended {
        /// Which one.
        key: ReadKey,
        /// What came of it.
        outcome: Result<Answer, Failure>,
    },
    /// A selector sends a request to a server.
    Selected(Passed),
    /// A server begins to serve a request.
    Served {
        /// Of this replica group.
        group: u32,
        /// What was asked.
        token: u64,
    },
    /// An operator's verdict on a datagram, and how many datagrams it sends for it.
    Verdict {
        /// The verdict.
        verdict: Verdict,
        /// So many.
        sent: usize,
        /// Whether it has NetRS's magic.
        is_netrs: bool,
    },
    /// At a controller.
    Control(ControlEvent),
}

/// What happens at a controller.
#[derive(Clone, Debug)]
pub enum ControlEvent {
    /// It tells its driver.
    Said {
        /// What.
        event: Box<ControllerEvent>,
        /// By traffic group: where the operator is that should select for it.
        target: Vec<Option<SocketAddr>>,
    },
    /// Its planner has answered.
    Answered {
        /// What must not be taken.
        is_wrong: bool,
        /// Whether another plan is wanted in force now.
        has_changed: bool,
    },
    /// It took the plan, which was made for this.
    Took {
        /// Network, traffic, limits.
        instance: Rc<Instance>,
    },
    /// It did not.
    TookNot,
}

/// A request on its way to a server, or its answer: what an RSNode compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Passed {
    /// The client.
    pub client: SocketAddr,
    /// The request's number.
    pub number: u64,
    /// The server.
    pub server: SocketAddr,
    /// RV.
    pub retained: u16,
    /// Whether it passed a selector; else it is degraded.
    pub is_selected: bool,
}

impl Passed {
    /// What a datagram says of itself, if it is a request to a server, or an answer.
    #[must_use]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let (start, ends, kind) = match parse(datagram).ok()? {
            Packet::ForServer(kind, request, ends, _) => (request.start, ends, kind),
            Packet::Response(kind, response, _, ends, _) => (response.start, ends, kind),
            _ => return None,
        };
        Some(Self {
            client: ends.client.into(),
            number: ends.request.get(),
            server: ends.server.into(),
            retained: start.retained.get(),
            is_selected: kind == Kind::Response,
        })
    }
}

/// Records an event of the node whose turn it is, as `(NodeId, ReplicasEvent)`.
fn record(context: &mut Context<'_>, event: ReplicasEvent) {
    context.record(&(context.node(), event));
}
