//! Bounds of a scenario's values.

use super::parts::{Asic, Datagrams, Drift, Fault, Partition, Scenario, ScenarioEngine, ShapeName, SwitchPlace, mask};
use super::values::{Time, Who};
use crate::time::PPM_MAX;
use midflight_asic::AsicConfig;
use midflight_control::file::within;
use midflight_dataplane::TasksConfig;
use midflight_endpoint::{MS, Nanos};

/// Executors of a run.
const EXECUTORS_MAX: u32 = 4_000_000;
const SECOND: Nanos = 1_000 * MS;
/// Maximum virtual time of a run.
const LONGEST: Time = Time(7 * 24 * 3_600 * SECOND);
/// The longest delay of any kind.
const WAY: Time = Time(SECOND);
/// Tasks that a pipeline holds.
const ASIC_ENTRIES: u32 = 64 << 10;
/// Maximum tasks of a run: those of a trace or of the generator are in memory.
const TASKS_MAX: [(ShapeName, f64); 2] = [(ShapeName::Mixed, (32 << 20) as f64), (ShapeName::Equal, 1e10)];

impl Scenario {
    /// Checks every bound; the error names key, value and the valid range.
    ///
    /// # Errors
    /// The first value that is out of bounds.
    pub fn check(&self) -> Result<(), String> {
        within("duration", self.duration, Time::us(1)..=LONGEST)?;
        within("patience", self.patience, Time(0)..=LONGEST)?;
        self.check_cluster()?;
        self.check_network()?;
        self.check_asic()?;
        datagrams("datagrams", &self.datagrams)?;
        self.check_workload()?;
        self.faults.iter().enumerate().try_for_each(|(number, fault)| self.check_fault(number, fault))
    }

    fn check_cluster(&self) -> Result<(), String> {
        let (cluster, queue, host) = (&self.cluster, &self.queue, &self.host);
        within("cluster.switches", cluster.switches, 1..=1_024)?;
        let least = u32::from(cluster.groups.is_empty());
        within("cluster.executors", cluster.executors, least..=EXECUTORS_MAX)?;
        within("cluster.slots", cluster.slots, 1..=midflight_tasks::executor::SLOTS_MAX)?;
        within("cluster.clients", cluster.clients, 1..=65_536)?;
        within("cluster.late", cluster.late, Time(0)..=WAY)?;
        for (number, group) in cluster.groups.iter().enumerate() {
            let key = |name: &str| format!("cluster.groups[{number}].{name}");
            within(&key("executors"), group.executors, 1..=EXECUTORS_MAX)?;
            within(&key("slots"), group.slots.unwrap_or(1), 1..=midflight_tasks::executor::SLOTS_MAX)?;
            resources(&key("resources"), &group.resources)?;
        }
        within("cluster: all executors", cluster.all_executors(), 1..=EXECUTORS_MAX)?;
        let executors = cluster.all_executors();
        if !cluster.failover && executors < cluster.switches.min(cluster.clients) {
            return Err(format!(
                "cluster: {executors} executors for {} switches: clients of switches without executors would wait for \
                 ever; fewer switches, more executors, or failover = true",
                cluster.switches
            ));
        }
        let slots = self.slots_of_a_switch();
        if slots > 1 << 20 {
            return Err(format!(
                "cluster: {slots} slots at one switch, which takes 1048576: more switches, or fewer executors or slots"
            ));
        }
        within("queue.tasks", queue.tasks, 1..=4 << 20)?;
        within("queue.lease", queue.lease, Time::ms(100)..=Time(3_600 * SECOND))?;
        within("host.lanes", host.lanes, 1..=1_024)?;
        within("host.send", host.send, Time(0)..=WAY)?;
        within("host.receive", host.receive, Time(0)..=WAY)?;
        within("host.receive_buffer", host.receive_buffer, 1..=1 << 24)
    }

    fn check_asic(&self) -> Result<(), String> {
        let Asic { recirculation, passes_per_s, recirculating, passes, poll, levels, queue } = self.asic;
        within("asic.recirculation", recirculation, Time(0)..=WAY)?;
        within("asic.passes_per_s", passes_per_s, 0..=1_000_000_000_000)?;
        within("asic.recirculating", recirculating, 1..=1 << 24)?;
        within("asic.passes", passes, 0..=u32::MAX)?;
        within("asic.poll", poll, Time::us(1)..=Time::us(u16::MAX.into()))?;
        within("asic.levels", levels, 1..=4)?;
        within("asic.queue", queue, 2..=ASIC_ENTRIES / levels.next_power_of_two())?;
        if !queue.is_power_of_two() {
            return Err(format!("asic.queue = {queue}: must be a power of two"));
        }
        if poll.0 % 1_000 != 0 {
            return Err(format!("asic.poll = {poll}: must be whole microseconds"));
        }
        if self.cluster.engine == ScenarioEngine::Soft {
            return Ok(());
        }
        let engine = self.cluster.engine.name();
        if self.cluster.place == SwitchPlace::Server {
            return Err(format!(
                "cluster.engine = \"{engine}\": is a pipeline, and runs where cluster.place = \"switch\""
            ));
        }
        if self.workload.priorities && levels < 4 {
            return Err(format!("asic.levels = {levels}: must be 4 where workload.priorities is true"));
        }
        Ok(())
    }

