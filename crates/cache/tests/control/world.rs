//! A small network in one thread: operators with keepers, controllers, and messages.

use midflight_cache::control::keeper::Load;
use midflight_cache::control::network::{HostAt, OperatorAt, ReplicaGroup, ServerAt};
use midflight_cache::control::{
    ControlMessage, Controller, ControllerConfig, Event, Grouping, Network, NetworkParts, Parts, Role, RuleKeeper, Term,
};
use midflight_dataplane::cache::{Outcome, Rule};
use midflight_placement::input;
use midflight_placement::{Accelerator, Options, Plan, Use};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const STEP: u64 = 10 * MS;

pub(crate) const TOPOLOGY: &str = r#"
core = ["core-0", "core-1"]
pods = [{ id = "pod-0", switches = ["agg-0"] }, { id = "pod-1", switches = ["agg-1"] }]
racks = [
  { id = "rack-0", within = "pod-0", tor = "tor-0", hosts = ["host-0"] },
  { id = "rack-1", within = "pod-0", tor = "tor-1", hosts = ["host-1"] },
  { id = "rack-2", within = "pod-1", tor = "tor-2", hosts = ["host-2"] },
  { id = "rack-3", within = "pod-1", tor = "tor-3", hosts = ["host-3"] },
]
accelerator = { cores = 1, service_time_us = 1000.0, utilisation = 0.5 }
"#;

pub(crate) fn parts() -> NetworkParts {
    parts_of(TOPOLOGY)
}

fn parts_of(topology: &str) -> NetworkParts {
    let topology = input::topology(topology, &Accelerator::paper("each".into())).unwrap();
    let names: Vec<String> = topology.operators().iter().map(|operator| operator.id.clone()).collect();
    let at = |subnet: u8, number: usize, port: u16| SocketAddr::from(([10, 0, subnet, number as u8], port));
    let operators = names.into_iter().enumerate().map(|(number, switch)| OperatorAt {
        switch,
        address: at(0, number, 7700),
        selector: Some(at(1, number, 7701)),
    });
    NetworkParts {
        operators: operators.collect(),
        hosts: (0..4).map(|n| HostAt { host: format!("host-{n}"), ip: at(2, n, 0).ip() }).collect(),
        servers: (0..3).map(|n| ServerAt { at: format!("rack-{n}"), address: at(3, n, 7800) }).collect(),
        replica_groups: vec![ReplicaGroup { id: 1, servers: (0..3).map(|n| at(3, n, 7800)).collect() }],
        grouping: Grouping::Racks,
        topology,
    }
}

pub(crate) fn times() -> ControllerConfig {
    ControllerConfig {
        barred_for: 1_000 * MS,
        longest_response: 300 * MS,
        window: 500 * MS,
        plan_every: 2_000 * MS,
        plan_timeout: 1_000 * MS,
        extra_hops: 1.0,
        batch: 3,
        hysteresis: 0,
        ..ControllerConfig::default()
    }
}

#[derive(Default)]
pub(crate) struct Switch {
    pub(crate) own: Option<(Option<u16>, Option<SocketAddr>)>,
    operators: BTreeSet<SocketAddr>,
    servers: BTreeSet<SocketAddr>,
    hosts: BTreeMap<IpAddr, (u16, Option<u16>)>,
    /// `None`: here.
    pub(crate) rsnodes: BTreeMap<u16, Option<SocketAddr>>,
    pub(crate) labels: BTreeMap<u16, u16>,
    pub(crate) replica_groups: BTreeSet<u32>,
    pub(crate) counts: BTreeMap<u16, [u64; 4]>,
    pub(crate) load: Load,
    served: Vec<u16>,
    labelled: Vec<u16>,
    /// Its core has no room for hosts.
    pub(crate) is_full: bool,
    /// Its core has no room for RSNode ids.
    pub(crate) refuses_rsnodes: bool,
    /// Number of orders about hosts.
    pub(crate) told_of_hosts: usize,
}

