//! Errors, each on one line that says what to do.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Why a switch, client or executor could not be started, or a job not be submitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is not `HOST:PORT`, or that the resolver does not know.
    #[error("cannot resolve {name:?}: {source}; give an address as HOST:PORT, for example 127.0.0.1:7700")]
    Resolve {
        /// What was given.
        name: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The address is taken, not this machine's, or forbidden.
    #[error("cannot listen on {address} ({protocol}): {source}; {}", advice(.source))]
    Bind {
        /// UDP or TCP.
        protocol: &'static str,
        /// What was asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A bound or time in the configuration.
    #[error("{0}")]
    Configuration(String),
    /// What the operator wants was not done, or not all of it.
    #[error("the switch cannot do that: {why}")]
    Order {
        /// One line.
        why: String,
    },
    /// The kernel refused a thread, a socket or a file descriptor.
    #[error("cannot {what}: {source}; raise the limits on processes and open files (ulimit -u, ulimit -n)")]
    Resources {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The client's bound on open tasks, or a task that the protocol does not have.
    #[error(transparent)]
    Submit(#[from] midflight_tasks::client::SubmitError),
    /// An argument beyond what may travel by reference.
    #[error("task {index}: an argument of {length} bytes exceeds {max} bytes; pass a path or split it")]
    ArgumentTooLong {
        /// Which task of the job.
        index: usize,
        /// Bytes given.
        length: usize,
        /// The bound.
        max: usize,
    },
    /// Arguments by reference exceed the memory that they may take.
    #[error("arguments by reference would exceed {max_bytes} bytes; wait for results or raise blobs.max_bytes")]
    BlobsFull {
        /// The bound.
        max_bytes: usize,
    },
    /// The kernel engine was asked for, and left out of this build.
    #[error(
        "this midflight was built without the kernel engine: install clang 19 or newer, libelf-dev and zlib1g-dev and \
         build with --features kernel, or use ./do"
    )]
    NoKernelEngine,
    /// The kernel engine cannot run here, or not as it was asked to.
    #[cfg(feature = "kernel")]
    #[error(transparent)]
    Kernel(#[from] midflight_dataplane::kernel::KernelError),
    /// The process could not give up its privileges.
    #[error("cannot drop privileges: {what}: {source}")]
    Privileges {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A replica cannot start with this configuration and this data, or does not do what the operator wants.
    #[error("{0}")]
    Replica(String),
    /// The client was closed.
    #[error("the client is closed; connect a new one")]
    Closed,
}

impl Error {
    /// What the kernel said, or the whole in words.
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
/// [`Error::Resolve`] where there is none.
pub fn resolve(name: &str) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Resolve { name: name.to_owned(), source };
    let mut addresses = name.to_socket_addrs().map_err(failed)?;
    addresses.next().ok_or_else(|| failed(io::Error::other("the name has no address")))
}
