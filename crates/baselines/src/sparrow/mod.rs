//! Sparrow (Ousterhout and others, SOSP 2013), as both Midflight's papers compare with: batch sampling with late binding.
//!
//! ```text
//! client ── SUBMIT ──► scheduler ── RESERVE ──► worker: waits in its queue
//!                      scheduler ◄── GET_TASK ── worker: a slot is free, and this reservation is the oldest
//!                      scheduler ── TASK ──► worker: a task, or none is left
//!                      scheduler ── CANCEL ──► workers whose reservations are not needed any more
//! client ◄── ENDED ─── scheduler ◄── DONE ── worker
//! ```
//!
//! For a job of m tasks the scheduler places ceil(ratio · m) reservations on executors drawn at random, all different (each once
//! more, where there are fewer). A worker keeps them in one queue for all its slots. A task goes to the reservation that asks
//! first: late binding. When none is left, what still waits is cancelled at once.
//! Without probing ([`SchedulerConfig::probing`]) there are no reservations: free slots ask by themselves, and again a while after
//! they were told that there is nothing.
//!
//! **Loss.** The original runs on TCP. Here each request is repeated until it is answered, first after
//! [`RetryConfig::first`], then at twice that, four times that …, at most [`RetryConfig::tries`] times in all. The default of 20 ms
//! is a tenth of the least that TCP waits on Linux, so loss does not favour Midflight. Every request may come twice: an answer is
//! remembered as long as the job is.
//! What follows from giving up: a reservation that a worker does not acknowledge is placed on another executor, while tasks are
//! unassigned; a slot that gets no answer drops the reservation; a client tells [`client::Event::Failed`]. A task that died with its
//! worker is for the client's framework to notice, as in the original.
//!
//! | file | subject |
//! |---|---|
//! | `wire` | the packets |
//! | `retry` | requests that await answers |
//! | `sampling` | which executors are asked |
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

/// Why a party cannot be made like that.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody to place tasks on.
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
