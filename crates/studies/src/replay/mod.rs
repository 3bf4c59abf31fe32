//! The main job: a workload through a switch and real executors, in real time, with its scheduling delays.
//!
//! | file | subject |
//! |---|---|
//! | `plan` | which jobs, scaled how, with which priorities |
//! | `pacer` | submitting each at its time, whatever the system does (open loop) |
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
