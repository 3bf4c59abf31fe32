//! Errors, each on one line that says what to do.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Why a switch, client or executor could not start, or a job could not be submitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not `HOST:PORT`, or the resolver does not know it.
    #[error("cannot resolve {name:?}: {source}; give an address as HOST:PORT, for example 127.0.0.1:7700")]
    Resolve {
        /// The name.
        name: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The address is taken, forbidden, or not this machine's.
    #[error("cannot listen on {address} ({protocol}): {source}; {}", advice(.source))]
    Bind {
        /// UDP or TCP.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A bound or time in the configuration.
    #[error("{0}")]
    Configuration(String),
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
        source: io::Error,
    },
    /// Too many open tasks, or a task out of range.
    #[error(transparent)]
    Submit(#[from] midflight_tasks::client::SubmitError),
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
    Kernel(#[from] midflight_dataplane::kernel::KernelError),
    /// The process could not drop its privileges.
    #[error("cannot drop privileges: {what}: {source}")]
    Privileges {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// A replica cannot start with this configuration and data, or refuses an order.
    #[error("{0}")]
    Replica(String),
    /// The client was closed.
    #[error("the client is closed; connect a new one")]
    Closed,
}

impl Error {
    /// The kernel's error, or the whole as text.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Resources { source, .. } => source,
            other => io::Error::other(other),
        }
    }
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
    let failed = |source| Error::Resolve { name: name.to_owned(), source };
    let mut addresses = name.to_socket_addrs().map_err(failed)?;
    addresses.next().ok_or_else(|| failed(io::Error::other("the name has no address")))
}
