//! The simulated world of Midflight.
//!
//! [`World`] runs the production switch and endpoints over a simulated network, in virtual time, from a seed. The
//! endpoints cannot tell it from the real world, which proves that no I/O leaked into them.
//!
//! | where | what |
//! |---|---|
//! | [`time`] | the event queue, the clocks of nodes |
//! | `network` | hosts, links and switches as hardware; faults of datagrams |
//! | `world` | nodes, their life and death, scheduled actions |
//! | [`Actor`] | what runs on a node |
//! | [`ProgramSwitch`] | a switch with any program |
//! | [`Happening`] | events and their receivers |
//! | [`check`] | fault campaigns |
//! | [`tasks`] | the tasks program: nodes, scenarios, campaign |

pub mod check;
pub mod tasks;
pub mod time;

mod actor;
pub mod cache;
mod happening;
mod network;
mod random;
pub mod store;
mod switch;
mod world;

pub use actor::{Actor, Birth, Factory, LinkEvent, Passage, Passing, Wake};
pub use happening::{Happening, Observer, Sink};

pub use network::{
    Faults, Hardware, HostConfig, HostId, LinkConfig, NetworkCounters, Place, SwitchConfig, Tier, Topology,
};
pub use random::{Purpose, exponential, stream};
pub use switch::{ProgramSwitch, TICK};
pub use world::{Action, Context, DiskCondition, DiskTimes, NodeId, World};
