//! What can go wrong with a lab: one line each that says what to do.

use crate::names::{HOSTS_MAX, NAME_MAX, Place, RACKS_MAX};
use std::io;

/// Why a lab could not be set up, found, entered or taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Not a name.
    #[error(
        "no lab can have the name {0:?}: take 1 to {NAME_MAX} of a-z, 0-9 and -, a letter first, and no - at the end"
    )]
    Name(String),
    /// Too few or too many hosts.
    #[error("a lab has 1 to {HOSTS_MAX} hosts, not {0}")]
    Hosts(usize),
    /// More racks than there may be, or than there are hosts.
    #[error("a lab of {hosts} hosts has 0 to {} racks, not {racks}", RACKS_MAX.min(*.hosts))]
    Racks {
        /// What was asked for.
        racks: usize,
        /// Hosts of the lab.
        hosts: usize,
    },
    /// Neither a switch nor a host.
    #[error("{0:?} is no place in a lab: write switch, rack0, host0, host1, ..")]
    Place(String),
    /// A host or a rack beyond the lab's last.
    #[error("lab {lab} has no {place}: its places are {}", places(*.hosts, *.racks))]
    NoSuchPlace {
        /// The lab.
        lab: String,
        /// What was asked for.
        place: Place,
        /// How many hosts it has.
        hosts: usize,
        /// How many racks.
        racks: usize,
    },
    /// Not a rate of loss.
    #[error("{0:?} is no rate of loss: write 0.1% or 0.001, up to 99%")]
    Loss(String),
    /// The kernel cannot drop packets as it is asked to.
    #[error(
        "cannot lose packets: {said}; loss and cuts need a kernel with CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_ACT and \
         CONFIG_NET_CLS_BPF: do without them (--loss) here"
    )]
    NoLoss {
        /// What `tc` said.
        said: String,
    },
    /// The kernel runs no XDP programs on veths.
    #[error(
        "cannot give a host an XDP program: {source}; it needs a kernel with CONFIG_BPF_SYSCALL and, for veth, Linux 4.19: \
         do without here, by --no-xdp"
    )]
    NoXdp {
        /// What the kernel said.
        source: io::Error,
    },
    /// Not privileged.
    #[error(
        "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN, for network namespaces): run this as root or with sudo"
    )]
    Privilege,
    /// A command of iproute2 is not installed.
    #[error("cannot find the command `{0}`: install the package iproute2")]
    MissingCommand(&'static str),
    /// IPv6 is off.
    #[error("the kernel has no IPv6, and a lab has both families: start it without ipv6.disable=1")]
    NoIpv6,
    /// The name is taken.
    #[error("lab {0} is up already: `midflight-lab net down --name {0}` takes it down; or give another --name")]
    Exists(String),
    /// No lab of that name.
    #[error(
        "there is no lab {0}: `midflight-lab net up --name {0}` sets it up, `midflight-lab net status` lists what there is"
    )]
    NotFound(String),
    /// It is not set up completely, or not yet.
    #[error(
        "lab {0} is not complete: it is being set up, or that was cut off; then `midflight-lab net down --name {0}` takes \
         it away"
    )]
    Incomplete(String),
    /// Another process sets it up or takes it down.
    #[error("lab {0} is just being set up or taken down by another process: try again when that has ended")]
    Busy(String),
    /// Asked from within.
    #[error("this process runs inside lab {0}, and all that run there end with it: leave it first")]
    Inside(String),
    /// A signal came while it was set up; what had been done is undone.
    #[error("interrupted; nothing is left of lab {0}")]
    Interrupted(String),
    /// A command of iproute2 failed.
    #[error("cannot {what}: {command} says: {said}")]
    Command {
        /// What it was to do.
        what: &'static str,
        /// `ip` or `tc`.
        command: &'static str,
        /// Its first words.
        said: String,
    },
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl LabError {
    /// For `map_err`; `what` was tried.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        |source| Self::Io { what: what.into(), source: source.into() }
    }

    /// Whether what was asked for does not make sense, rather than that it could not be done.
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
