//! The same scenario with the real parties in the simulator's network: the operator with its C core, its selector, and production servers
//! and clients.

use crate::compact::{At, BEGIN, Scenario, SwitchOf};
use midflight_cache::client::{Client, ClientConfig, ReadKey};
use midflight_cache::rsnode::{RsNode, RsNodeConfig};
use midflight_cache::select::{Algorithm, Candidates, Choice, Counts, Selector, Server, Status};
use midflight_cache::server::ServerConfig;
use midflight_dataplane::cache::{CacheConfig, Rule};
use midflight_endpoint::{Nanos, SECOND};
use midflight_sim::cache::{
    Ask, CacheEvent, ClientActor, Controlled, ReplicaGroups, Rules, SelectorActor, ServerActor, Service, Slot, Work,
    add_operator,
};
use midflight_sim::{
    Action, Actor, Birth, Faults, Happening, Hardware, HostConfig, LinkConfig, NodeId, Place, Sink, SwitchConfig,
    Topology, World,
};
use rand::RngExt;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

const COOKIE_EVERY: Nanos = 200_000;
/// Tokens of the first reads start here.
const FIRST: u64 = 1 << 32;

/// Per packet.
pub(crate) const PASS: Nanos = 400;
/// For about 150 bytes with all headers.
pub(crate) const PACKET: Nanos = 120;
const BITS_PER_SECOND: u64 = 10_000_000_000;

/// Differences from the compact world, intended or planted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Real {
    pub(crate) at: At,
    pub(crate) select: Algorithm,
    pub(crate) hardware: Kind,
    /// Break ties as in the compact world.
    pub(crate) same_luck: bool,
    /// Number of selectors each assumes; `None`: the actual number.
    pub(crate) selectors: Option<u32>,
    /// Service time, in per cent of the correct one.
    pub(crate) service_percent: u64,
    /// Factor on the accelerator's time per packet.
    pub(crate) accelerator: u64,
    /// Whether selectors see servers' statuses.
    pub(crate) sees_statuses: bool,
    /// Maximum transmissions of a read.
    pub(crate) sends_max: u32,
    /// How long rate control holds a request.
    pub(crate) hold: Option<Nanos>,
    /// Seed of the nodes' own random numbers.
    pub(crate) seed: u64,
}

/// Links and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Packets have no length and switches take no time, as in the compact world.
    Ideal,
    /// 10 Gbit/s and 400 ns per switch, in addition to a link's delay.
    Usual,
    /// The same, included in the delay of links between switches.
    Within,
}

impl Real {
    /// Nothing planted.
    pub(crate) fn new(at: At, select: Algorithm, hardware: Kind, seed: u64) -> Self {
        Self {
            at,
            select,
            hardware,
            same_luck: hardware == Kind::Ideal,
            selectors: None,
            service_percent: 100,
            accelerator: 1,
            sees_statuses: true,
            sends_max: 1,
            hold: None,
            seed,
        }
    }

    fn hardware(&self, scenario: &Scenario) -> Hardware {
        let network = scenario.network();
        let (pass, bits_per_second) = if self.hardware == Kind::Ideal { (0, 0) } else { (PASS, BITS_PER_SECOND) };
        let (of_link, of_way) = if self.hardware == Kind::Within { (pass + PACKET, pass) } else { (0, 0) };
        let link = |ns: u32| LinkConfig { latency: Nanos::from(ns) - of_link, bits_per_second };
        Hardware {
            topology: Topology::fat_tree(network.arity),
            link: link(network.host_ns),
            trunk: link(network.trunk_ns),
            // A selector sends to servers directly, not through its operator: its whole delay comes first.
            switch: SwitchConfig {
                pass,
                packets_per_second: 0,
                queue: 4_096,
                recirculation: Nanos::from(network.accelerator_way_ns) - of_way,
            },
        }
    }

    fn selector(&self, servers: u16, sites: usize, luck: Luck) -> Box<dyn Selector + Send> {
        let inner = self.select.selector(servers, self.selectors.unwrap_or(sites as u32));
        let luck = self.same_luck.then_some(luck);
        Box::new(Changed { inner, luck, sees_statuses: self.sees_statuses })
    }
}

/// The compact world's tie-breaks.
#[derive(Clone, Default)]
struct Luck {
    bits: VecDeque<u64>,
    /// The first of equals depends on their order. The real parties sort a group's servers by number.
    groups: Vec<Candidates>,
}

