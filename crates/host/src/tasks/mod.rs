//! Clients and executors of tasks.
//!
//! | file | subject |
//! |---|---|
//! | `client`, `job`, `results` | submitting jobs and waiting for their results |
//! | `executor`, `functions`, `workers`, `exec` | running tasks |
//! | `python` | Python functions, in worker processes |
//! | `futures` | asynchronous functions (feature `async`) |
//! | `typed` | typed arguments and results by serde (feature `serde`) |
//! | `built_in` | built-in functions for executors of other protocols |
//! | `cancellation` | what a running task learns of its cancellation |
//! | `counted` | counted resources of an executor |
//! | `run_times` | run times by function |

pub(crate) mod built_in;
pub(crate) mod cancellation;
pub(crate) mod client;
pub(crate) mod counted;
pub(crate) mod exec;
pub(crate) mod executor;
pub(crate) mod functions;
#[cfg(feature = "async")]
pub(crate) mod futures;
pub(crate) mod job;
pub(crate) mod python;
pub(crate) mod results;
pub(crate) mod run_times;
#[cfg(feature = "serde")]
pub(crate) mod typed;
pub(crate) mod workers;
