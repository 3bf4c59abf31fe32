//! The cache program in the simulated world: operators, each with its selector, servers, and busy clients.

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
use midflight_cache::client::{Answer, Failure, ReadKey};
use midflight_cache::control::Event as ControllerEvent;
use midflight_dataplane::cache::Verdict;
use midflight_placement::Instance;
use midflight_wire::cache::{Kind, Packet, parse};
use std::net::SocketAddr;
use std::rc::Rc;

/// Events of a cache.
#[derive(Clone, Debug)]
pub enum CacheEvent {
    /// A client begins a read.
    Begun {
        /// Its key in the node's current process.
        key: ReadKey,
        /// The replica group that has the key.
        group: u32,
        /// The read's unique payload.
        token: u64,
    },
    /// A client sends a request.
    Asked {
        /// Its number.
        number: u64,
        /// Its RSNode id.
        rsnode: u16,
    },
    /// A read has ended.
    Ended {
        /// Its key.
        key: ReadKey,
        /// Its outcome.
        outcome: Result<Answer, Failure>,
    },
    /// A selector sends a request to a server.
    Selected(Passed),
    /// A server begins to serve a request.
    Served {
        /// Its replica group.
        group: u32,
        /// Its payload.
        token: u64,
    },
    /// An operator's verdict on a datagram.
    Verdict {
        /// The verdict.
        verdict: Verdict,
        /// Number of datagrams that it sends for it.
        sent: usize,
        /// Whether it has NetRS's magic.
        is_netrs: bool,
    },
    /// An event of a controller.
    Control(ControlEvent),
}

/// Events of a controller.
#[derive(Clone, Debug)]
pub enum ControlEvent {
    /// An event for its driver.
    Driver {
        /// The event.
        event: Box<ControllerEvent>,
        /// By traffic group, the address of the operator that should select for it.
        target: Vec<Option<SocketAddr>>,
    },
    /// Its planner has answered.
    Answered {
        /// The controller must refuse the answer.
        is_wrong: bool,
        /// The wanted plan has changed.
        has_changed: bool,
    },
    /// It accepted the plan.
    Took {
        /// The plan's input: network, traffic, limits.
        instance: Rc<Instance>,
    },
    /// It refused the plan.
    TookNot,
}

/// A request to a server, or its answer: what an RSNode compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Passed {
    /// The client's address.
    pub client: SocketAddr,
    /// The request's number.
    pub number: u64,
    /// The server's address.
    pub server: SocketAddr,
    /// RV.
    pub retained: u16,
    /// It passed a selector; otherwise it is degraded.
    pub is_selected: bool,
}

impl Passed {
    /// Reads a request to a server, or an answer.
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

fn record(context: &mut Context<'_>, event: CacheEvent) {
    context.record(&(context.node(), event));
}
