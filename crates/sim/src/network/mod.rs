//! The simulated network: what happens to a datagram between two nodes.

mod faults;
mod partition;
mod pool;

pub use faults::{Faults, NetworkCounters};
pub(crate) use partition::Partitions;
pub(crate) use pool::{PacketId, Pool};

/// The network's state, as far as nodes do not have it.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) faults: Faults,
    pub(crate) partitions: Partitions,
    pub(crate) counters: NetworkCounters,
}

impl Network {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, partitions: Partitions::default(), counters: NetworkCounters::default() }
    }
}