impl Luck {
    fn as_in_the_ring(&self, candidates: &Candidates) -> Candidates {
        let is_it = |group: &&Candidates| {
            group.servers().len() == candidates.servers().len()
                && group.servers().iter().all(|server| candidates.servers().contains(server))
        };
        *self.groups.iter().find(is_it).expect("a group of the scenario")
    }
}

/// The compact world's tie-breaks, or parts of the statuses removed.
struct Changed {
    inner: Box<dyn Selector + Send>,
    luck: Option<Luck>,
    sees_statuses: bool,
}

impl Selector for Changed {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let Some(luck) = &mut self.luck else { return self.inner.choose(now, candidates, random) };
        let random = luck.bits.pop_front().expect("as many choices as in the compact world");
        self.inner.choose(now, &luck.as_in_the_ring(candidates), random)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        self.inner.answered(now, server, took, status.filter(|_| self.sees_statuses));
    }

    fn expired(&mut self, now: Nanos, server: Server) {
        self.inner.expired(now, server);
    }

    fn outstanding(&self, server: Server) -> u32 {
        self.inner.outstanding(server)
    }

    fn counts(&self) -> Counts {
        self.inner.counts()
    }
}

/// By token.
#[derive(Default)]
struct Ends {
    tokens: HashMap<(NodeId, ReadKey), u64>,
    ended: HashMap<u64, Nanos>,
    failed: u64,
    sent: u64,
}

impl Sink for Ends {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        match happening.of::<(NodeId, CacheEvent)>() {
            Some((node, CacheEvent::Begun { key, token, .. })) => drop(self.tokens.insert((*node, *key), *token)),
            Some((node, CacheEvent::Ended { key, outcome })) => {
                self.failed += u64::from(outcome.is_err());
                self.ended.extend(self.tokens.remove(&(*node, *key)).map(|token| (token, at)));
            }
            Some((_, CacheEvent::Asked { .. })) => self.sent += 1,
            _ => {}
        }
    }
}

pub(crate) struct Seen {
    /// By read.
    pub(crate) latencies: Vec<Nanos>,
    pub(crate) sent: u64,
}

struct Nodes {
    operators: Vec<NodeId>,
    selectors: Vec<NodeId>,
    servers: Vec<NodeId>,
    clients: Vec<NodeId>,
}

pub(crate) fn run(scenario: &Scenario, real: &Real) -> Seen {
    let mut world = World::with_hardware(real.seed, Faults::INSTANT, &real.hardware(scenario));
    world.set_sink(Box::new(Ends::default()));
    let nodes = Nodes::add(&mut world, scenario, real);
    nodes.set_rules(&mut world, scenario, real);
    // Each client gets its cookies by reads of groups that no selector knows, so selectors learn nothing.
    assert!(scenario.reads().all(|read| read.at >= BEGIN));
    let servers = nodes.servers.len();
    let own = if real.at == At::Clients { servers } else { 1 };
    let groups = scenario.groups().len();
    let mut first = 0;
    for (client, server) in nodes.clients.iter().flat_map(|client| (0..own).map(move |server| (client, server))) {
        let ask = Ask::This { group: (groups + server) as u32, token: FIRST + first };
        world.at(1 + first * COOKIE_EVERY, Action::command(*client, ask));
        first += 1;
    }
    assert!(first * COOKIE_EVERY < BEGIN / 2, "cookies come before the reads");
    let mut count = 0;
    for (token, read) in (0..).zip(scenario.reads()) {
        let ask = Ask::This { group: read.group, token };
        world.at(read.at, Action::command(nodes.clients[read.client as usize], ask));
        count += 1;
    }
    let all = count + first as usize;
    world.run(Nanos::MAX, |world| world.sink::<Ends>().is_some_and(|ends| ends.ended.len() == all));
    let ends: &Ends = world.sink().expect("set above");
    assert_eq!((ends.ended.len(), ends.failed), (all, 0), "every read ends, and none fails");
    for &operator in &nodes.operators {
        let operator = midflight_sim::cache::operator(&world, operator).expect("it runs");
        assert_eq!(operator.refused(), 0, "all rules are taken");
    }
    let latency = |(token, at): (u64, Nanos)| ends.ended[&token] - at;
    let latencies = (0..).zip(scenario.reads().map(|read| read.at)).map(latency).collect();
    // Each of the first reads was sent twice: without and with its cookie.
    Seen { latencies, sent: ends.sent - 2 * first }
}

