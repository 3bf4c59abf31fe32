//! What a network is made of, as data: hosts, links, switches, and how they are connected.

use super::{Faults, Topology};
use midflight_endpoint::Nanos;

/// Names a host of a world with hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(crate) u32);

/// Where a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Beside the hardware: what it sends and gets takes the time that [`Faults`] say, and nothing else.
    #[default]
    Apart,
    /// A process on a host.
    Host(HostId),
    /// A program of a switch, by its number in the [`Topology`].
    Switch(u32),
}

/// Switches, and what connects them.
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

/// A link. What is sent while it is occupied waits, however much that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// From one end to the other, in nanoseconds.
    pub latency: Nanos,
    /// A packet occupies it for its length; 0: for no time.
    pub bits_per_second: u64,
}

/// A switch as hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// From one port to another, or to a program, in nanoseconds.
    pub pass: Nanos,
    /// Packets that it passes at most, all ports together; 0: any number.
    pub packets_per_second: u64,
    /// Packets that wait where that is exceeded; beyond, they are dropped.
    pub queue: u32,
    /// How long a packet takes that a program sends to itself, in nanoseconds, before it passes again.
    pub recirculation: Nanos,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostConfig {
    /// Which switch it is connected to, from 0.
    pub rack: u32,
    /// Packets that its network stack works on at once.
    pub lanes: u32,
    /// How long a lane works on a packet that leaves, in nanoseconds.
    pub send: Nanos,
    /// How long it works on a packet that comes, in nanoseconds.
    pub receive: Nanos,
    /// Packets that wait for a lane; beyond, they are dropped.
    pub receive_buffer: u32,
    /// What befalls what it sends and gets, on top of what befalls all.
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
        Self { rack: 0, lanes: 1, send: 0, receive: 0, receive_buffer: 4096, faults: Faults::INSTANT }
    }
}
