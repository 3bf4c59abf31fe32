//! Errors of the kernel engine: one line each, with a remedy.

use crate::program::CallError;
use std::io;

/// Why the kernel engine cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A bound of the configuration is violated.
    #[error(transparent)]
    Configuration(#[from] crate::ConfigError),
    /// The capabilities to load BPF programs are missing.
    #[error(
        "the kernel engine needs root, or the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, to load its programs"
    )]
    Privileges,
    /// The kernel lacks arenas or another feature; with its message.
    #[error("the kernel engine needs Linux 6.12 or newer with BPF arenas (CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT): {0}")]
    TooOld(String),
    /// The arena does not fit into memory.
    #[error(
        "the kernel engine needs {} MiB of memory for these bounds, which the system does not give: {source}; lower \
         tasks.queue, tasks.slots or tasks.clients", .bytes.div_ceil(1 << 20)
    )]
    Memory {
        /// Bytes that it needs.
        bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel or libbpf refused the programs; with its message.
    #[error("the kernel refused the engine's programs: {0}")]
    Refused(String),
    /// No interface to serve on.
    #[error("the kernel engine serves interfaces: name them, --interface eth0 for example")]
    NoInterfaces,
    /// An interface that does not exist.
    #[error("there is no interface {0}: `ip link` lists what there is")]
    UnknownInterface(String),
    /// An interface that is down.
    #[error("interface {0} is down: `ip link set {0} up` first")]
    Down(String),
    /// An interface of another kind than Ethernet.
    #[error(
        "interface {0} is no Ethernet interface, whose frames are all that the kernel engine reads: use --engine user"
    )]
    NotEthernet(String),
    /// An interface with too small an MTU.
    #[error(
        "interface {interface} has an MTU of {mtu}, and answers take up to {MTU_MIN}: `ip link set {interface} mtu {MTU_MIN}`"
    )]
    Mtu {
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
    },
    /// Its driver takes no XDP program, or none of ours.
    #[error("interface {interface} takes no XDP program in native mode: {why}; --mode generic serves it, slower")]
    NoNative {
        /// The interface.
        interface: String,
        /// The kernel's message.
        why: String,
    },
    /// The interface has an XDP program of others.
    #[error(
        "interface {interface} runs another XDP program, {program}: `ip link set {interface} xdp off`, or stop what \
         attached it, or serve another interface"
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The program: name and number, as far as known.
        program: String,
    },
    /// Another switch serves the interface.
    #[error("interface {0} is served by another midflight switch: stop that one, or serve another interface")]
    Served(String),
    /// A kept state of another switch serves the interface.
    #[error(
        "interface {interface} keeps the queue of a switch on port {port}: start it on that port with --keep, or \
         `midflight switch --detach --listen 0.0.0.0:{port}` throws it away"
    )]
    KeptByAnother {
        /// The interface.
        interface: String,
        /// The port of that switch.
        port: String,
    },
    /// The kept state is in use.
    #[error("the kept switch of port {0} has a process already: stop that one first")]
    InUse(String),
    /// The kept state cannot be taken over.
    #[error("the kept queue cannot be taken over: {0}; --fresh throws it away, with the tasks in it")]
    Kept(String),
    /// There is no BPF file system for kept states.
    #[error("--keep needs the BPF file system at /sys/fs/bpf: {0}")]
    NoBpffs(String),
    /// Other users can write to the directory of kept states.
    #[error(
        "{directory}, where queues are kept, belongs to user {owner}, or is no directory, or others may write to it: see \
         who made it, and remove it"
    )]
    Untrusted {
        /// The directory.
        directory: String,
        /// Its owner.
        owner: u32,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Bytes of the longest IP packet that the engine sends: a full datagram by IPv6.
pub(super) const MTU_MIN: u32 = midflight_wire::PACKET_MAX as u32 + 40 + 8;

/// The first kernel whose arenas have atomics.
const OLDEST: (u32, u32) = (6, 12);

impl KernelError {
    /// The kernel's message, with its version if that explains it.
    pub(super) fn too_old(said: &str) -> Self {
        Self::TooOld(format!("this is Linux {}, and it says: {said}", release()))
    }

    /// For a failure of libbpf without a variant of its own.
    pub(super) fn libbpf(what: &str, error: &libbpf_rs::Error) -> Self {
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Self::Privileges,
            _ => Self::Io { what: what.to_owned(), source: io::Error::other(error.to_string()) },
        }
    }

    /// For `map_err`: names the operation.
    pub(super) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        |source| Self::Io { what: what.into(), source: source.into() }
    }

    /// Whether the machine cannot run the engine at all, rather than not as requested: tests then skip.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Privileges | Self::TooOld(_))
    }
}

/// Whether this kernel is too old for the engine.
pub(super) fn kernel_is_too_old() -> bool {
    is_too_old(&release())
}

fn is_too_old(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next());
    version.is_some_and(|version| version < OLDEST)
}

fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    text.map_or_else(|_| "of an unknown version".into(), |text| text.trim().to_owned())
}

impl From<KernelError> for CallError {
    fn from(error: KernelError) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_first_two_numbers() {
        for old in ["6.8.0-45-generic", "5.15.167.4-microsoft-standard-WSL2", "6.11", "4.19.0"] {
            assert!(is_too_old(old), "{old}");
        }
        for new in ["6.12.0", "6.12-rc1", "6.18.44", "7.0.1-arch1-1", "of an unknown version"] {
            assert!(!is_too_old(new), "{new}");
        }
    }

    #[test]
    fn every_error_is_one_line_that_says_what_to_do() {
        let io = || io::Error::from(io::ErrorKind::OutOfMemory);
        let name = || "eth0".to_owned();
        for (error, part) in [
            (KernelError::too_old("no such map"), "Linux 6.12 or newer"),
            (KernelError::Memory { bytes: 1 << 30, source: io() }, "1024 MiB"),
            (KernelError::Occupied { interface: name(), program: "p (id 1)".into() }, "ip link set eth0 xdp off"),
            (KernelError::NoNative { interface: name(), why: "none".into() }, "--mode generic"),
            (KernelError::KeptByAnother { interface: name(), port: "7".into() }, "--detach --listen 0.0.0.0:7"),
            (KernelError::Kept("it differs".into()), "--fresh"),
            (KernelError::Untrusted { directory: "/a".into(), owner: 7 }, "belongs to user 7"),
        ] {
            let said = error.to_string();
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
    }
}