impl Nodes {
    fn add(world: &mut World, scenario: &Scenario, real: &Real) -> Self {
        let switches = switches(scenario, real);
        let slots: Vec<Slot> = switches.iter().map(|_| Slot::default()).collect();
        let config = CacheConfig { cookie_ns: 1_000 * SECOND, ..CacheConfig::default() };
        let place = |switch: &SwitchOf| Place::Switch(number(scenario, *switch));
        let by_script = Controlled { by: Vec::new(), has_streams: false };
        let operators: Vec<NodeId> = switches
            .iter()
            .zip(&slots)
            .map(|(switch, slot)| add_operator(world, place(switch), config, by_script.clone(), slot.clone()))
            .collect();
        let operators_at: Vec<SocketAddr> = operators.iter().map(|&node| world.address(node)).collect();
        let first_server = NodeId::index(*operators.last().expect("racks")) + 1;
        let servers: Vec<NodeId> = (0..scenario.racks_of_servers().len())
            .map(|server| add_server(world, scenario, real, server, &operators_at))
            .collect();
        assert_eq!(servers[0].index(), first_server);
        let servers_at: Vec<SocketAddr> = servers.iter().map(|&node| world.address(node)).collect();
        let of_ring = |bits| Luck { bits, groups: scenario.groups().to_vec() };
        let mut luck: Vec<Luck> = scenario.luck(real.at).into_iter().map(of_ring).collect();
        let selectors = scenario
            .switches(real.at)
            .iter()
            .enumerate()
            .map(|(site, switch)| {
                let operator = switches.iter().position(|other| other == switch).expect("an operator each");
                let luck = std::mem::take(&mut luck[site]);
                let beside = (operators_at[operator], slots[operator].clone());
                add_selector(world, place(switch), scenario, *real, &servers_at, beside, luck)
            })
            .collect();
        let groups: Rc<[Vec<SocketAddr>]> =
            groups(scenario, &servers_at).into_iter().chain(servers_at.iter().map(|&at| vec![at])).collect();
        let clients = (0..scenario.racks_of_clients().len())
            .map(|client| {
                let luck = if real.at == At::Clients { std::mem::take(&mut luck[client]) } else { Luck::default() };
                add_client(world, scenario, *real, client, &operators_at, &servers_at, (&groups, luck))
            })
            .collect();
        Self { operators, selectors, servers, clients }
    }

    fn set_rules(&self, world: &mut World, scenario: &Scenario, real: &Real) {
        let switches = switches(scenario, real);
        let sites = scenario.switches(real.at);
        let at = |node: NodeId| world.address(node);
        let operator_of = |site: usize| switches.iter().position(|switch| *switch == sites[site]).expect("it is one");
        let mut orders = Vec::new();
        for (place, &node) in self.operators.iter().enumerate() {
            let mut rules: Vec<Rule> = Vec::new();
            rules.extend(self.operators.iter().filter(|&&other| other != node).map(|&other| Rule::Operator(at(other))));
            for rack in 0..scenario.racks() {
                let marker = scenario.pod(rack) << 16 | rack;
                let operator = Some(at(self.operators[rack as usize]));
                rules.push(Rule::Rack { rack: rack as u16, operator, marker });
            }
            for (&server, &rack) in self.servers.iter().zip(scenario.racks_of_servers()) {
                rules.push(Rule::Server { address: at(server), rack: rack as u16 });
            }
            let mut selector = None;
            for site in 0..sites.len() {
                let (id, operator) = (site as u16 + 1, operator_of(site));
                if operator == place {
                    selector = Some(at(self.selectors[site]));
                    rules.push(Rule::Serve(id));
                } else {
                    rules.push(Rule::RsNode { id, operator: Some(at(self.operators[operator])) });
                }
            }
            let rack = (place < scenario.racks() as usize).then_some(place as u16);
            rules.push(Rule::Own { rack, selector });
            for (client, (&host, &rack)) in self.clients.iter().zip(scenario.racks_of_clients()).enumerate() {
                let rsnode = (!sites.is_empty()).then(|| scenario.site_of_client(real.at, client) as u16 + 1);
                rules.push(Rule::Group { group: rack as u16, rsnode });
                rules.push(Rule::Host { ip: at(host).ip(), rack: rack as u16, group: Some(rack as u16) });
            }
            orders.push(Action::command(node, Rules(rules)));
        }
        let servers: Vec<SocketAddr> = self.servers.iter().map(|&node| at(node)).collect();
        let groups: Vec<(u32, Vec<SocketAddr>)> = (0..).zip(groups(scenario, &servers)).collect();
        orders.extend(self.selectors.iter().map(|&node| Action::command(node, ReplicaGroups(groups.clone()))));
        for order in orders {
            world.at(0, order);
        }
    }
}

