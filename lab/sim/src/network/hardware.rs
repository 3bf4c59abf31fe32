//! The parts of a network as data: hosts, links, switches, and how they are connected.

use super::{Faults, Topology};
use midflight_endpoint::Nanos;

/// A host of a world with hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(crate) u32);

/// The place of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Outside the hardware: only [`Faults`] delays its datagrams.
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
    /// Between a host and its rack's switch, each way.
    pub link: LinkConfig,
    /// Between two switches, each way.
    pub trunk: LinkConfig,
    /// All switches.
    pub switch: SwitchConfig,
}

/// A link. Packets wait without bound while it is occupied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// One-way latency in nanoseconds.
    pub latency: Nanos,
    /// Bandwidth; 0: unlimited.
    pub bits_per_second: u64,
}

/// A switch as hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Latency between two ports, or to a program, in nanoseconds.
    pub pass: Nanos,
    /// Maximum packets per second, all ports together; 0: no limit.
    pub packets_per_second: u64,
    /// Maximum packets that wait at that limit; further ones are dropped.
    pub queue: u32,
    /// Delay of a packet that a program sends to itself, in nanoseconds.
    pub recirculation: Nanos,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostConfig {
    /// The switch that it is connected to, from 0.
    pub rack: u32,
    /// Packets that its network stack handles in parallel.
    pub lanes: u32,
    /// Lane time of a sent packet, in nanoseconds.
    pub send: Nanos,
    /// Additional lane time per sent byte, in picoseconds, for the program to write it.
    pub send_ps_per_byte: u64,
    /// Lane time of a received packet, in nanoseconds.
    pub receive: Nanos,
    /// Mean additional delay until its program runs (exponential distribution), in nanoseconds.
    pub receive_jitter: Nanos,
    /// Maximum received packets that wait for a lane; further ones are dropped.
    pub receive_buffer: u32,
    /// Faults of its datagrams in both directions, in addition to those of all datagrams.
    pub faults: Faults,
}

impl Default for Hardware {
    /// A star without delays.
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
