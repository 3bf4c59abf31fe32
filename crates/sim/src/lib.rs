//! The simulated world of Midflight, and the workloads that it and `midflight replay` play.
//!
//! [`World`] runs the production switch and the production endpoints over a simulated network, in virtual time, from a
//! seed. The endpoints cannot tell it from the real world, which proves that no I/O leaked into them.

pub mod calibration;
pub mod cell;
pub mod workload;

mod actors;
mod history;
mod network;
mod node;
mod random;
mod watch;
mod world;

pub use history::{Happening, History, Told};
pub use network::{Faults, NetworkCounters};
pub use node::NodeId;
pub use world::{Action, World};
