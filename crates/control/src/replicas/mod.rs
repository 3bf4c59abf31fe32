//! NetRS's controller, and the part of an operator that listens to it, as state machines without I/O.
//! `docs/internals/replicas-controller.md` is their contract.
//!
//! | where | what |
//! |---|---|
//! | [`network`] | the network with addresses: operators, racks, hosts, servers, traffic groups, replica groups |
//! | [`controller`] | the controller: reports, failures, plans, their deployment, who is active |
//! | [`keeper`] | beside an operator: takes numbered orders, has them carried out, answers |
//! | [`order`] | which rule an order sets, and in which order they are set |
//! | [`table`] | the configuration file of a controller |
//! | [`agent`] | what an agent before a store reports |

pub mod agent;
pub mod controller;
pub mod keeper;
pub mod network;
pub mod order;
pub mod table;

pub use controller::{Controller, ControllerConfig, Event, PlanWanted, Role, Start};
pub use keeper::{Parts, RuleKeeper};
pub use midflight_wire::replicas::control::{
    Ask, ControlMessage, Done, Inventory, Order, Refusal, Refused, Report, Set, SetNumber, TERM_MAX, Term,
};
pub use network::{Grouping, Network, NetworkError, NetworkParts};
pub use table::ControllerFile;
