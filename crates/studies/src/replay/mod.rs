//! Replays a workload through a switch and real executors, in real time, and measures scheduling delays.
//!
//! | file | subject |
//! |---|---|
//! | `plan` | the jobs, how they are scaled, and their priorities |
//! | `pacer` | submits each job at its time, even if the system is late (open loop) |
//! | `run` | switch, executors and client, and collecting the ends of tasks |
//! | `delays`, `series`, `outcome` | what was measured |
//! | `summary` | the same as numbers with names and as a table |

pub mod command;
pub(crate) mod delays;
pub(crate) mod outcome;
pub(crate) mod pacer;
pub(crate) mod plan;
mod run;
pub(crate) mod series;
pub(crate) mod summary;

pub(crate) use run::{Stop, run};
