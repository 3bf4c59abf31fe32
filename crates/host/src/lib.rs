//! The host: clocks, sockets, threads and processes that run the state machines of the lower layers.
//!
//! | where | subject |
//! |---|---|
//! | `tasks` | clients and executors of tasks |
//! | `store` | a client of the store, and a replica (feature `replica`) |
//! | `cache` | a client of a cache; `agent`, before memcached or Redis; `operator`, with selector, keeper and controller (features) |
//! | `switch` | the C core, in this process or in the kernel, and its thread |
//! | `blob` | arguments and results that exceed a packet, over TCP |
//! | `links` | links between peers, over TCP |
//! | `disk` | durable batches of changes to the files of a directory; unlinked files for large data |
//! | `socket` | batched UDP, polling, limits on answers, and what the kernel knows of neighbours and users |
//! | `process` | children, privileges, the limit of open files |
//! | `driver` | runs one endpoint over one socket, for client and executor alike |
//! | `clock`, `waker`, `pending`, `random` | monotonic time, waking a waiting thread, an outcome that threads wait for, random numbers |
//!
//! All bounds have documented defaults in their options; every loss is counted by reason.

mod background;
mod blob;
pub mod cache;
pub mod clock;
pub mod disk;
mod driver;
mod error;
pub mod links;
mod pending;
pub mod process;
mod random;
mod socket;
pub mod store;
mod switch;
mod tasks;
mod waker;

pub use blob::{BlobCounters, BlobOptions};
pub use error::{Error, resolve};
pub use midflight_dataplane::{Which, XdpMode};
pub use midflight_tasks::client::{Resumption, Saved, SavedCounters, SavedName, SavedState, TaskKey};
pub use pending::Handle;
pub use process::open_files::raise_open_files;
pub use random::draw_anew;
pub use socket::{SocketBuffers, SocketCounts};
pub use switch::{
    BoundSwitch, Diversion, EnginePlace, Hosted, InProcess, Inheritance, KernelOptions, SendFrom, ShellCounts, Switch,
    SwitchBuilder, SwitchEngine, detach,
};
pub use tasks::cancellation::{CancellationToken, Cancelled};
pub use tasks::client::shared::SharedBlob;
pub use tasks::client::{Client, ClientBuilder, ClientCounts, DurableClient, DurableOptions, Happened, WakesDurable};
pub use tasks::counted::CountedResource;
pub use tasks::executor::{Executor, ExecutorBuilder, ExecutorCounts, ExecutorState};
pub use tasks::functions::{LentSlot, TaskContext};
pub use tasks::job::{Job, JobBuilder, TaskSpec};
pub use tasks::python::{PYTHON, PythonCounts, PythonOptions};
pub use tasks::results::{
    CancelReport, CompletionStream, Completions, JobHandle, ResultFile, ResultReader, TaskError, TaskHandle,
    TaskOutcome, TaskResult, TaskTiming,
};
pub use tasks::run_times::{RUN_BUCKETS, RunTimes};
#[cfg(feature = "serde")]
pub use tasks::typed::TypedHandle;

/// The parts that run an endpoint, for endpoints of other protocols that Midflight is compared with. Not stable.
#[doc(hidden)]
pub mod parts {
    pub use crate::driver::{Driver, Handler, spawn};
    pub use crate::socket::Socket;
    pub use crate::socket::busy_poll::BUSY_POLL;
    pub use crate::tasks::built_in::{Begun, BuiltIn, Task};
    pub use crate::tasks::client::local_for;
    pub use crate::waker::Waker;
}
