//! The simulated world of Midflight.
//!
//! [`World`] runs the production switch and the production endpoints over a simulated network, in virtual time, from a
//! seed. The endpoints cannot tell it from the real world, which proves that no I/O leaked into them.
//!
//! | where | what |
//! |---|---|
//! | [`time`] | the heap of events, the clocks of nodes |
//! | `network` | hosts, links and switches as hardware, what befalls a datagram |
//! | `world` | nodes, their life and death, actions at times |
//! | [`actors`] | what runs on a node |
//! | [`scenario`] | a file in, a world out |
//! | [`check`] | the fault campaign |

pub mod actors;
pub mod check;
pub mod scenario;
pub mod time;

mod history;
mod network;
mod random;
mod sink;
mod world;

pub use actors::{Actor, Birth, Command, Factory, Submission, Submissions, Wake};
pub use history::{Happening, History, Told};
pub use midflight_workload as workload;
pub use network::{Faults, Hardware, HostConfig, HostId, LinkConfig, NetworkCounters, Place, SwitchConfig};
pub use random::{Purpose, stream};
pub use sink::{Observer, Sink};
pub use world::{Action, Context, NodeId, World};
