//! A run: a world from a trial, and its faults in order.

use super::control::Control;
use super::guess::CRAFT;
use super::monitor::{EXPIRE, Findings};
use super::mutants::MUTANTS;
use super::network::{controller_config, network};
use super::script::{IDS, LOOKS, Script};
use super::spy::add_spy;
use super::trial::{ClientSpec, FaultKind, Party, ServerSpec, Trial};
use crate::cache::{Beside, Condition, Controlled, Lies, Mood, Pace, Planner, Slot, Work, nodes};
use crate::check::{Checked, Mutant, Places, Subject, TrialRun, add_attacker};
use crate::{Action, Hardware, HostConfig, LinkConfig, NodeId, Place, SwitchConfig, Topology, World};
use midflight_cache::client::ClientConfig;
use midflight_cache::rsnode::RsNodeConfig;
use midflight_cache::server::{ServerConfig, ServiceTime};
use midflight_dataplane::cache::CacheConfig;
use midflight_endpoint::{MS, Nanos, SECOND};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

pub(super) const TIMEOUT: Nanos = 4 * SECOND;
/// Short, so that cookies expire.
const COOKIE: Nanos = 200 * MS;
/// After this time a server refuses a waiting request, and frees the slot of a silent application.
const WAIT: Nanos = 300 * MS;
const SERVE: Nanos = 500 * MS;

const FACTORS: [f64; 4] = [0.1, 1.0, 4.0, 16.0];

/// The cache program under faults: a cache behind operators, and its checker.
pub struct CacheSubject {
    pub(super) run: TrialRun<Trial, Findings>,
    pub(super) groups: Rc<[Vec<SocketAddr>]>,
    pub(super) script: Script,
    planner: Planner,
}

struct Site {
    world: World,
    is_tree: bool,
    racks: usize,
}

impl Site {
    fn new(trial: &Trial) -> Self {
        let faults = trial.network.faults();
        let world = if trial.is_tree {
            let link = LinkConfig { latency: 500, bits_per_second: 10_000_000_000 };
            let switch = SwitchConfig { pass: 400, packets_per_second: 0, queue: 4_096, recirculation: 1_250 };
            let hardware = Hardware { topology: Topology::fat_tree(4), link, trunk: link, switch };
            World::with_hardware(trial.seed, faults, &hardware)
        } else {
            World::new(trial.seed, faults)
        };
        Self { world, is_tree: trial.is_tree, racks: trial.racks }
    }

    /// Rack switches come first in a tree, aggregation switches after all of them.
    fn switch(&self, operator: usize) -> Place {
        match self.is_tree {
            true if operator < self.racks => Place::Switch(operator as u32),
            true => Place::Switch(Topology::fat_tree(4).rack_switches() + (operator - self.racks) as u32),
            false => Place::Apart,
        }
    }

    fn host(&mut self, rack: usize) -> Place {
        if !self.is_tree {
            return Place::Apart;
        }
        Place::Host(self.world.add_host(HostConfig { rack: rack as u32, ..HostConfig::default() }))
    }
}

impl Subject for CacheSubject {
    const NAME: &'static str = "cache";
    const MUTANTS: &'static [Mutant] = MUTANTS;
    type Trial = Trial;
    type Findings = Findings;
    type ScheduledAction = Infallible;

    fn draw(seed: u64) -> Trial {
        Trial::draw(seed)
    }

