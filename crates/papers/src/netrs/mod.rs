//! NetRS's evaluation: its workload, its servers, its keys on a ring; and a flat world of them, without a network, that checks selectors.

mod flat;
mod random;
mod ring;
mod servers;
mod workload;

pub use flat::{Flat, Outcome, Scheme};
pub use ring::Ring;
pub use servers::{Flips, Job, ServerConfig, Servers};
pub use workload::{Clients, Gaps, Keys, Request, Workload};