impl Parts for Switch {
    fn set(&mut self, rule: Rule) -> Outcome {
        match rule {
            Rule::Own { rack, selector } => self.own = Some((rack, selector)),
            Rule::Rack { .. } => {}
            Rule::Host { ip, rack, group } => {
                self.told_of_hosts += 1;
                if self.is_full {
                    return Outcome::NoRoom;
                }
                self.hosts.insert(ip, (rack, group));
            }
            Rule::RsNode { operator: Some(_), .. } | Rule::Serve(_) if self.refuses_rsnodes => return Outcome::NoRoom,
            Rule::Server { address, .. } => drop(self.servers.insert(address)),
            Rule::Operator(address) => drop(self.operators.insert(address)),
            Rule::Gone(address) => {
                self.servers.remove(&address);
                self.operators.remove(&address);
                self.hosts.remove(&address.ip());
            }
            Rule::RsNode { id, operator: Some(at) } => drop(self.rsnodes.insert(id, Some(at))),
            Rule::RsNode { id, operator: None } => drop(self.rsnodes.remove(&id)),
            Rule::Serve(id) => {
                if self.rsnodes.insert(id, None) != Some(None) {
                    self.served.push(id);
                }
            }
            Rule::Group { group, rsnode: Some(id) } => {
                if self.labels.insert(group, id) != Some(id) {
                    self.labelled.push(id);
                }
            }
            Rule::Group { group, rsnode: None } => drop(self.labels.remove(&group)),
        }
        Outcome::Done
    }

    fn request_counts(&self, group: u16) -> [u64; 4] {
        self.counts.get(&group).copied().unwrap_or_default()
    }

    fn load(&self) -> Load {
        self.load
    }

    fn set_replica_group(&mut self, group: u32, _: &[SocketAddr]) -> Outcome {
        self.replica_groups.insert(group);
        Outcome::Done
    }

    fn set_selectors(&mut self, _: u32) {}
}

pub(crate) struct Node {
    pub(crate) keeper: RuleKeeper,
    pub(crate) switch: Switch,
    pub(crate) is_up: bool,
    /// It answers questions, but drops orders.
    pub(crate) is_stuck: bool,
    pub(crate) was_down: bool,
    has_had_all: bool,
    selector: Option<u64>,
    highest: Term,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// An operator's selector chose.
    Selected(usize),
    /// It went to its backup.
    Backup,
    /// It was lost at this operator, which is down.
    Down(usize),
    /// It was lost at this operator, which lacks rules.
    NoRules(usize),
    NoSelector(usize),
}

enum Message {
    To(usize, ControlMessage),
    From(usize, ControlMessage),
}

pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) network: Arc<Network>,
    pub(crate) config: ControllerConfig,
    pub(crate) nodes: Vec<Node>,
    pub(crate) controllers: Vec<Option<Controller>>,
    /// This controller and this operator cannot reach each other.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    pub(crate) events: Vec<(usize, Event)>,
    pub(crate) requests_per_step: u64,
    pub(crate) is_planning: bool,
    flying: Vec<(u64, usize, Message)>,
    plans: Vec<(u64, usize, u64, Plan)>,
    random: u64,
    labelled: BTreeMap<u16, u64>,
    has_failed: bool,
}

impl World {
    pub(crate) fn new(seed: u64, controllers: u32, config: ControllerConfig) -> Self {
        Self::with_topology(seed, controllers, config, TOPOLOGY)
    }

    pub(crate) fn with_topology(seed: u64, controllers: u32, config: ControllerConfig, topology: &str) -> Self {
        let network = Arc::new(Network::new(parts_of(topology)).unwrap());
        let mut world = Self {
            now: 1_000 * MS,
            config,
            nodes: Vec::new(),
            controllers: Vec::new(),
            cut: BTreeSet::new(),
            events: Vec::new(),
            requests_per_step: 1,
            is_planning: true,
            flying: Vec::new(),
            plans: Vec::new(),
            random: seed,
            labelled: BTreeMap::new(),
            has_failed: false,
            network,
        };
        for _ in 0..world.network.operators() {
            let node = world.node();
            world.nodes.push(node);
        }
        for place in 0..controllers {
            world.controllers.push(None);
            world.start_controller(place as usize);
        }
        world
    }

