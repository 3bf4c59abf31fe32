//! Errors of a lab, each a line that says what to do.

use crate::names::{HOSTS_MAX, NAME_MAX, Place, RACKS_MAX};
use std::io;

/// Why a lab could not be set up, found, entered or taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The name is invalid.
    #[error(
        "no lab can have the name {0:?}: take 1 to {NAME_MAX} of a-z, 0-9 and -, a letter first, and no - at the end"
    )]
    Name(String),
    /// Too few or too many hosts.
    #[error("a lab has 1 to {HOSTS_MAX} hosts, not {0}")]
    Hosts(usize),
    /// More racks than allowed, or than hosts.
    #[error("a lab of {hosts} hosts has 0 to {} racks, not {racks}", RACKS_MAX.min(*.hosts))]
    Racks {
        /// Racks requested.
        racks: usize,
        /// Hosts in the lab.
        hosts: usize,
    },
    /// The place is neither a switch nor a host.
    #[error("{0:?} is no place in a lab: write switch, rack0, host0, host1, ..")]
    Place(String),
    /// The lab has no such host or rack.
    #[error("lab {lab} has no {place}: its places are {}", places(*.hosts, *.racks))]
    NoSuchPlace {
        /// The lab's name.
        lab: String,
        /// The place requested.
        place: Place,
        /// Hosts in the lab.
        hosts: usize,
        /// Racks in the lab.
        racks: usize,
    },
    /// The rate of loss is invalid.
    #[error("{0:?} is no rate of loss: write 0.1% or 0.001, up to 99%")]
    Loss(String),
    /// The kernel lacks the filters that drop packets.
    #[error(
        "cannot lose packets: {said}; loss and cuts need a kernel with CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_ACT and \
         CONFIG_NET_CLS_BPF: do without them (--loss) here"
    )]
    NoLoss {
        /// Output of `tc`.
        said: String,
    },
    /// The kernel runs no XDP programs on veths.
    #[error(
        "cannot give a host an XDP program: {source}; it needs a kernel with CONFIG_BPF_SYSCALL and, for veth, Linux 4.19: \
         do without here, by --no-xdp"
    )]
    NoXdp {
        /// The kernel's error.
        source: io::Error,
    },
    /// The process lacks privileges.
    #[error(
        "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN, for network namespaces): run this as root or with sudo"
    )]
    Privilege,
    /// A command of iproute2 is not installed.
    #[error("cannot find the command `{0}`: install the package iproute2")]
    MissingCommand(&'static str),
    /// The kernel has no IPv6.
    #[error("the kernel has no IPv6, and a lab has both families: start it without ipv6.disable=1")]
    NoIpv6,
    /// The name is in use.
    #[error("lab {0} is up already: `midflight-lab net down --name {0}` takes it down; or give another --name")]
    Exists(String),
    /// No lab has this name.
    #[error(
        "there is no lab {0}: `midflight-lab net up --name {0}` sets it up, `midflight-lab net status` lists what there is"
    )]
    NotFound(String),
    /// Setup is unfinished or was interrupted.
    #[error(
        "lab {0} is not complete: it is being set up, or that was cut off; then `midflight-lab net down --name {0}` takes \
         it away"
    )]
    Incomplete(String),
    /// Another process is setting it up or taking it down.
    #[error("lab {0} is just being set up or taken down by another process: try again when that has ended")]
    Busy(String),
    /// The caller runs inside the lab.
    #[error("this process runs inside lab {0}, and all that run there end with it: leave it first")]
    Inside(String),
    /// A signal interrupted the setup, which was undone.
    #[error("interrupted; nothing is left of lab {0}")]
    Interrupted(String),
    /// A command of iproute2 failed.
    #[error("cannot {what}: {command} says: {said}")]
    Command {
        /// The attempted action.
        what: &'static str,
        /// `ip` or `tc`.
        command: &'static str,
        /// First words of its output.
        said: String,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The attempted action.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl LabError {
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        |source| Self::Io { what: what.into(), source: source.into() }
    }

    /// Whether the request was invalid, as opposed to its execution failing.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Name(_)
                | Self::Hosts(_)
                | Self::Racks { .. }
                | Self::Place(_)
                | Self::NoSuchPlace { .. }
                | Self::Loss(_)
        )
    }
}

fn places(hosts: usize, racks: usize) -> String {
    match racks {
        0 => format!("switch and host0 to host{}", hosts - 1),
        _ => format!("switch, rack0 to rack{} and host0 to host{}", racks - 1, hosts - 1),
    }
}
