//! A datagram's path through the hardware, hop by hop.
//!
//! All packets for a host come through its one link, so its lanes are reserved in order when they leave the switch. One
//! error remains: a packet that the host sends within the link's latency may wait behind one that arrives later.

use super::queues::{Lanes, Link};
use super::{Faults, Hardware, HostConfig, HostId, Place, SwitchConfig};
use crate::NodeId;
use midflight_endpoint::Nanos;

const PICOSECONDS: u64 = 1_000;

pub(crate) type Ends = (NodeId, NodeId);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Switch { at: Nanos, switch: u32 },
    There { at: Nanos },
    ReceiveBufferFull,
    SwitchQueueFull,
}

#[derive(Debug)]
struct Host {
    config: HostConfig,
    lanes: Lanes,
    up: Link,
    down: Link,
}

impl Host {
    fn receive(&mut self, at: Nanos) -> Next {
        self.lanes.receive(at, self.config.receive).map_or(Next::ReceiveBufferFull, |at| Next::There { at })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Switch {
    /// When it passes the next packet under a rate limit, in picoseconds.
    free_ps: u64,
    program: Option<NodeId>,
}

#[derive(Clone, Copy, Debug)]
struct Trunk {
    /// `up` leads away from the hosts.
    up: Link,
    down: Link,
}

#[derive(Debug)]
pub(crate) struct Fabric {
    hardware: Hardware,
    /// Time between two packets through a switch, in picoseconds: real switches pass several in a nanosecond.
    gap_ps: u64,
    hosts: Vec<Host>,
    switches: Vec<Switch>,
    trunks: Vec<Trunk>,
}

impl Fabric {
    pub(crate) fn new(hardware: &Hardware) -> Self {
        let trunk = Trunk { up: Link::new(hardware.trunk), down: Link::new(hardware.trunk) };
        Self {
            gap_ps: (1_000_000_000 * PICOSECONDS).checked_div(hardware.switch.packets_per_second).unwrap_or(0),
            hosts: Vec::new(),
            switches: vec![Switch::default(); hardware.topology.switches() as usize],
            trunks: vec![trunk; hardware.topology.trunks() as usize],
            hardware: hardware.clone(),
        }
    }

    /// `None` if there is no such rack.
    pub(crate) fn add_host(&mut self, config: HostConfig) -> Option<HostId> {
        let link = || Link::new(self.hardware.link);
        let host = Host { lanes: Lanes::new(config.lanes, config.receive_buffer), up: link(), down: link(), config };
        (config.rack < self.hardware.topology.rack_switches()).then(|| {
            self.hosts.push(host);
            HostId(self.hosts.len() as u32 - 1)
        })
    }

    pub(crate) fn has(&self, place: Place) -> bool {
        match place {
            Place::Apart => true,
            Place::Host(host) => (host.0 as usize) < self.hosts.len(),
            Place::Switch(switch) => (switch as usize) < self.switches.len(),
        }
    }

    pub(crate) fn faults(&self, place: Place) -> Option<&Faults> {
        let Place::Host(host) = place else { return None };
        self.hosts.get(host.0 as usize).map(|host| &host.config.faults)
    }

    /// Mean delay between a packet's arrival at this place and its program.
    pub(crate) fn receive_jitter(&self, place: Place) -> Nanos {
        let Place::Host(host) = place else { return 0 };
        self.hosts.get(host.0 as usize).map_or(0, |host| host.config.receive_jitter)
    }

    pub(crate) fn set_faults(&mut self, place: Place, faults: Faults) {
        if let Place::Host(host) = place
            && let Some(host) = self.hosts.get_mut(host.0 as usize)
        {
            host.config.faults = faults;
        }
    }

    fn switch_of(&self, place: Place) -> u32 {
        match place {
            Place::Apart => 0,
            Place::Host(host) => self.hosts[host.0 as usize].config.rack,
            Place::Switch(switch) => switch,
        }
    }

    /// The switches between two nodes; none if one of them is outside the hardware.
    pub(crate) fn route(&self, from: Place, to: Place, ends: Ends) -> Vec<u32> {
        if from == Place::Apart || to == Place::Apart {
            return Vec::new();
        }
        self.hardware.topology.route(self.switch_of(from), self.switch_of(to), ends)
    }

    pub(crate) fn program(&self, switch: u32) -> Option<NodeId> {
        self.switches[switch as usize].program
    }

    /// Shows the switch's passing datagrams to this node. Returns whether no other node had them.
    pub(crate) fn attach(&mut self, switch: u32, node: NodeId) -> bool {
        self.switches[switch as usize].program.replace(node).is_none()
    }

    pub(crate) fn leave(&mut self, now: Nanos, from: Place, to: Place, bytes: usize, ends: Ends) -> Next {
        match (from, to) {
            (Place::Apart, _) | (_, Place::Apart) => Next::There { at: now },
            (Place::Switch(here), Place::Switch(there)) if here == there => {
                let SwitchConfig { recirculation, pass, .. } = self.hardware.switch;
                Next::Switch { at: now + recirculation + pass, switch: here }
            }
            (Place::Switch(here), _) => self.pass(now, here, to, bytes, ends),
            (Place::Host(host), _) => {
                let sender = &mut self.hosts[host.0 as usize];
                let write = bytes as u64 * sender.config.send_ps_per_byte / PICOSECONDS;
                let left = sender.lanes.send(now, sender.config.send + write);
                if from == to {
                    return sender.receive(left);
                }
                let at = sender.up.send(left, bytes) + self.hardware.switch.pass;
                Next::Switch { at, switch: sender.config.rack }
            }
        }
    }

    /// When a packet that has arrived at a switch may pass; `None` if the switch's queue is full.
    pub(crate) fn admit(&mut self, now: Nanos, switch: u32) -> Option<Nanos> {
        if self.gap_ps == 0 {
            return Some(now);
        }
        let free = &mut self.switches[switch as usize].free_ps;
        let now_ps = now * PICOSECONDS;
        let begin = now_ps.max(*free);
        if begin - now_ps > self.gap_ps * u64::from(self.hardware.switch.queue) {
            return None;
        }
        *free = begin + self.gap_ps;
        Some(begin / PICOSECONDS)
    }

    pub(crate) fn pass(&mut self, now: Nanos, switch: u32, to: Place, bytes: usize, ends: Ends) -> Next {
        let (target, topology) = (self.switch_of(to), self.hardware.topology);
        if switch != target {
            let next = topology.next(switch, target, ends);
            let trunk = &mut self.trunks[topology.trunk(switch.min(next), switch.max(next)) as usize];
            let link = if next > switch { &mut trunk.up } else { &mut trunk.down };
            return Next::Switch { at: link.send(now, bytes) + self.hardware.switch.pass, switch: next };
        }
        match to {
            Place::Apart | Place::Switch(_) => Next::There { at: now },
            Place::Host(host) => {
                let host = &mut self.hosts[host.0 as usize];
                let at = host.down.send(now, bytes);
                host.receive(at)
            }
        }
    }
}
