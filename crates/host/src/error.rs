//! Errors, each on one line that says what to do.

use crate::cache::CacheError;
use crate::tasks::results::TaskError;
use midflight_cache::select::UnknownAlgorithm;
use midflight_store::client::StoreError;
use midflight_tasks::client::SubmitError;
use midflight_tasks::functions::ExecRequestError;
use midflight_tasks::resources::ResourceError;
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Why a call of the library failed. Two errors are equal if they read the same.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not `HOST:PORT`, or the resolver does not know it.
    #[error("cannot resolve {name:?}: {source}; give an address as HOST:PORT, for example 127.0.0.1:7700")]
    Resolve {
        /// The name.
        name: String,
        /// The resolver's error.
        source: Arc<io::Error>,
    },
    /// The address is taken, forbidden, or not this machine's.
    #[error("cannot listen on {address} ({protocol}): {source}; {}", advice(.source))]
    Bind {
        /// UDP or TCP.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: Arc<io::Error>,
    },
    /// An option, or an argument of a call, is out of range. Nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// `connect` had no answer in time.
    #[error("nothing answers at {} within {within:?}: see whether it runs and can be reached from here", list(.addresses))]
    NotConnected {
        /// The addresses that were tried.
        addresses: Vec<SocketAddr>,
        /// The builder's `connect_timeout`.
        within: Duration,
    },
    /// An operator's order was not carried out completely.
    #[error("the switch cannot do that: {why}")]
    Order {
        /// The reason, one line.
        why: String,
    },
    /// The kernel refused a thread, a socket or a file descriptor.
    #[error("cannot {what}: {source}; raise the limits on processes and open files (ulimit -u, ulimit -n)")]
    Resources {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: Arc<io::Error>,
    },
    /// Too many tasks or operations are open. Nothing was sent.
    #[error("{open} are open and {asked} more would exceed the bound, {max}: wait for some to end, or raise it")]
    TooManyOpen {
        /// Tasks or operations that have not ended.
        open: usize,
        /// Tasks or operations of this call.
        asked: usize,
        /// The bound.
        max: usize,
    },
    /// The argument is too long, even by reference.
    #[error("task {index}: an argument of {length} bytes exceeds {max} bytes; pass a path or split it")]
    ArgumentTooLong {
        /// Place of the task in the job.
        index: usize,
        /// Bytes given.
        length: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// No memory for arguments by reference.
    #[error("arguments by reference would exceed {max_bytes} bytes; wait for results or raise blobs.max_bytes")]
    BlobsFull {
        /// Bytes allowed.
        max_bytes: usize,
    },
    /// This build has no kernel engine.
    #[error(
        "this midflight was built without the kernel engine: install clang 19 or newer, libelf-dev and zlib1g-dev and \
         build with --features kernel, or use ./do"
    )]
    NoKernelEngine,
    /// The kernel engine cannot run here, or not as configured.
    #[cfg(feature = "kernel")]
    #[error(transparent)]
    Kernel(Arc<midflight_dataplane::kernel::KernelError>),
    /// The process could not drop its privileges.
    #[error("cannot drop privileges: {what}: {source}")]
    Privileges {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: Arc<io::Error>,
    },
    /// A replica cannot start with this configuration and data, or refuses an order.
    #[error("{0}")]
    Replica(String),
    /// A task has no result.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The store did not carry out an operation.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cache did not carry out an operation.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Bytes that are no value of the expected type, or a value that cannot be encoded.
    #[error("{0}")]
    Codec(String),
    /// A task cannot wait for other tasks: the executor's limit is reached, or the task already waits.
    #[error(
        "as many tasks of this executor wait for other tasks as may: raise `waiting` in [tasks.executors] of its \
         configuration (ExecutorBuilder::waiting), or nest calls less deeply"
    )]
    TooManyWaiting,
    /// A drain timed out. The running tasks were killed; the switch gives them to other executors.
    #[error("{running} tasks still ran after {within:?}; the switch gives them to other executors")]
    StillRunning {
        /// Tasks that ran.
        running: u32,
        /// The drain's timeout.
        within: Duration,
    },
    /// The outcome was already taken.
    #[error("the outcome was taken before; keep it from the first wait")]
    Taken,
    /// The client was closed first. A write may have taken place, or may yet.
    #[error("the client is closed; connect a new one")]
    Closed,
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::TooManyOpen { open, asked, max_open: max } => Self::TooManyOpen { open, asked, max },
            other => Self::invalid(&other),
        }
    }
}

#[cfg(feature = "kernel")]
impl From<midflight_dataplane::kernel::KernelError> for Error {
    fn from(error: midflight_dataplane::kernel::KernelError) -> Self {
        Self::Kernel(Arc::new(error))
    }
}

impl From<midflight_store::client::SubmitError> for Error {
    fn from(error: midflight_store::client::SubmitError) -> Self {
        match error {
            midflight_store::client::SubmitError::QueueFull(max) => Self::TooManyOpen { open: max, asked: 1, max },
            other => Self::invalid(&other),
        }
    }
}

impl From<ResourceError> for Error {
    fn from(error: ResourceError) -> Self {
        Self::invalid(&error)
    }
}

impl From<ExecRequestError> for Error {
    fn from(error: ExecRequestError) -> Self {
        Self::invalid(&error)
    }
}

impl From<UnknownAlgorithm> for Error {
    fn from(error: UnknownAlgorithm) -> Self {
        Self::invalid(&error)
    }
}

impl Error {
    /// Whether a write that failed this way may have taken place, or may yet.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Store(error) => error.is_unknown(),
            Self::Cache(error) => matches!(error, CacheError::Write(_)),
            Self::Closed => true,
            _ => false,
        }
    }

    pub(crate) fn invalid(why: &impl Display) -> Self {
        Self::Invalid(why.to_string())
    }

    pub(crate) fn bind(protocol: &'static str, address: SocketAddr) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Bind { protocol, address, source: source.into() }
    }

    pub(crate) fn resources(what: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Resources { what, source: source.into() }
    }

    /// The kernel's error, or the whole as text.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Resources { source, .. } => io::Error::new(source.kind(), source),
            other => io::Error::other(other),
        }
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "another process uses this port: stop it or choose another port",
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address: see `ip address`, or use 0.0.0.0",
        io::ErrorKind::PermissionDenied => "ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one",
        _ => "choose another address",
    }
}

/// The first address of `HOST:PORT`.
///
/// # Errors
///
/// [`Error::Resolve`] if there is none.
pub fn resolve(name: &str) -> Result<SocketAddr, Error> {
    let failed = |source: io::Error| Error::Resolve { name: name.to_owned(), source: source.into() };
    let mut addresses = name.to_socket_addrs().map_err(failed)?;
    addresses.next().ok_or_else(|| failed(io::Error::other("the name has no address")))
}
