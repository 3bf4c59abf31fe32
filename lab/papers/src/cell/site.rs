//! Hardware of a Midflight cell: costs of its hosts, links and switches.

use super::machine::Machine;
use super::testbed::{hardware, host};
use super::{Linux, Load, Measured};
use crate::calibration::*;
use midflight_endpoint::Nanos;
use midflight_sim::{Faults, Hardware, HostConfig, HostId, LinkConfig, SwitchConfig, World};

pub(super) struct Site {
    hardware: Hardware,
    host: HostConfig,
    /// If all share a machine: its cores, and the machine once created.
    shared: Option<(u32, Option<HostId>)>,
    /// If all share a machine with measured costs.
    measured: Option<(Measured, Machine)>,
}

/// Time of a packet without queueing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    /// From a program to the switch.
    pub up: Nanos,
    /// From the switch to the program.
    pub down: Nanos,
}

impl Site {
    /// The papers' testbed.
    pub(super) fn papers() -> Self {
        Self { hardware: hardware(), host: host(), shared: None, measured: None }
    }

    pub(super) fn linux(linux: Linux, load: &Load) -> Self {
        if let Some(measured) = linux.measured {
            return Self::measured_on(linux.shared_cores, measured);
        }
        let hardware = hardware();
        let link = LinkConfig { latency: LINUX_WAY_NS, ..hardware.link };
        // The switch's core accounts for the time of a pass.
        let switch = SwitchConfig { pass: 0, packets_per_second: 0, ..hardware.switch };
        // No-op tasks make packets so frequent that all programs poll their sockets.
        let asleep = !matches!(load, Load::Noop { .. });
        let wake = if asleep { linux.wake_ns.map_or(LINUX_WAKE_NS, Nanos::from) } else { 0 };
        let host = HostConfig {
            send: LINUX_SEND_NS,
            receive: LINUX_RECEIVE_NS + wake,
            receive_jitter: LINUX_JITTER_NS,
            ..host()
        };
        let shared = (linux.shared_cores > 0).then_some((linux.shared_cores, None));
        Self { hardware: Hardware { link, trunk: link, switch, ..hardware }, host, shared, measured: None }
    }

    fn measured_on(cores: u32, measured: Measured) -> Self {
        let machine = Machine::new(cores, measured.turn_ns.into());
        let host = HostConfig { lanes: NODE_THREADS, ..HostConfig::default() };
        Self { hardware: Hardware::default(), host, shared: None, measured: Some((measured, machine)) }
    }

    pub(super) fn measured(&self) -> Option<Measured> {
        self.measured.as_ref().map(|(measured, _)| *measured)
    }

    /// The machine with measured costs, if all processes share one.
    pub(super) fn machine(&self) -> Option<Machine> {
        self.measured.as_ref().map(|(_, machine)| machine.clone())
    }

    pub(super) fn faults(&self) -> Faults {
        let way = self.measured().map_or(0, |measured| measured.way_ns.into());
        Faults { delay_min: way, delay_max: way, ..Faults::INSTANT }
    }

    pub(super) fn hardware(&self) -> Hardware {
        self.hardware.clone()
    }

    pub(super) fn host(&self) -> HostConfig {
        self.host
    }

    pub(super) fn add_host(&mut self, world: &mut World, config: HostConfig) -> HostId {
        let Some((cores, machine)) = &mut self.shared else { return world.add_host(config) };
        *machine.get_or_insert_with(|| world.add_host(HostConfig { lanes: *cores, ..config }))
    }

    pub(super) fn ways(&self) -> Ways {
        let (link, host) = (self.hardware.link.latency, self.host);
        Ways { up: host.send + link + self.hardware.switch.pass, down: link + host.receive + host.receive_jitter }
    }
}
