//! Plans of RSNodes for the cache program (NetRS, section III).
//!
//! A plan names for each traffic group its RSNode: the operator (a switch with an accelerator) that selects replicas for its requests. The
//! fewer RSNodes, the better each knows the servers. This crate implements rules N4, N5 and N6 of the program.
//!
//! | module | subject |
//! |---|---|
//! | [`topology`], [`instance`] | the network, its accelerators, the traffic, the limits |
//! | [`input`], [`generate`] | networks and traffic from files, and from seeds |
//! | [`plan`], [`check`] | a plan, and whether it keeps the constraints |
//! | [`solve`](mod@solve) | the planner: aggregated form, full form, first-fit; bounds |
//! | [`drs`] | degraded replica selection, if no plan serves all groups |
//! | [`failure`] | failed operators; when a new plan replaces the old one |
//! | [`explain`] | why a plan has as many RSNodes as it has |
//!
//! No code here does I/O or reads a clock; the solver gets a time limit.

pub mod check;
#[cfg_attr(not(feature = "ilp"), allow(dead_code, reason = "parts serve only the ILP"))]
mod classes;
mod draft;
pub mod drs;
pub mod explain;
pub mod failure;
mod first_fit;
pub mod generate;
#[cfg(feature = "ilp")]
mod ilp;
pub mod input;
pub mod instance;
#[cfg(feature = "ilp")]
mod knapsack;
#[cfg_attr(not(feature = "ilp"), allow(dead_code, reason = "parts serve only the ILP"))]
mod packing;
pub mod plan;
#[cfg_attr(not(feature = "ilp"), allow(dead_code, reason = "parts serve only the ILP"))]
mod pods;
pub mod rate;
pub mod solve;
pub mod topology;
#[cfg(feature = "ilp")]
mod unpack;

pub use check::{Violation, violations};
pub use drs::{Degraded, MinimumDegraded, solve_or_degrade};
pub use instance::{Group, Instance, Limits};
pub use plan::Plan;
pub use rate::Rate;
pub use solve::{HAS_ILP, Method, Options, Outcome, Solved, Use, solve};
pub use topology::{Accelerator, Topology};
