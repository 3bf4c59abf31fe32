//! The simulated network: a datagram's path between two nodes.

mod fabric;
mod faults;
mod hardware;
mod partition;
mod pool;
mod queues;
mod topology;

pub(crate) use fabric::{Fabric, Next};
pub use faults::{Faults, NetworkCounters};
pub use hardware::{Hardware, HostConfig, HostId, LinkConfig, Place, SwitchConfig};
pub(crate) use partition::Partitions;
pub(crate) use pool::{PacketId, Pool};
pub use topology::{Tier, Topology};

use crate::random::exponential;
use midflight_endpoint::Nanos;
use rand_pcg::Pcg64;

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) faults: Faults,
    pub(crate) partitions: Partitions,
    /// `None`: no hosts; only `faults` delays datagrams.
    pub(crate) fabric: Option<Fabric>,
    pub(crate) counters: NetworkCounters,
}

impl Network {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, partitions: Partitions::default(), fabric: None, counters: NetworkCounters::default() }
    }

    pub(crate) fn set_link(&mut self, place: Place, faults: Faults) {
        if let Some(fabric) = &mut self.fabric {
            fabric.set_faults(place, faults);
        }
    }

    /// Draws the additional delay of each arriving copy of a datagram.
    pub(crate) fn draw(&mut self, random: &mut Pcg64, from: Place, to: Place) -> [Option<Nanos>; 2] {
        let mut copies = self.faults.draw(random, &mut self.counters);
        let Some(fabric) = &self.fabric else { return copies };
        for faults in [from, to].into_iter().filter_map(|place| fabric.faults(place)) {
            if *faults == Faults::INSTANT {
                continue;
            }
            let [Some(delay), again] = copies else { return copies };
            let [first, second] = faults.draw(random, &mut self.counters);
            // At most two copies: a third shows nothing new.
            copies = [first.map(|more| delay + more), again.or(second.map(|more| delay + more))];
            if copies[0].is_none() {
                copies.swap(0, 1);
            }
        }
        let jitter = fabric.receive_jitter(to);
        if jitter > 0 {
            copies = copies.map(|copy| copy.map(|delay| delay + exponential(random, jitter)));
        }
        copies
    }
}
