//! FLAIR's evaluation: one run of a store, with the production replicas, switch and clients.
//!
//! | file | subject |
//! |---|---|
//! | `cell` | a run's input and result, as data |
//! | `costs` | what requests take of a replica; frozen |
//! | `replica` | a replica on a machine whose threads take time |
//! | `users` | clients in a closed loop |
//! | `run` | the world, and what is measured in it |
//!
//! `docs/internals/store-evaluation.md` explains the model.

mod cell;
mod costs;
mod replica;
mod run;
mod users;

pub use cell::{BUCKET_MS, Cell, CellError, CellResult, Fault, FaultKind, Shares, System};
pub use run::run;
