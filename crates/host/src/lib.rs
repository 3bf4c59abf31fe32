//! The host: clocks, sockets, threads and processes that run the state machines of the lower layers.
//!
//! | file | subject |
//! |---|---|
//! | `clock`, `waker`, `socket`, `gso`, `reply_addresses` | monotonic time, waking a waiting thread, batched UDP |
//! | `driver` | runs one endpoint over one socket, for client and executor alike |
//! | `reply_limit`, `neighbours` | limits on answers to unproven senders, by the state of their neighbours |
//! | `busy_poll` | polling a socket before sleeping |
//! | `switch` | the C core, in this process or in the kernel, and its thread |
//! | `open_files` | limit of open files, here and in commands |
//! | `privileges` | dropping privileges after the start |
//! | `client`, `job`, `results` | submitting jobs and waiting for their results |
//! | `executor`, `functions`, `workers`, `exec` | running tasks |
//! | `built_in` | built-in functions for executors of other protocols |
//! | `python` | Python functions, in worker processes |
//! | `futures` | asynchronous functions (feature `async`) |
//! | `typed` | typed arguments and results by serde (feature `serde`) |
//! | `run_times` | run times by function |
//! | `counted` | counted resources of an executor |
//! | `pending` | an outcome that threads wait for |
//! | `failing` | ends the process when a part of it fails |
//! | `background` | a thread with an asynchronous runtime of its own |
//! | `poller` | lets one waiting thread poll the socket |
//! | `store` | a client of the store, and a replica (feature `replica`) |
//! | `cache` | a client of a cache; `agent`, before memcached or Redis; `operator`, with selector, keeper and controller (features) |
//! | `ring` | datagrams between threads |
//! | `disk` | durable batches of changes to the files of a directory |
//! | `spill` | unlinked files for large data |
//! | `links` | links between peers, over TCP |
//! | `blob` | arguments and results that exceed a packet, over TCP |
//!
//! All bounds have documented defaults in their options; every loss is counted by reason.

mod background;
mod blob;
mod built_in;
mod busy_poll;
pub mod cache;
mod cancellation;
mod client;
pub mod clock;
mod counted;
pub mod disk;
mod driver;
mod error;
mod exec;
mod executor;
#[cfg(any(feature = "agent", feature = "operator"))]
mod failing;
mod functions;
#[cfg(feature = "async")]
mod futures;
mod gso;
mod job;
pub mod links;
mod neighbours;
mod open_files;
mod pending;
mod poller;
pub mod privileges;
mod python;
mod random;
mod reply_addresses;
mod reply_limit;
mod results;
#[cfg_attr(not(feature = "operator"), allow(dead_code, reason = "only a selector takes datagrams out of a ring"))]
mod ring;
mod run_times;
mod socket;
mod spill;
pub mod store;
mod switch;
#[cfg(feature = "serde")]
mod typed;
mod users;
mod waker;
mod workers;

pub use blob::{BlobCounters, BlobOptions};
pub use cancellation::{CancellationToken, Cancelled};
pub use client::shared::SharedBlob;
pub use client::{Client, ClientBuilder, ClientCounts, DurableClient, DurableOptions, Happened, WakesDurable};
pub use counted::CountedResource;
pub use error::{Error, resolve};
pub use executor::{Executor, ExecutorBuilder, ExecutorCounts, ExecutorState};
pub use functions::{LentSlot, TaskContext};
pub use job::{Job, JobBuilder, TaskSpec};
pub use midflight_dataplane::{Which, XdpMode};
pub use midflight_tasks::client::{Marks, Resumption, Saved, SavedName, SavedState, TaskKey};
pub use open_files::raise_open_files;
pub use pending::Handle;
pub use python::{PYTHON, PythonCounts, PythonOptions};
pub use random::draw_anew;
pub use results::{
    CancelReport, CompletionStream, Completions, JobHandle, ResultFile, ResultReader, TaskError, TaskHandle,
    TaskOutcome, TaskResult, TaskTiming,
};
pub use run_times::{RUN_BUCKETS, RunTimes};
pub use socket::{SocketBuffers, SocketCounts};
pub use switch::{
    BoundSwitch, Diversion, EnginePlace, Hosted, InProcess, Inheritance, KernelOptions, SendFrom, ShellCounts, Switch,
    SwitchBuilder, SwitchEngine, detach,
};
#[cfg(feature = "serde")]
pub use typed::TypedHandle;

/// The parts that run an endpoint, for endpoints of other protocols that Midflight is compared with. Not stable.
#[doc(hidden)]
pub mod parts {
    pub use crate::built_in::{Begun, BuiltIn, Task};
    pub use crate::busy_poll::BUSY_POLL;
    pub use crate::client::local_for;
    pub use crate::driver::{Driver, Handler, spawn};
    pub use crate::socket::Socket;
    pub use crate::waker::Waker;
}
