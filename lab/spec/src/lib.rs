//! Reference models of the three programs, and transcripts that every engine must reproduce.
//!
//! - [`tasks`]: what the tasks protocol demands for each packet; also turns fuzzing input into random traffic and
//!   compares an engine with the model on it.
//! - [`store`]: the store program's model, a protocol model for exhaustive search, and the linearizability check.
//! - [`cache`]: what a NetRS operator must do with each packet, and a protocol model of controllers and operators.
//! - [`transcript`]: runs the text files in `transcripts/`.
//!
//! Only tests, fuzzers, the fault campaign and `midflight-lab check` use this crate.

pub mod cache;
pub mod store;
pub mod tasks;
pub mod transcript;
