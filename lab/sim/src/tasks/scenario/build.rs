//! Builds a world from a scenario.

use super::jobs::Jobs;
use super::outcome::{Disturbance, Outcome};
use super::parts::{Asic, Drift, Fault, NetworkPart, Partition, PlacesPart, Scenario, SwitchPlace};
use super::values::{Time, Who};
use super::{Notes, ScenarioError};
use crate::tasks::asic::{Passes, Pipeline, Tally};
use crate::tasks::{Command, nodes};
use crate::{Action, Faults, Hardware, HostConfig, LinkConfig, NodeId, Place, SwitchConfig, Topology, World};
use midflight_control::FileError;
use midflight_endpoint::Nanos;
use midflight_tasks::client::ClientConfig;
use midflight_tasks::executor::ExecutorConfig;
use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

/// Maximum open tasks of a client: the most that the endpoint accepts.
const OPEN: usize = 1 << 24;

/// A running scenario.
#[derive(Debug)]
pub struct Run {
    world: World,
    deadline: Nanos,
    live: Rc<Cell<u32>>,
    /// The pipelines' counts, with an asic engine.
    tally: Option<Tally>,
    notes: Notes,
}

/// Nodes of a scenario: switches, executors, clients.
struct Nodes([Range<u32>; 3]);

impl Nodes {
    fn of(scenario: &Scenario) -> Self {
        let cluster = &scenario.cluster;
        let executors = cluster.switches + cluster.all_executors();
        Self([0..cluster.switches, cluster.switches..executors, executors..executors + cluster.clients])
    }

    fn who(&self, who: Who) -> Vec<NodeId> {
        let (kind, number) = match who {
            Who::Switch(number) => (0, number),
            Who::Executor(number) => (1, number),
            Who::Client(number) => (2, number),
        };
        let nodes = self.0[kind].clone();
        match number {
            Some(number) => vec![NodeId(nodes.start + number)],
            None => nodes.map(NodeId).collect(),
        }
    }
}

impl Scenario {
    /// Builds the world. `file` is the scenario's own: trace paths are relative to it, and errors name it.
    ///
    /// # Errors
    /// If the trace cannot be read or scaled, or a bound is violated.
    pub fn start(&self, file: &Path) -> Result<Run, ScenarioError> {
        self.check().map_err(|message| FileError::value(file, message))?;
        let (mut notes, live) = (Notes::default(), Rc::new(Cell::new(0)));
        let tally = self.cluster.engine.program().map(|_| Tally::default());
        let jobs = Jobs::new(self, file, &mut notes)?;
        let nodes = Nodes::of(self);
        let mut world = World::with_hardware(self.seed, Faults::from(&self.datagrams), &self.hardware());
        let mut disturbances = self.schedule(&mut world, &nodes);
        disturbances.sort_by_key(|disturbance| disturbance.at);
        world.set_sink(Box::new(Outcome::new(nodes.0[2].clone(), disturbances)));
        let switches = self.add_switches(&mut world, tally.as_ref());
        self.populate(&mut world, &switches, &jobs, &live);
        Ok(Run { world, deadline: self.duration.0 + self.patience.0, live, tally, notes })
    }

    fn hardware(&self) -> Hardware {
        let NetworkPart { latency, gbit_per_s, trunk_latency, trunk_gbit_per_s, pass, packets_per_s, switch_queue } =
            self.network;
        let link = |latency: Time, gbit_per_s: f64| LinkConfig {
            latency: latency.0,
            bits_per_second: (gbit_per_s * 1e9) as u64,
        };
        Hardware {
            topology: Topology::racks(self.cluster.switches),
            link: link(latency, gbit_per_s),
            trunk: link(trunk_latency, trunk_gbit_per_s),
            switch: SwitchConfig {
                pass: pass.0,
                packets_per_second: packets_per_s,
                queue: switch_queue,
                recirculation: 0,
            },
        }
    }

    fn host(&self, world: &mut World, rack: u32) -> Place {
        Place::Host(world.add_host(HostConfig {
            rack,
            lanes: self.host.lanes,
            send: self.host.send.0,
            receive: self.host.receive.0,
            receive_buffer: self.host.receive_buffer,
            ..HostConfig::default()
        }))
    }

    /// One in each rack; returns their addresses.
    fn add_switches(&self, world: &mut World, tally: Option<&Tally>) -> Vec<SocketAddr> {
        let mut add = |rack| {
            let place = match self.cluster.place {
                SwitchPlace::Switch => Place::Switch(rack),
                SwitchPlace::Server => self.host(world, rack),
            };
            let switch = match (self.asic_config(), tally) {
                (Some(config), Some(tally)) => {
                    let added = nodes::add_asic_at(world, place, config, self.pipeline(), tally);
                    added.expect("Scenario::check keeps the bounds")
                }
                _ => nodes::add_switch_at(world, place, self.tasks_config()).expect("Scenario::check keeps the bounds"),
            };
            world.address(switch)
        };
        (0..self.cluster.switches).map(&mut add).collect()
    }

    fn pipeline(&self) -> Pipeline {
        let Asic { recirculation, passes_per_s, recirculating, passes, .. } = self.asic;
        let (recirculation, queue) = (recirculation.0, self.network.switch_queue);
        Pipeline { recirculation, passes_per_s, queue, recirculating, passes }
    }

