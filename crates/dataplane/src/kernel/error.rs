//! What can be missing for the kernel engine: one line each, which says what to do.

use std::io;

/// Why the kernel engine cannot run.
#[derive(Debug)]
pub enum KernelError {
    /// A bound of the configuration is violated.
    Configuration(crate::ConfigError),
    /// The capabilities to load BPF programs are missing.
    Privileges,
    /// The kernel has no arenas, or lacks another feature; what libbpf said.
    TooOld(String),
    /// The arena does not fit memory.
    Memory {
        /// Bytes that it needs.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel or libbpf refused the programs; what they said.
    Refused(String),
    /// A system call failed.
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Configuration(error) => error.fmt(f),
            Self::Privileges => f.write_str(
                "the kernel engine needs root, or the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, to load its programs",
            ),
            Self::TooOld(said) => {
                write!(f, "the kernel engine needs Linux 6.12 or newer with BPF arenas; this kernel refused them: {said}")
            }
            Self::Memory { bytes, source } => write!(
                f,
                "the kernel engine needs {} MiB of memory for these bounds, which the system does not give: {source}; \
                 lower tasks.queue, tasks.slots or tasks.clients",
                bytes.div_ceil(1 << 20)
            ),
            Self::Refused(said) => write!(f, "the kernel refused the engine's programs: {said}"),
            Self::Io { what, source } => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl std::error::Error for KernelError {}

impl From<crate::ConfigError> for KernelError {
    fn from(error: crate::ConfigError) -> Self {
        Self::Configuration(error)
    }
}
