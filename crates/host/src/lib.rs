//! The real world: clock, sockets, threads and processes that run the state machines of the lower floors.
//!
//! | file | subject |
//! |---|---|
//! | `clock`, `waker`, `socket`, `gso`, `reply_addresses` | monotonic time, waking a thread that waits for packets, batched UDP |
//! | `driver` | runs one endpoint over one socket, for client and executor alike |
//! | `reply_limit`, `neighbours` | answers that anybody can ask for: none waits for a neighbour that is not there |
//! | `busy_poll` | polling a socket for a short while before sleeping |
//! | `switch` | the C core, in this process or in the kernel, and the thread that feeds it |
//! | `open_files` | how many files may be open, here and in commands |
//! | `privileges` | giving up what only the start needed |
//! | `client`, `job`, `results` | submitting jobs and waiting for their results |
//! | `executor`, `functions`, `workers`, `exec` | running tasks |
//! | `built_in` | the built-in functions for executors of other protocols |
//! | `python` | Python functions, in worker processes |
//! | `futures` | functions that are futures (feature `async`) |
//! | `typed` | arguments and results of types that serde knows (feature `serde`) |
//! | `run_times` | how long runs took, by function |
//! | `counted` | what the bundles of an executor's counted resources are |
//! | `pending` | an outcome that others wait for |
//! | `failing` | a part that cannot go on ends the process |
//! | `poller` | threads that wait poll the socket themselves, one at a time |
//! | `kv` | a client of the store |
//! | `cache` | a client of a replicated cache |
//! | `replica` | a replica of the store (feature `replica`) |
//! | `replicas` | what runs beside an operator, and the controller (feature `operator`) |
//! | `ring` | datagrams from one thread to another |
//! | `agent` | the agent before memcached or Redis (feature `agent`) |
//! | `disk` | batches of changes to the files of a directory, made safe by a thread |
//! | `spill` | unlinked files for what is too large for the memory |
//! | `links` | links between peers, over TCP |
//! | `blob` | arguments and results that exceed a packet, over TCP |
//!
//! Everything that is bounded has a documented default in the options of its part; every loss is counted by name.

#[cfg(feature = "agent")]
pub mod agent;
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
pub mod kv;
pub mod links;
mod neighbours;
mod open_files;
mod pending;
mod poller;
pub mod privileges;
mod python;
mod random;
#[cfg(feature = "replica")]
pub mod replica;
#[cfg(feature = "operator")]
pub mod replicas;
mod reply_addresses;
mod reply_limit;
mod results;
#[cfg_attr(not(feature = "operator"), allow(dead_code, reason = "only a selector takes datagrams out of a ring"))]
mod ring;
mod run_times;
mod socket;
mod spill;
mod switch;
#[cfg(feature = "serde")]
mod typed;
mod users;
mod waker;
mod workers;

pub use blob::{ArgumentCounts, BlobCounters, BlobOptions};
pub use cancellation::{CancellationToken, Cancelled};
pub use client::shared::SharedBlob;
pub use client::{Client, ClientCounts, ClientOptions, DurableClient, DurableOptions, Happened, WakesDurable};
pub use counted::CountedResource;
pub use error::{Error, resolve};
pub use executor::{DrainError, Executor, ExecutorBuilder, ExecutorCounts, ExecutorState};
pub use functions::{LentSlot, TaskContext, TooManyWaiting};
pub use job::{Job, JobBuilder, TaskSpec};
pub use midflight_dataplane::{Which, XdpMode};
pub use midflight_tasks::client::{Marks, Resumption, Saved, SavedName, SavedState, TaskKey};
pub use open_files::raise_open_files;
pub use python::{PYTHON, PythonCounts, PythonOptions};
pub use random::draw_anew;
pub use results::{
    CancelReport, CompletionStream, Completions, JobHandle, ResultFile, ResultReader, TaskError, TaskHandle,
    TaskOutcome, TaskResult, TaskTiming,
};
pub use run_times::{RUN_BUCKETS, RunTimes};
pub use socket::{SocketBuffers, SocketCounters, SocketCounts};
pub use switch::{
    BoundSwitch, Diversion, EnginePlace, Hosted, InProcess, Inheritance, KernelOptions, SendFrom, ShellCounts, Switch,
    SwitchConfig, SwitchEngine, detach,
};
#[cfg(feature = "serde")]
pub use typed::{CodecError, TypedError, TypedHandle};

/// What runs an endpoint of this crate, for endpoints of other protocols, such as those that Midflight is compared with. It may change
/// with any version.
#[doc(hidden)]
pub mod parts {
    pub use crate::busy_poll::BUSY_POLL;
    pub use crate::client::local_for;
    pub use crate::driver::{Driver, Handler, spawn};
    pub use crate::built_in::{Begun, BuiltIn, Task};
    pub use crate::socket::Socket;
    pub use crate::waker::Waker;
}