    /// SplitMix64.
    pub(crate) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).max(1)
    }

    fn node(&mut self) -> Node {
        let (incarnation, selector) = (self.draw(), Some(self.draw()));
        let keeper = RuleKeeper::new(incarnation, selector);
        Node {
            keeper,
            switch: Switch::default(),
            is_up: true,
            is_stuck: false,
            was_down: false,
            has_had_all: false,
            selector,
            highest: Term::NONE,
        }
    }

    pub(crate) fn start_controller(&mut self, place: usize) {
        let config = ControllerConfig { place: place as u32, ..self.config };
        let me = self.draw();
        self.controllers[place] = Some(Controller::new(self.now, config, self.network.clone(), me));
    }

    pub(crate) fn kill_controller(&mut self, place: usize) {
        self.controllers[place] = None;
        self.plans.retain(|plan| plan.1 != place);
        self.flying.retain(|(_, controller, _)| *controller != place);
    }

    pub(crate) fn kill(&mut self, operator: usize) {
        self.nodes[operator].is_up = false;
        self.nodes[operator].was_down = true;
    }

    pub(crate) fn start(&mut self, operator: usize) {
        self.nodes[operator] = Node { was_down: true, ..self.node() };
    }

    pub(crate) fn set_selector(&mut self, operator: usize, is_there: bool) {
        let selector = is_there.then(|| self.draw());
        let node = &mut self.nodes[operator];
        node.selector = selector;
        node.was_down = true;
        node.switch.replica_groups.clear();
        node.keeper.set_selector(selector, &mut node.switch);
    }

    pub(crate) fn active(&self) -> Vec<usize> {
        let is_active = |controller: &Controller| matches!(controller.role(), Role::Active(_));
        let all = self.controllers.iter().enumerate();
        all.filter(|(_, controller)| controller.as_ref().is_some_and(is_active)).map(|(place, _)| place).collect()
    }

    pub(crate) fn controller(&mut self, place: usize) -> &mut Controller {
        self.controllers[place].as_mut().unwrap()
    }

    fn send(&mut self, controller: usize, message: Message) {
        self.flying.push((self.now + MS, controller, message));
    }

    fn deliver(&mut self) {
        loop {
            let due = self.flying.iter().enumerate().filter(|(_, (at, ..))| *at <= self.now);
            let Some(first) = due.min_by_key(|(place, (at, ..))| (*at, *place)).map(|(place, _)| place) else { return };
            let (_, controller, message) = self.flying.remove(first);
            let operator = match &message {
                Message::To(operator, _) | Message::From(operator, _) => *operator,
            };
            if self.cut.contains(&(controller, operator)) {
                continue;
            }
            match message {
                Message::To(operator, message) => self.at_operator(controller, operator, &message),
                Message::From(operator, message) => {
                    let now = self.now;
                    if let Some(controller) = &mut self.controllers[controller] {
                        controller.handle(now, operator, &message);
                    }
                    self.collect(controller);
                }
            }
        }
    }

    fn at_operator(&mut self, controller: usize, operator: usize, message: &ControlMessage) {
        let now = self.now;
        let node = &mut self.nodes[operator];
        if !node.is_up || (node.is_stuck && matches!(message, ControlMessage::Set(_))) {
            return;
        }
        let sets = node.keeper.counters().sets;
        let answer = node.keeper.handle(now, message, &mut node.switch).expect("a controller's message has an answer");
        if let ControlMessage::Set(set) = message {
            let was_obeyed = node.keeper.counters().sets > sets;
            assert!(!was_obeyed || set.term >= node.highest, "an order of an older term was obeyed");
        }
        node.highest = node.highest.max(node.keeper.term());
        assert_eq!(node.highest, node.keeper.term(), "an operator went back to an older term");
        for id in std::mem::take(&mut node.switch.served) {
            self.check_id(operator, id);
        }
        for id in std::mem::take(&mut self.nodes[operator].switch.labelled) {
            self.check_label(operator, id);
        }
        self.send(controller, Message::From(operator, answer));
    }

    /// N7: an id that begins to serve has been no label for as long as an answer takes.
    fn check_id(&self, operator: usize, id: u16) {
        let at = self.network.address(operator);
        let has_not_moved = |node: &Node| node.switch.rsnodes.get(&id) == Some(&Some(at));
        let last = self.labelled.get(&id);
        let was_before = self.nodes[operator].was_down && self.nodes.iter().any(has_not_moved);
        assert!(
            was_before || last.is_none_or(|&last| self.now - last >= self.config.longest_response),
            "id {id} was used again {} ms after its last request",
            (self.now - last.unwrap_or(&0)) / MS
        );
        for (other, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_up) {
            let known = node.switch.rsnodes.get(&id);
            let is_old = other != operator && known.is_some_and(|known| *known != Some(at));
            assert!(!is_old, "operator {other} knows id {id} as {known:?}, and it becomes that of {operator}");
        }
    }

    /// N7: an id becomes a label only where all operators know it. A failed operator may lack it for a while.
    fn check_label(&self, operator: usize, id: u16) {
        if self.has_failed || self.nodes.iter().any(|node| node.was_down || node.is_stuck) {
            return;
        }
        for (other, node) in self.nodes.iter().enumerate() {
            assert!(
                node.switch.rsnodes.contains_key(&id),
                "{operator} labels with id {id}, which {other} does not know"
            );
        }
    }

    fn collect(&mut self, place: usize) {
        let Some(mut controller) = self.controllers[place].take() else { return };
        while let Some(event) = controller.poll_event() {
            if let (Event::PlanWanted(wanted), true) = (&event, self.is_planning) {
                let options = Options { methods: Use::FirstFit, ..Options::default() };
                let plan = wanted.solve(&options);
                self.plans.push((self.now + STEP, place, wanted.number, plan));
            }
            self.has_failed |= matches!(event, Event::OperatorFailed { .. });
            self.events.push((place, event));
        }
        while let Some((operator, message)) = controller.poll_transmit() {
            self.send(place, Message::To(operator, message));
        }
        self.controllers[place] = Some(controller);
    }

    pub(crate) fn path(&self, group: u16) -> Path {
        let first = self.network.labeller(usize::from(group));
        let node = &self.nodes[first];
        if !node.is_up {
            return Path::Down(first);
        }
        if !node.switch.hosts.values().any(|host| host.1 == Some(group)) {
            return Path::NoRules(first);
        }
        let backup =
            |at: usize| if self.nodes[at].switch.servers.len() == 3 { Path::Backup } else { Path::NoRules(at) };
        let select = |at: usize| match self.nodes[at].switch.own {
            Some((_, Some(_))) if self.nodes[at].selector.is_none() => Path::NoSelector(at),
            Some((_, Some(_))) if !self.nodes[at].switch.replica_groups.is_empty() => Path::Selected(at),
            // Without replica groups the selector sends a request to its backup.
            _ => backup(at),
        };
        let Some(id) = node.switch.labels.get(&group) else { return backup(first) };
        match node.switch.rsnodes.get(id) {
            None => backup(first),
            Some(None) => select(first),
            Some(Some(address)) => {
                let second = self.network.operator_at(*address).unwrap();
                let there = &self.nodes[second];
                if !there.is_up {
                    return Path::Down(second);
                }
                if !there.switch.operators.contains(&self.network.address(first)) {
                    return Path::NoRules(second);
                }
                match there.switch.rsnodes.get(id) {
                    Some(None) => select(second),
                    _ => backup(second),
                }
            }
        }
    }

    pub(crate) fn paths(&self) -> Vec<Path> {
        (0..self.network.groups().len()).map(|group| self.path(group as u16)).collect()
    }

    fn requests(&mut self) {
        for node in &mut self.nodes {
            node.has_had_all |= node.switch.hosts.len() == self.network.hosts().len();
        }
        for group in 0..self.network.groups().len() {
            let path = self.path(group as u16);
            // A request is lost only where an operator is down, or was and lacks its rules.
            match path {
                Path::Selected(_) | Path::Backup => {}
                Path::Down(at) => assert!(!self.nodes[at].is_up),
                Path::NoRules(at) => assert!(!self.nodes[at].has_had_all, "group {group} lost its way at {at}"),
                Path::NoSelector(at) => panic!("group {group}: {at} has no selector"),
            }
            let first = self.network.labeller(group);
            let node = &mut self.nodes[first];
            let label = node.switch.labels.get(&(group as u16)).copied();
            if let Some(id) = label.filter(|id| node.is_up && node.switch.rsnodes.contains_key(id)) {
                self.labelled.insert(id, self.now);
            }
            if matches!(path, Path::Selected(_) | Path::Backup) {
                self.nodes[first].switch.counts.entry(group as u16).or_default()[0] += self.requests_per_step;
            }
            if let Path::Selected(at) = path {
                self.nodes[at].switch.load.selected += self.requests_per_step;
            }
        }
    }

    pub(crate) fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        self.deliver();
        for place in 0..self.controllers.len() {
            if let Some(controller) = &mut self.controllers[place]
                && controller.poll_timeout() <= now
            {
                controller.handle_timeout(now);
            }
            self.collect(place);
        }
        let (due, later) = std::mem::take(&mut self.plans).into_iter().partition(|plan| plan.0 <= now);
        self.plans = later;
        for (_, place, number, plan) in Vec::from_iter::<Vec<_>>(due) {
            if let Some(controller) = &mut self.controllers[place] {
                let _ = controller.planned(now, number, &plan);
            }
            self.collect(place);
        }
        self.requests();
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let end = self.now + ms * MS;
        while self.now < end {
            self.step();
        }
    }

    pub(crate) fn run_until_selected(&mut self, ms: u64) -> bool {
        let end = self.now + ms * MS;
        while self.now < end {
            self.step();
            if self.paths().iter().all(|path| matches!(path, Path::Selected(_))) {
                return true;
            }
        }
        false
    }
}