    fn check_network(&self) -> Result<(), String> {
        let network = &self.network;
        for (key, time) in [
            ("network.latency", network.latency),
            ("network.trunk_latency", network.trunk_latency),
            ("network.pass", network.pass),
        ] {
            within(key, time, Time(0)..=WAY)?;
        }
        for (key, rate) in
            [("network.gbit_per_s", network.gbit_per_s), ("network.trunk_gbit_per_s", network.trunk_gbit_per_s)]
        {
            if rate != 0.0 {
                within(key, rate, 1e-5..=8_000.0).map_err(|error| format!("{error}, or 0 for no limit"))?;
            }
        }
        within("network.packets_per_s", network.packets_per_s, 0..=1_000_000_000_000)?;
        within("network.switch_queue", network.switch_queue, 1..=1 << 24)
    }

    fn check_workload(&self) -> Result<(), String> {
        let workload = &self.workload;
        within("workload.load", workload.load, 0.001..=1_000.0)?;
        within("workload.median", workload.median, Time::us(1)..=Time(3_600 * SECOND))?;
        within("workload.tasks", workload.tasks, 1..=100_000)?;
        for (number, demand) in workload.demands.iter().enumerate() {
            let key = |name: &str| format!("workload.demands[{number}].{name}");
            within(&key("share"), demand.share, 0.0..=1.0)?;
            resources(&key("resources"), &demand.resources)?;
            let wanted = mask(&demand.resources);
            if !self.cluster.kinds().any(|(_, _, offered)| wanted & !offered == 0) {
                return Err(format!("{}: no executor of cluster.groups offers all of them", key("resources")));
            }
        }
        let places = &workload.places;
        within("workload.places.count", places.count, 0..=1_000)?;
        within("workload.places.patience", places.patience.unwrap_or(Time(0)), Time(0)..=Time(32_768_000_000))?;
        within("workload.places.far", places.far, Time(0)..=Time(3_600 * SECOND))?;
        let shares: f64 = workload.demands.iter().map(|demand| demand.share).sum();
        within("workload.demands: the sum of all shares", shares, 0.0..=1.0)?;
        if workload.trace.is_some() && workload.shape == ShapeName::Equal {
            return Err("workload.shape = \"equal\" and workload.trace: leave one of them out".into());
        }
        if workload.trace.is_none() && workload.format.is_some() {
            return Err("workload.format without workload.trace: name the trace, or leave the format out".into());
        }
        let tasks = self.expected_tasks();
        match TASKS_MAX.iter().find(|(shape, most)| *shape == workload.shape && tasks > *most) {
            None => Ok(()),
            Some((_, most)) => Err(format!(
                "workload: about {tasks:.1e} tasks, at most {most:.1e} are simulated: a shorter duration, a lower load or \
                 a longer median"
            )),
        }
    }

