//! Midflight schedules requests while they are in flight: tasks wait in one queue in a *switch* on the network, free
//! *executors* pull them, results go straight to the *client*. See `docs/` for the guide; this page is the map of the library.
//!
//! | you want to | take |
//! |---|---|
//! | submit work and get results | [`Client::builder`], [`Job::builder`], [`JobHandle`] |
//! | wait for one task, or `.await` it | [`TaskHandle`] ([`JobHandle::into_tasks`]) |
//! | take results as they come | [`Completions`] ([`JobHandle::completions`]), in async code [`CompletionStream`] ([`JobHandle::stream`]) |
//! | submit from async code | [`Client::submit_async`] |
//! | offer functions to the cluster | [`Executor::builder`], [`ExecutorBuilder::register`], [`TaskContext`] |
//! | offer functions that are futures | `ExecutorBuilder::register_async` (feature `async`) |
//! | use your own types as arguments and results | `ExecutorBuilder::register_typed`, `Client::submit_typed` (feature `serde`) |
//! | stop when a task is cancelled | [`CancellationToken`] ([`TaskContext::cancellation`]) |
//! | submit tasks from a task and wait for them | [`TaskContext::lend_slot`] |
//! | give each task a GPU of its own | [`CountedResource`] ([`ExecutorBuilder::count`], [`TaskContext::bundle`]) |
//! | run a switch inside your program | [`Switch::builder`] |
//! | read and write a linearizable store | [`store::StoreClient::builder`] |
//! | read and write a replicated cache | [`cache::CacheClient::builder`] |
//! | know why a call failed | [`Error`], for all of them |
//!
//! # A cluster in one process
//!
//! ```
//! use midflight::{Client, Executor, Job, Switch};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let switch = Switch::builder().start()?;
//! let executor = Executor::builder()
//!     .switch(switch.local_addr())
//!     .register("double", |_task, argument| {
//!         let number: u32 = std::str::from_utf8(argument)?.parse()?;
//!         Ok::<_, Box<dyn std::error::Error>>((2 * number).to_string().into_bytes())
//!     })
//!     .start()?;
//!
//! let client = Client::builder().switch(switch.local_addr()).connect()?;
//! let job = client.submit(Job::builder("double").task("20").task("21").build())?;
//! let values: Vec<_> = job.wait().into_iter().map(|outcome| outcome.map(|result| result.value)).collect();
//! assert_eq!(values, [Ok(b"40".to_vec()), Ok(b"42".to_vec())]);
//! # drop(executor);
//! # Ok(())
//! # }
//! ```
//!
//! # What to know
//!
//! - A task is a function's name and an argument of up to 64 MiB; its result may have 4 GiB − 1. Up to 16 bytes of argument and
//!   1,024 bytes of result travel in the packets themselves, the rest directly between client and executor. Results of more
//!   than 64 MiB are for clients that ask for files: [`ClientBuilder::files`].
//! - Tasks may run more than once, when an executor or the switch dies: make functions idempotent
//!   ([`TaskContext::attempt`] says which attempt it is). The caller sees exactly one outcome.
//! - A function's error or panic is a [`TaskError::Failed`] with its message; it never ends the executor.
//! - Priority is 1 (the highest) to 8; resources are a mask of eight bits, and an executor only gets tasks whose mask is
//!   contained in its own. [`ResourceNames`] maps names to bits.
//! - [`functions`] has the built-in functions: `noop`, `sleep`, `spin` and `exec`.
//! - A [`Switch`] runs in user space unless [`SwitchEngine`] says otherwise. The engine in the kernel is in builds with the feature
//!   `kernel`, which need clang 19, libelf and zlib.
//!
//! `examples/` has programs to start from: `hello.rs`, `pi.rs` (map and reduce), `priorities.rs`, `futures.rs`
//! (async code at both ends, typed).

pub use midflight_dataplane::TasksConfig;
#[cfg(feature = "serde")]
pub use midflight_host::TypedHandle;
pub use midflight_host::{
    BlobOptions, BoundSwitch, CancelReport, CancellationToken, Cancelled, Client, ClientBuilder, CompletionStream,
    Completions, CountedResource, Error, Executor, ExecutorBuilder, Handle, Inheritance, Job, JobBuilder, JobHandle,
    KernelOptions, LentSlot, ResultFile, ResultReader, SocketBuffers, Switch, SwitchBuilder, SwitchEngine, TaskContext,
    TaskError, TaskHandle, TaskOutcome, TaskResult, TaskSpec, TaskTiming, Which, XdpMode, detach, resolve,
};
pub use midflight_tasks::resources::{ResourceError, ResourceNames};

/// The built-in functions: their names, arguments and results.
pub mod functions {
    pub use midflight_tasks::functions::{
        Began, COMMAND, COMMAND_LINE_MAX, DIRECTORY_MAX, ENVIRONMENT_MAX, EXEC, ExecRequest, ExecRequestError,
        ExecResult, NOOP, OUTPUT_NOT_KEPT, SLEEP, SPIN, VARIABLES_MAX, function_id,
    };
}

/// The client of a linearizable store: `docs/store.md` says how to start one.
///
/// ```no_run
/// use midflight::store::StoreClient;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = StoreClient::builder().switch("127.0.0.1:7700".parse()?).connect()?;
/// store.put("greeting", "hello")?;
/// assert_eq!(store.get("greeting")?, Some(b"hello".to_vec()));
/// assert_eq!(store.incr("visits", 1)?, 1);
/// # Ok(())
/// # }
/// ```
pub mod store {
    pub use midflight_host::store::{
        Answer, Cas, Change, Condition, Cursor, Expiry, Operation, Page, PlaceInValue, Reached, Scan, Step,
        StoreBuilder, StoreClient, StoreCounts, StoreError, Update, Updated, ValuePiece,
    };
}

/// The client of a replicated cache: `docs/cache.md` says how to start one.
///
/// ```no_run
/// use midflight::cache::CacheClient;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let servers = ["10.0.2.10:7800".parse()?, "10.0.2.11:7800".parse()?, "10.0.2.12:7800".parse()?];
/// let cache = CacheClient::builder().operator("10.0.1.1:7700".parse()?).servers(servers).connect()?;
/// cache.set("greeting", "hello")?;
/// let value = cache.get("greeting")?.map(|value| value.bytes);
/// assert_eq!(value, Some(b"hello".to_vec()));
/// # Ok(())
/// # }
/// ```
pub mod cache {
    pub use midflight_host::cache::{
        Algorithm, CacheBuilder, CacheClient, CacheCounters, CacheCounts, CacheError, Counters, FailedServer,
        GetOutcome, KEY_MAX, ServerError, SetOptions, UnknownAlgorithm, VALUE_MAX, Value, WriteError,
    };
}

/// Compiles the guide's code, and runs the README's.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/functions.md")]
#[doc = include_str!("../../../docs/store.md")]
#[doc = include_str!("../../../docs/cache.md")]
struct Guide;
