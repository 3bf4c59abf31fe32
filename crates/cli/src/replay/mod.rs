//! Replays a workload in real time through a switch and real executors, and measures scheduling delays.

pub mod command;
pub mod delays;
pub mod outcome;
pub mod pacer;
pub mod plan;
mod run;
pub mod summary;

pub use run::{Stop, run};
