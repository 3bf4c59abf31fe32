//! NetRS's controller, and the keeper of an operator, which obeys it, as state machines without I/O.
//! `docs/internals/cache-controller.md` is their contract.
//!
//! | where | what |
//! |---|---|
//! | [`network`] | the network with addresses: operators, racks, hosts, servers, traffic groups, replica groups |
//! | [`controller`] | the controller: reports, failures, plans, their deployment, which controller is active |
//! | [`keeper`] | at an operator: takes numbered orders, has them carried out, answers |
//! | [`order`] | the rule that an order sets, and the order of rules |
//! | [`table`] | the configuration file of a controller |
//! | [`operator`] | the table of an operator in a switch's configuration |
//! | [`secret`] | the shared secret of controllers and keepers, and their sealed streams |
//! | [`clients`] | the configuration file of a cache's clients |
//! | [`agent`] | the status of an agent in front of a backend |

pub mod agent;
pub mod clients;
pub mod controller;
pub mod keeper;
pub mod network;
pub mod operator;
pub mod order;
pub mod secret;
pub(crate) mod snapshot;
mod status;
pub mod table;

/// Largest accepted jump of the term number. This many real takeovers would take hours.
const TERM_LEAP: u64 = 1 << 16;

pub use clients::CacheFile;
pub use controller::{Controller, ControllerConfig, Event, PlanWanted, Role, Start};
pub use keeper::{Parts, RuleKeeper};
pub use midflight_wire::cache::control::{
    Ask, ControlMessage, Done, Inventory, Order, Refusal, Refused, Report, Set, SetNumber, TERM_MAX, Term,
};
pub use network::{Grouping, Network, NetworkError, NetworkParts};
pub use operator::CacheTable;
pub use secret::Secret;
pub use snapshot::{ControllerPlace, ControllerSnapshot, GroupLine, OperatorLine, PlanStatus, RsNodeLine};
pub use status::CacheStatus;
pub use table::ControllerFile;
