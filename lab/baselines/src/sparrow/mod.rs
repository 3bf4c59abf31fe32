//! Sparrow (Ousterhout and others, SOSP 2013): batch sampling with late binding. Both of Midflight's papers compare with
//! it.
//!
//! ```text
//! client ── SUBMIT ──► scheduler ── RESERVE ──► worker: waits in its queue
//!                      scheduler ◄── GET_TASK ── worker: a slot is free, and this reservation is the oldest
//!                      scheduler ── TASK ──► worker: a task, or none is left
//!                      scheduler ── CANCEL ──► workers whose reservations are not needed any more
//! client ◄── ENDED ─── scheduler ◄── DONE ── worker
//! ```
//!
//! For a job of m tasks the scheduler places ceil(ratio · m) reservations on executors drawn at random, all different (if
//! there are too few, each is used once before any is used again). A worker keeps them in one queue for all its slots. A
//! task goes to the reservation that asks first: late binding. When no task is left, the waiting reservations are cancelled
//! at once. Without probing ([`SchedulerConfig::probing`]) there are no reservations: free slots ask by themselves, and if
//! there was no task, again after a while.
//!
//! **Loss.** The original runs on TCP. Here each request is repeated until it is answered, first after
//! [`RetryConfig::first`], then at twice that, four times that …, at most [`RetryConfig::tries`] times in all. The default
//! of 20 ms is a tenth of the shortest time that TCP waits on Linux, so loss does not favour Midflight. Every request may
//! arrive twice, so each answer is kept as long as its job. After the last try: a reservation that a worker does not
//! acknowledge is placed on another executor, while tasks are unassigned; a slot that gets no answer drops the reservation;
//! a client reports [`client::Event::Failed`]. A task that was lost with its worker must be noticed by the client's
//! framework, as in the original.
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
    /// Out of bounds.
    #[error("{what} must be {allowed}")]
    OutOfBounds {
        /// Which field.
        what: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
}
