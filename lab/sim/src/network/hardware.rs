//! The parts of a network as data: hosts, links, switches, and how they are connected.

use super::{Faults, Topology};
use midflight_endpoint::Nanos;

/// Names a host of a world with hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(crate) u32);

/// The place of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Outside the hardware: its datagrams have the delay of [`Faults`], and no other.
    #[default]
    Apart,
    /// A process on a host.
    Host(HostId),
    /// A program of a switch, by its number in the [`Topology`].
    Switch(u32),
}

/// Switches and their links.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// How switches are connected.
    pub topology: Topology,
    /// Between a host and the switch of its rack, each way.
    pub link: LinkConfig,
    /// Between two switches, each way.
    pub trunk: LinkConfig,
    /// All switches.
    pub switch: SwitchConfig,
}

/// A link. Packets that are sent while it is occupied wait, without a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Latency from one end to the other, in nanoseconds.
    pub latency: Nanos,
    /// Bandwidth: a packet occupies the link for its length. 0: for no time.
    pub bits_per_second: u64,
}

/// A switch as hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Latency from one port to another, or to a program, in nanoseconds.
    pub pass: Nanos,
    /// Packets that it passes in a second at most, all ports together; 0: no limit.
    pub packets_per_second: u64,
    /// Packets that wait if that rate is exceeded, at most; further ones are dropped.
    pub queue: u32,
    /// Delay of a packet that a program sends to itself, in nanoseconds, before it passes again.
    pub recirculation: Nanos,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostConfig {
    /// The switch that it is connected to, from 0.
    pub rack: u32,
    /// Packets that its network stack works on at once.
    pub lanes: u32,
    /// Time of a lane for a packet that leaves, in nanoseconds.
    pub send: Nanos,
    /// And for each of its bytes, in picoseconds: its program must write it.
    pub send_ps_per_byte: u64,
    /// Time of a lane for a packet that arrives, in nanoseconds.
    pub receive: Nanos,
    /// By how much longer it takes until its program runs: the mean of an exponential distribution, in nanoseconds.
    pub receive_jitter: Nanos,
    /// Arrived packets that wait for a lane, at most; further ones are dropped.
    pub receive_buffer: u32,
    /// Faults of its datagrams in both directions, in addition to those of all datagrams.
    pub faults: Faults,
}

impl Default for Hardware {
    /// A star that takes no time.
    fn default() -> Self {
        let link = LinkConfig { latency: 0, bits_per_second: 0 };
        let switch = SwitchConfig { pass: 0, packets_per_second: 0, queue: 4096, recirculation: 0 };
        Self { topology: Topology::Star, link, trunk: link, switch }
    }
}

impl Default for HostConfig {
    /// In the first rack, without costs.
    fn default() -> Self {
        Self {
            rack: 0,
            lanes: 1,
            send: 0,
            send_ps_per_byte: 0,
            receive: 0,
            receive_jitter: 0,
            receive_buffer: 4096,
            faults: Faults::INSTANT,
        }
    }
}