    fn populate(&self, world: &mut World, at: &[SocketAddr], jobs: &Jobs, live: &Rc<Cell<u32>>) {
        let cluster = &self.cluster;
        let switches = |rack: u32| {
            let rotated = at.iter().cycle().skip(rack as usize);
            rotated.take(if cluster.failover { at.len() } else { 1 }).copied().collect::<Vec<_>>()
        };
        let kinds = cluster
            .kinds()
            .flat_map(|(executors, slots, resources)| std::iter::repeat_n((slots, resources), executors as usize));
        for (number, (slots, resources)) in (0u32..).zip(kinds) {
            let rack = number % cluster.switches;
            let place = self.host(world, rack);
            let mut config = ExecutorConfig::new(0, 0, switches(rack), slots, resources);
            let places = &self.workload.places;
            if places.count > 0 {
                config.places[0] = PlacesPart::number(number % places.count);
            }
            nodes::add_executor_at(world, place, config, cluster.late.0, places.far.0)
                .expect("Scenario::check keeps the bounds");
        }
        for number in 0..cluster.clients {
            let rack = number % cluster.switches;
            let place = self.host(world, rack);
            let config = ClientConfig { max_open: OPEN, ..ClientConfig::new(0, 0, switches(rack)) };
            nodes::add_client_at(world, place, config, jobs.of(number, live))
                .expect("Scenario::check keeps the bounds");
        }
    }

    fn schedule(&self, world: &mut World, nodes: &Nodes) -> Vec<Disturbance> {
        let mut disturbances = Vec::new();
        for fault in &self.faults {
            let what = words(fault);
            for action in actions(fault, nodes) {
                if let (Some(lasts), Some(end)) = (fault.lasts, self.end_of(&action)) {
                    world.at(fault.at.0 + lasts.0, end);
                }
                world.at(fault.at.0, action);
            }
            let disturbance = |at, what| Disturbance { at, what, next_start: None };
            disturbances.push(disturbance(fault.at.0, what.clone()));
            if let Some(lasts) = fault.lasts {
                disturbances.push(disturbance(fault.at.0 + lasts.0, format!("end of: {what}")));
            }
        }
        disturbances
    }

    /// The action that ends another one after its time.
    fn end_of(&self, action: &Action) -> Option<Action> {
        match action {
            Action::Crash(node) => Some(Action::Restart(*node)),
            Action::Pause(node) => Some(Action::Resume(*node)),
            Action::Partition { .. } => Some(Action::Heal),
            Action::Faults(_) => Some(Action::Faults(Faults::from(&self.datagrams))),
            Action::Link { node, .. } => Some(Action::Link { node: *node, faults: Faults::INSTANT }),
            _ => None,
        }
    }
}

fn actions(fault: &Fault, nodes: &Nodes) -> Vec<Action> {
    let Fault { partition, heal, drift, datagrams, link, .. } = fault;
    let drained = |node| Action::command(node, Command::Drain);
    // In the order of `Fault::whos`.
    let kinds: [fn(NodeId) -> Action; 5] = [Action::Crash, Action::Restart, Action::Pause, Action::Resume, drained];
    let mut actions = Vec::new();
    for ((_, who), action) in fault.whos().into_iter().zip(kinds) {
        actions.extend(who.map_or(vec![], |who| nodes.who(who)).into_iter().map(action));
    }
    if let Some(Partition { from, to, both }) = partition {
        let all = |whos: &[Who]| whos.iter().flat_map(|&who| nodes.who(who)).collect();
        actions.push(Action::Partition { from: all(from), to: all(to), both: *both });
    }
    if *heal {
        actions.push(Action::Heal);
    }
    if let Some(Drift { node, ppm, jump }) = drift {
        let drift = |node| Action::Drift { node, ppm: *ppm, offset: jump.0 };
        actions.extend(nodes.who(*node).into_iter().map(drift));
    }
    if let Some(link) = link {
        let faults = Faults::from(&link.datagrams());
        actions.extend(nodes.who(link.of).into_iter().map(|node| Action::Link { node, faults }));
    }
    actions.extend(datagrams.as_ref().map(|datagrams| Action::Faults(datagrams.into())));
    actions
}

fn words(fault: &Fault) -> String {
    let Fault { partition, drift, datagrams, link, .. } = fault;
    if let Some((verb, who)) = fault.whos().into_iter().find_map(|(verb, who)| Some((verb, who?))) {
        return format!("{verb} {who}");
    }
    match (partition, drift, datagrams, link) {
        (Some(_), ..) => "partition".into(),
        (_, Some(drift), ..) => format!("drift {}", drift.node),
        (_, _, Some(datagrams), _) => format!("datagrams: loss {}", datagrams.loss),
        (.., Some(link)) => format!("link of {}: loss {}", link.of, link.loss),
        _ => "heal".into(),
    }
}

impl Run {
    /// Runs for at most this many events. Returns whether the run is over: all tasks have ended, or its time has.
    pub fn advance(&mut self, events: u64) -> bool {
        let (live, mut left) = (&self.live, events);
        let done = self.world.run(self.deadline, |world| {
            left = left.saturating_sub(1);
            left == 0 || live.get() == 0 && world.sink::<Outcome>().is_some_and(|outcome| outcome.open() == 0)
        });
        !done || left > 0
    }

    /// The results so far.
    ///
    /// # Panics
    /// Never: it is the world's sink.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        self.world.sink().expect("Scenario::start set it")
    }

    /// The pipelines' counts; `None` without an asic engine.
    #[must_use]
    pub fn passes(&self) -> Option<Passes> {
        self.tally.as_ref().map(Tally::passes)
    }

    /// The world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Remarks from reading the trace.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.notes
    }
}
