//! FLAIR's evaluation: one run of a store, with the production replicas, switch and clients.
//!
//! | file | subject |
//! |---|---|
//! | `cell` | a run's input and result, as data |
//! | `costs` | what requests take of a replica; frozen |
//! | `replica` | a replica on a machine whose threads take time |
//! | `users` | clients in a closed loop |
//! | `run` | the world |
//! | `measured` | what is measured in it |
//! | `quorum` | models of Viewstamped Replication and Fast Paxos |
//!
//! `docs/internals/store-evaluation.md` explains the model.

mod cell;
mod costs;
mod measured;
mod quorum;
mod replica;
mod run;
mod users;

pub use cell::{BUCKET_MS, Cell, CellError, CellResult, Fault, FaultKind, Shares, System};
pub use costs::Costs;
pub use run::run;
