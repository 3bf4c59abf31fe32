//! NetRS's evaluation: which requests come, which servers there are, where in a fat-tree they are, and who chooses replicas for whom.
//!
//! | where | what |
//! |---|---|
//! | `cell` | one run: data in, data out |
//! | `run` | runs it |
//! | `workload`, `ring`, `servers` | requests, their keys on servers, what servers take |
//! | `tree`, `deployment` | distances in a fat-tree; who is where |
//! | `placing` | who chooses for whom: by rack, by plan |
//! | `world` | the events of a run |
//!
//! Selectors and the planner are those of production. Packets have no bytes here; `midflight-lab sim check replicas` runs the real parties.

mod cell;
mod deployment;
mod placing;
mod random;
mod ring;
mod run;
mod servers;
mod tree;
mod workload;
mod world;

pub use cell::{Arrivals, BUCKET_MS, Cell, CellError, CellResult, Keyspace, Network, Placement, RsNodes, Selects};
pub use run::run;