    fn build(trial: &Trial, traced: bool) -> Self {
        let mut site = Site::new(trial);
        let count = trial.operators();
        // Operators, selectors, servers and clients are added in this order.
        let at: fn(usize, usize) -> SocketAddr = |first: usize, place: usize| NodeId((first + place) as u32).home();
        let servers: Vec<SocketAddr> = (0..trial.servers.len()).map(|place| at(2 * count, place)).collect();
        let senders: BTreeSet<IpAddr> = (0..2 * count).map(|place| at(0, place).ip()).collect();
        let servers_of = |group| trial.servers_of(group).map(|place| servers[place]).collect();
        let groups: Rc<[Vec<SocketAddr>]> = (0..trial.groups).map(servers_of).collect();

        let first_client = 2 * count + trial.servers.len();
        let first_controller = first_client + trial.clients.len();
        let at_controllers: Vec<SocketAddr> = (0..trial.controllers).map(|place| at(first_controller, place)).collect();
        let known = (trial.controllers > 0).then(|| network(trial, at, &groups));
        let mut bounds = bounds(trial);
        bounds.masks = known.as_ref().map_or(bounds.masks, |network| network.masks());
        let controlled = Controlled { by: at_controllers, has_streams: trial.has_streams };
        let slots: Vec<Slot> = (0..count).map(|_| Slot::default()).collect();
        let operators: Vec<NodeId> = (0..count)
            .map(|operator| {
                let (place, slot) = (site.switch(operator), slots[operator].clone());
                nodes::add_operator(&mut site.world, place, bounds, controlled.clone(), slot)
            })
            .collect();
        let selectors: Vec<NodeId> = (0..count)
            .map(|place| {
                let beside = beside(trial, at(0, place), &servers, slots[place].clone());
                let place = site.switch(place);
                nodes::add_selector(&mut site.world, place, beside)
            })
            .collect();
        let server_nodes: Vec<NodeId> = (0..trial.servers.len())
            .map(|place| {
                let rack = trial.rack_of_server(place);
                let config = server_config(&trial.servers[place], servers[place], at(0, rack), &senders);
                let host = site.host(rack);
                nodes::add_server(&mut site.world, host, config, trial.servers[place].service_us * 1_000)
            })
            .collect();
        let clients: Vec<NodeId> = (0..trial.clients.len())
            .map(|place| {
                let (rack, spec) = (trial.rack_of_client(place), trial.clients[place]);
                let way = if spec.is_direct { Err((trial.select, 1, servers.clone())) } else { Ok(at(0, rack)) };
                let host = site.host(rack);
                nodes::add_client(&mut site.world, host, client_config(&spec), way, work(&spec, &groups))
            })
            .collect();
        let planner = Planner::default();
        let controllers: Vec<NodeId> = (0..trial.controllers)
            .filter_map(|place| {
                let (config, known) = (controller_config(trial, place), known.clone()?);
                let (planner, has_streams) = (planner.clone(), trial.has_streams);
                Some(nodes::add_controller(&mut site.world, config, known, planner, has_streams))
            })
            .collect();
        let places = Places::default()
            .with(Party::Operator, &operators)
            .with(Party::Selector, &selectors)
            .with(Party::Server, &server_nodes)
            .with(Party::Client, &clients)
            .with(Party::Controller, &controllers);
        let recent = add_attacker(trial, &mut site.world, CRAFT);
        let seen = add_spy(trial, &mut site.world);
        let addresses = server_nodes.into_iter().zip(servers).collect();
        let control = known.map(|network| Control::new(trial, &places, network));
        let mut findings = Findings::new(trial, places.clone(), Rc::clone(&groups), addresses, traced, recent);
        (findings.control, findings.seen) = (control, seen);
        let script = Script::new(count, trial.traffic_groups());
        Self { run: TrialRun::new(trial, site.world, places, findings), groups, script, planner }
    }

    fn trial_run(&self) -> &TrialRun<Trial, Findings> {
        &self.run
    }

    fn trial_run_mut(&mut self) -> &mut TrialRun<Trial, Findings> {
        &mut self.run
    }

    fn into_trial_run(self) -> TrialRun<Trial, Findings> {
        self.run
    }

    fn start_fault(&mut self, what: &FaultKind) -> bool {
        let is_script = self.run.trial.controllers == 0;
        match what {
            // Real controllers plan for the traffic.
            FaultKind::Plan(_) | FaultKind::Degraded(_) if !is_script => self.set_demand(),
            FaultKind::NoController if !is_script => {
                let controllers: Vec<NodeId> = self.run.places.of(Party::Controller).collect();
                controllers.into_iter().for_each(|node| self.run.crash(node));
            }
            FaultKind::WrongPlans => self.set_demand(),
            FaultKind::Plan(number) => self.script.plan = *number,
            FaultKind::Degraded(group) => drop(self.script.degraded.insert(*group)),
            FaultKind::NoController => self.script.is_dead = true,
            FaultKind::Slow { server, by } => self.set(*server, Condition::Slow(*by)),
            FaultKind::Absurd(server) => self.set(*server, Condition::Absurd),
            FaultKind::Silent(server) => self.set(*server, Condition::Silent),
            FaultKind::Lies(operator) => self.set_lies(*operator, true),
            FaultKind::Answered(_) | FaultKind::Common(_) => {}
        }
        true
    }

    fn end_fault(&mut self, what: &FaultKind) {
        let is_script = self.run.trial.controllers == 0;
        match what {
            FaultKind::Plan(_) | FaultKind::Degraded(_) if !is_script => self.set_demand(),
            FaultKind::WrongPlans => self.set_demand(),
            FaultKind::NoController if !is_script => {
                let controllers: Vec<NodeId> = self.run.places.of(Party::Controller).collect();
                controllers.into_iter().for_each(|node| self.run.restart(node));
            }
            FaultKind::Degraded(group) => drop(self.script.degraded.remove(group)),
            FaultKind::NoController => self.script.is_dead = false,
            FaultKind::Slow { server, .. } | FaultKind::Absurd(server) | FaultKind::Silent(server) => {
                self.set(*server, Condition::Well);
            }
            FaultKind::Lies(operator) => self.set_lies(*operator, false),
            FaultKind::Plan(_) | FaultKind::Answered(_) | FaultKind::Common(_) => {}
        }
    }

