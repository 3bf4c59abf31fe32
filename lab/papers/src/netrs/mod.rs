//! NetRS's evaluation: requests, servers, their places in a fat-tree, and who selects replicas for whom.
//!
//! | where | what |
//! |---|---|
//! | `cell` | one run, as data |
//! | `run` | executes it |
//! | `workload`, `ring`, `servers` | requests, placement of keys, service times |
//! | `tree`, `deployment` | distances in a fat-tree; places of clients and servers |
//! | `placing` | who selects for whom: by rack, by plan |
//! | `world` | the events of a run |
//!
//! Selectors and planner are the production ones. Packets have no bytes here; `midflight-lab sim check cache` runs the real parties.

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