    fn check_fault(&self, number: usize, fault: &Fault) -> Result<(), String> {
        let key = |name: &str| format!("faults[{number}].{name}");
        within(&key("at"), fault.at, Time(0)..=LONGEST)?;
        let Fault { lasts, crash, pause, drain, partition, heal, drift, datagrams: d, link, .. } = fault;
        let said = fault.whos().iter().filter(|(_, who)| who.is_some()).count()
            + [partition.is_some(), *heal, drift.is_some(), d.is_some(), link.is_some()]
                .iter()
                .filter(|said| **said)
                .count();
        if said != 1 {
            return Err(format!(
                "faults[{number}] says {said} things: it has `at` and one of `crash`, `restart`, `pause`, `resume`, \
                 `drain`, `partition`, `heal`, `drift`, `datagrams`, `link`"
            ));
        }
        for (name, who) in fault.whos() {
            who.map_or(Ok(()), |who| self.check_who(&key(name), who))?;
        }
        if drain.is_some_and(|who| !matches!(who, Who::Executor(_))) {
            return Err(format!("{}: only executors drain", key("drain")));
        }
        if let Some(lasts) = lasts {
            within(&key("lasts"), *lasts, Time(1)..=LONGEST)?;
            if crash.is_none() && pause.is_none() && partition.is_none() && d.is_none() && link.is_none() {
                return Err(format!(
                    "{}: only `crash`, `pause`, `partition`, `datagrams` and `link` end by themselves",
                    key("lasts")
                ));
            }
        }
        if let Some(Partition { from, to, .. }) = partition {
            for (name, whos) in [("from", from), ("to", to)] {
                if whos.is_empty() {
                    return Err(format!(
                        "{}.{name} = []: name whom it parts, such as [\"switches\"]",
                        key("partition")
                    ));
                }
            }
            from.iter().try_for_each(|&who| self.check_who(&key("partition.from"), who))?;
            to.iter().try_for_each(|&who| self.check_who(&key("partition.to"), who))?;
        }
        if let Some(Drift { node, ppm, jump }) = drift {
            self.check_who(&key("drift.node"), *node)?;
            within(&key("drift.ppm"), *ppm, -PPM_MAX..=PPM_MAX)?;
            within(&key("drift.jump"), *jump, Time(0)..=LONGEST)?;
        }
        if let Some(link) = link {
            self.check_who(&key("link.of"), link.of)?;
            datagrams(&key("link"), &link.datagrams())?;
        }
        d.as_ref().map_or(Ok(()), |d| datagrams(&key("datagrams"), d))
    }

    fn check_who(&self, key: &str, who: Who) -> Result<(), String> {
        let (kind, number, count) = match who {
            Who::Switch(number) => ("switch", number, self.cluster.switches),
            Who::Executor(number) => ("executor", number, self.cluster.all_executors()),
            Who::Client(number) => ("client", number, self.cluster.clients),
        };
        match number {
            Some(number) if number >= count => {
                Err(format!("{key} = \"{who}\": must be \"{kind} 0\" to \"{kind} {}\"", count - 1))
            }
            _ => Ok(()),
        }
    }

    /// Slots that may register at one switch: executors are assigned round-robin.
    fn slots_of_a_switch(&self) -> u64 {
        let switches = if self.cluster.failover { 1 } else { self.cluster.switches };
        let kinds = self.cluster.kinds();
        kinds.map(|(executors, slots, _)| u64::from(executors.div_ceil(switches)) * u64::from(slots)).sum()
    }

    pub(super) fn expected_tasks(&self) -> f64 {
        /// Mean of the durations, in medians.
        const MIXED: f64 = 6.2;
        let mean = if self.workload.shape == ShapeName::Equal { 1.0 } else { MIXED };
        let slots = self.cluster.all_slots() as f64;
        self.workload.load * slots * self.duration.0 as f64 / (self.workload.median.0 as f64 * mean)
    }

    pub(super) fn asic_config(&self) -> Option<AsicConfig> {
        let program = self.cluster.engine.program()?;
        let Asic { levels, queue, poll, .. } = self.asic;
        let TasksConfig { slots, .. } = self.tasks_config();
        let (lease_ms, poll_us) = ((self.queue.lease.0 / 1_000_000) as u32, (poll.0 / 1_000) as u16);
        Some(AsicConfig { program, levels, queue, slots, lease_ms, poll_us, ..AsicConfig::default() })
    }

    /// A switch's configuration, with room for all its clients, slots and tasks.
    pub(super) fn tasks_config(&self) -> TasksConfig {
        let Self { cluster, queue, .. } = self;
        let slots = self.slots_of_a_switch().min(1 << 20) as u32;
        // Restarted processes are new clients, and their slots new slots, until the old ones are forgotten.
        TasksConfig {
            queue: queue.tasks,
            slots: (2 * slots).clamp(64, 1 << 20),
            clients: (2 * cluster.clients).max(64),
            lease_ns: queue.lease.0,
            ..TasksConfig::default()
        }
    }
}

fn datagrams(table: &str, datagrams: &Datagrams) -> Result<(), String> {
    let Datagrams { jitter, loss, duplication, reordering, reordering_delay } = datagrams;
    for (key, probability) in [("loss", loss), ("duplication", duplication), ("reordering", reordering)] {
        within(&format!("{table}.{key}"), *probability, 0.0..=1.0)?;
    }
    within(&format!("{table}.jitter"), *jitter, Time(0)..=WAY)?;
    within(&format!("{table}.reordering_delay"), *reordering_delay, Time(0)..=WAY)
}

fn resources(key: &str, resources: &[u8]) -> Result<(), String> {
    resources.iter().try_for_each(|&number| within(key, number, 0..=7))
}