    /// Without controllers, lets the script keep the rules up to date.
    fn run_until(&mut self, at: Nanos) -> Checked {
        loop {
            if self.run.trial.controllers == 0 {
                self.operate();
            }
            let next = at.min(self.run.world.now() + LOOKS);
            // Time does not advance without events.
            let nothing = Action::command(self.run.node(Party::Operator(0)), ());
            self.run.world.at(next, nothing);
            self.run.run_until(next)?;
            if next >= at {
                return Ok(());
            }
        }
    }

    fn await_recovery(&mut self) -> Checked {
        self.all_heals()
    }
}

impl CacheSubject {
    /// Sets the clients' demand and the planner's mood by current faults.
    fn set_demand(&mut self) {
        let (mut mood, trial) = (Mood::default(), Rc::clone(&self.run.trial));
        let mut pauses = vec![1.0; trial.clients.len()];
        for (_, what) in self.run.lasting() {
            match what {
                FaultKind::Plan(number) => {
                    mood.is_free = true;
                    let turn = |client: usize| number.rotate_right(2 * client as u32 % 32) as usize % FACTORS.len();
                    pauses.iter_mut().enumerate().for_each(|(client, pause)| *pause *= FACTORS[turn(client)]);
                }
                FaultKind::Degraded(group) => {
                    let of_it =
                        pauses.iter_mut().enumerate().filter(|(client, _)| trial.group_of_client(*client) == *group);
                    of_it.for_each(|(_, pause)| *pause = 0.0);
                }
                FaultKind::WrongPlans => mood.is_wrong = true,
                _ => {}
            }
        }
        self.planner.set_mood(mood);
        for (client, pause) in pauses.into_iter().enumerate() {
            self.run.act(Action::command(self.run.node(Party::Client(client)), Pace { pause }));
        }
    }

    fn set_lies(&mut self, operator: usize, lies: bool) {
        self.run.act(Action::command(self.run.node(Party::Operator(operator)), Lies(lies)));
    }

    fn set(&mut self, server: usize, condition: Condition) {
        self.run.act(Action::command(self.run.node(Party::Server(server)), condition));
    }
}

fn bounds(trial: &Trial) -> CacheConfig {
    CacheConfig {
        places: (trial.operators() + trial.servers.len() + trial.clients.len()) as u32,
        racks: trial.racks as u32,
        groups: trial.traffic_groups() as u32,
        rsnodes: IDS.into(),
        cookie_ns: COOKIE,
        ..CacheConfig::default()
    }
}

fn beside(trial: &Trial, operator: SocketAddr, servers: &[SocketAddr], slot: Slot) -> Beside {
    Beside {
        config: RsNodeConfig { under_way: trial.under_way, expire: EXPIRE, waiting: 64, ..RsNodeConfig::new(operator) },
        servers: servers.to_vec(),
        select: trial.select,
        selectors: trial.operators() as u32,
        cost: trial.cost_us * 1_000,
        slot,
    }
}

fn server_config(
    spec: &ServerSpec,
    address: SocketAddr,
    operator: SocketAddr,
    senders: &BTreeSet<IpAddr>,
) -> ServerConfig {
    ServerConfig {
        senders: Some(senders.clone()),
        slots: spec.slots,
        queue_max: spec.queue,
        wait_max: WAIT,
        serve_max: SERVE,
        service_time: if spec.says_mean { ServiceTime::Mean } else { ServiceTime::Present },
        cookie: COOKIE,
        ..ServerConfig::new(address, operator, 0)
    }
}

/// Repeats soon, so that an answerable read is answered in time.
fn client_config(spec: &ClientSpec) -> ClientConfig {
    ClientConfig {
        under_way_max: spec.under_way,
        queued_max: 256,
        sends_max: 1_024,
        timeout: TIMEOUT,
        rto_max: 100 * MS,
        pause_max: 20 * MS,
        attempts_max: 256,
        expire: EXPIRE,
        ..ClientConfig::new(0)
    }
}

fn work(spec: &ClientSpec, groups: &Rc<[Vec<SocketAddr>]>) -> Work {
    let ClientSpec { workers, reads, think_us, .. } = *spec;
    Work { workers, reads, think: think_us * 1_000, groups: Rc::clone(groups) }
}
