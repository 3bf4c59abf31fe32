//! NetRS's controller, and the keeper of an operator, which obeys it, as state machines without I/O.
//! `docs/internals/cache-controller.md` is their contract.
//!
//! | where | what |
//! |---|---|
//! | [`network`] | the network with addresses: operators, racks, hosts, servers, traffic groups, replica groups |
//! | [`controller`] | the controller: reports, failures, plans, their deployment, which controller is active |
//! | [`keeper`] | at an operator: takes numbered orders, has them carried out, answers |
//! | [`order`] | the rule that an order sets, and the order of rules |

pub mod controller;
pub mod keeper;
pub mod network;
pub mod order;

pub use controller::{Controller, ControllerConfig, Event, PlanWanted, Role, Start};
pub use keeper::{Parts, RuleKeeper};
pub use midflight_wire::cache::control::{
    Ask, ControlMessage, Done, Inventory, Order, Refusal, Refused, Report, Set, SetNumber, TERM_MAX, Term,
};
pub use network::{Grouping, Network, NetworkError, NetworkParts};

/// Largest accepted jump of the term number. This many real takeovers would take hours.
const TERM_LEAP: u64 = 1 << 16;