/// Switches with an operator: all racks', then those of RSNodes outside racks.
fn switches(scenario: &Scenario, real: &Real) -> Vec<SwitchOf> {
    let racks = (0..scenario.racks()).map(SwitchOf::Rack);
    let others = scenario.switches(real.at).into_iter().filter(|switch| !matches!(switch, SwitchOf::Rack(_)));
    racks.chain(others).collect()
}

/// In the simulator's fat-tree.
fn number(scenario: &Scenario, switch: SwitchOf) -> u32 {
    match switch {
        SwitchOf::Rack(rack) => rack,
        SwitchOf::Pod(pod) => scenario.racks() + pod * scenario.network().arity / 2,
        SwitchOf::Core => 2 * scenario.racks(),
    }
}

fn groups(scenario: &Scenario, servers: &[SocketAddr]) -> Vec<Vec<SocketAddr>> {
    let of = |group: &Candidates| group.servers().iter().map(|server| servers[usize::from(server.0)]).collect();
    scenario.groups().iter().map(of).collect()
}

fn host(world: &mut World, rack: u32) -> Place {
    Place::Host(world.add_host(HostConfig { rack, ..HostConfig::default() }))
}

fn add_server(world: &mut World, scenario: &Scenario, real: &Real, server: usize, operators: &[SocketAddr]) -> NodeId {
    let rack = scenario.racks_of_servers()[server];
    let works: Rc<[f64]> = scenario.reads().map(|read| read.work).collect();
    let speeds = RefCell::new(scenario.speeds());
    let percent = real.service_percent;
    let takes = move |now: Nanos, token: u64| match works.get(token as usize) {
        Some(&work) => speeds.borrow_mut().takes(now, server as u16, work) * percent / 100,
        None => 1,
    };
    let service = Service::Computed(Rc::new(takes));
    let (operator, slots) = (operators[rack as usize], scenario.cell.slots);
    let place = host(world, rack);
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let config = ServerConfig {
                slots: slots.into(),
                queue_max: 65_534,
                wait_max: 1_000 * SECOND,
                cookie: 1_000 * SECOND,
                ..ServerConfig::new(birth.address, operator, birth.random.random())
            };
            let server = midflight_cache::server::Server::new(config).expect("within bounds");
            Box::new(ServerActor::new(server, service.clone())) as Box<dyn Actor>
        }),
    )
}

fn add_selector(
    world: &mut World,
    place: Place,
    scenario: &Scenario,
    real: Real,
    servers: &[SocketAddr],
    (operator, slot): (SocketAddr, Slot),
    luck: Luck,
) -> NodeId {
    let (sites, servers) = (scenario.sites(real.at), servers.to_vec());
    let cost = Nanos::from(scenario.network().accelerator_ns) * real.accelerator;
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let config = RsNodeConfig::new(operator);
            let config = RsNodeConfig {
                under_way: 65_536,
                waiting: real.hold.map_or(config.waiting, |_| 1 << 20),
                hold: real.hold.unwrap_or(config.hold),
                ..config
            };
            let selector = |count| real.selector(count, sites, luck.clone());
            let rsnode = RsNode::new(config, &servers, birth.random.random(), selector).expect("few servers");
            Box::new(SelectorActor::new(rsnode, birth.random.random(), cost, slot.clone())) as Box<dyn Actor>
        }),
    )
}

fn add_client(
    world: &mut World,
    scenario: &Scenario,
    real: Real,
    client: usize,
    operators: &[SocketAddr],
    servers: &[SocketAddr],
    (groups, luck): (&Rc<[Vec<SocketAddr>]>, Luck),
) -> NodeId {
    let rack = scenario.racks_of_clients()[client];
    let (operator, servers, groups) = (operators[rack as usize], servers.to_vec(), Rc::clone(groups));
    let (sites, known) = (scenario.sites(real.at), scenario.groups().len());
    let place = host(world, rack);
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let config = ClientConfig {
                under_way_max: 65_536,
                sends_max: real.sends_max,
                attempts_max: 65_536,
                ..ClientConfig::new(birth.random.random())
            };
            let client = if real.at == At::Clients {
                let mut client = Client::direct(config, &servers, |count| real.selector(count, sites, luck.clone()))
                    .expect("bounded");
                for (group, servers) in (0..).zip(groups.iter().take(known)) {
                    client.set_group(group, servers).expect("servers that it knows");
                }
                client
            } else {
                Client::new(config, operator).expect("within bounds")
            };
            let work = Work { workers: 0, reads: 0, think: 0, groups: Rc::clone(&groups) };
            Box::new(ClientActor::new(client, work, birth.random.clone())) as Box<dyn Actor>
        }),
    )
}
