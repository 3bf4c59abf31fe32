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
pub mod delays;
pub mod outcome;
pub mod pacer;
pub mod plan;
mod run;
pub mod series;
pub mod summary;

pub use run::{Stop, run};
