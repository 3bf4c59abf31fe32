//! Sparrow (Ousterhout and others, SOSP 2013): batch sampling with late binding, the baseline of both Falcon and Bolt.
//!
//! ```text
//! client ── SUBMIT ──► scheduler ── RESERVE ──► worker: waits in its queue
//!                      scheduler ◄── GET_TASK ── worker: a slot is free, and this reservation is the oldest
//!                      scheduler ── TASK ──► worker: a task, or none is left
//!                      scheduler ── CANCEL ──► workers whose reservations are not needed any more
//! client ◄── ENDED ─── scheduler ◄── DONE ── worker
//! ```
//!
//! For a job of m tasks the scheduler places ceil(ratio · m) reservations on random executors, distinct while there are enough. A worker
//! queues them for all its slots. A task goes to the reservation that asks first (late binding). When no task is left, the scheduler
//! cancels the rest. Without probing ([`SchedulerConfig::probing`]) there are no reservations: free slots poll.
//!
//! **Loss.** The original runs on TCP. Here each request is retransmitted until answered, first after [`RetryConfig::first`], with the
//! interval doubled each time, and sent at most [`RetryConfig::tries`] times. The default of 20 ms is a tenth of Linux's minimum TCP
//! retransmission timeout, so loss does not favour Midflight. Every request may arrive twice, so each answer is kept as long as its job.
//! When the retries are exhausted: the scheduler moves an unacknowledged reservation to another executor while tasks are unassigned; a slot
//! drops its reservation; a client reports [`client::Event::Failed`]. As in the original, detecting a task lost with its worker is up to
//! the client's framework.
//!
//! | file | subject |
//! |---|---|
//! | `wire` | the packets |
//! | `retry` | requests that wait for answers |
//! | `sampling` | which executors are sampled |
//! | `scheduler`, `worker`, `client` | the parties |

pub mod client;
pub mod scheduler;
pub mod wire;
pub mod worker;

mod retry;
mod sampling;
#[cfg(test)]
mod tests;

pub use client::{Client, ClientConfig};
pub use retry::RetryConfig;
pub use scheduler::{Scheduler, SchedulerConfig};
pub use worker::{Worker, WorkerConfig};

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// There are no workers or schedulers.
    #[error("no executors: name at least one worker with at least one slot")]
    NoExecutors,
    /// A field is out of bounds.
    #[error("{what} must be {allowed}")]
    OutOfBounds {
        /// The field.
        what: &'static str,
        /// Its bounds.
        allowed: &'static str,
    },
}
