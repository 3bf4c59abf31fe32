//! A run: a world from a trial, and its faults in their order.

use super::monitor::{Findings, Monitor, Places};
use super::mutants::MUTANTS;
use super::trial::{ClientSpec, Mode, Party, SetSpec, Trial, What, late};
use crate::check::{Checked, Disturbed, Mutant, Subject, Violation, act};
use crate::reads::{Ask, Late, Load, Order, nodes};
use crate::{Action, DiskCondition, NodeId, World};
use midflight_dataplane::reads::{NewSet, Policy, ReadsConfig, ReplyCheck};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_reads::client::ClientConfig;
use midflight_reads::replica::{self, Member, Replica, ReplicaConfig, Timing};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// The store's number.
const CLUSTER: u64 = 77;
const SET: u16 = 1;
/// A client gives an operation up after this.
const TIMEOUT: Nanos = 60 * SECOND;
/// How often the operator looks whether a replica that has lost its disk can be added again.
const OPERATOR: Nanos = 20 * MS;
/// Ids of replicas that have lost their disks begin here.
const SECOND_IDS: u64 = 100;

/// A scheduled step. The end of a fault stands behind steps that begin at the same time.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    End(usize),
}

/// The reads program under faults: a store and its checker.
pub struct ReadsSubject {
    pub(super) trial: Rc<Trial>,
    pub(super) world: World,
    pub(super) findings: Rc<RefCell<Findings>>,
    pub(super) places: Places,
    pub(super) load: Rc<Load>,
    /// Who has each replica's place.
    identities: Rc<RefCell<Vec<Identity>>>,
    disturbed: Disturbed,
    /// Present faults, in the order in which they began.
    lasting: Vec<usize>,
    befell: u64,
}

/// Who has a replica's place.
#[derive(Clone, Debug)]
struct Identity {
    member: Member,
    /// Who had the place before, and lost its disk.
    lost: Option<u64>,
    /// Lives of the place: each has an id of its own.
    lives: u64,
}

impl Subject for ReadsSubject {
    const NAME: &'static str = "reads";
    const MUTANTS: &'static [Mutant] = MUTANTS;
    type Trial = Trial;

    fn draw(seed: u64) -> Trial {
        Trial::draw(seed)
    }

    fn build(trial: &Trial, traced: bool) -> Self {
        let mut world = World::new(trial.seed, trial.network.faults());
        let replicas = addresses(trial.switches, trial.replicas);
        let switches: Vec<NodeId> = (0..trial.switches)
            .map(|_| nodes::add_switch(&mut world, bounds(&trial.set), new_set(&trial.set, &replicas)))
            .collect();
        let at: Vec<SocketAddr> = switches.iter().map(|switch| world.address(*switch)).collect();
        let members: Vec<Member> =
            (0..).zip(&replicas).map(|(place, &at)| member(place + 1, place as u8, at)).collect();
        let identity = |member: &Member| Identity { member: member.clone(), lost: None, lives: 0 };
        let identities = Rc::new(RefCell::new(members.iter().map(identity).collect::<Vec<_>>()));
        let replicas: Vec<NodeId> = (0..trial.replicas)
            .map(|place| {
                let (identities, members) = (Rc::clone(&identities), members.clone());
                let (set, at) = (trial.set, at.clone());
                nodes::add_replica(&mut world, move || replica_config(&set, &identities.borrow(), place, &members, &at))
            })
            .collect();
        let keys = (0..trial.set.keys).map(|key| format!("key-{key}")).collect();
        let load = Rc::new(Load { keys });
        let clients: Vec<NodeId> = trial
            .clients
            .iter()
            .map(|spec| {
                let config = client_config(&trial.set, spec, at.clone());
                nodes::add_client(&mut world, config, Rc::clone(&load), spec.work())
            })
            .collect();
        let places = Places { switches, replicas, clients };
        let findings = Rc::new(RefCell::new(Findings::new(places.clone(), traced)));
        world.set_observer(Box::new(Monitor(Rc::clone(&findings))));
        let trial = Rc::new(trial.clone());
        let (disturbed, lasting) = (Disturbed::default(), Vec::new());
        Self { trial, world, findings, places, load, identities, disturbed, lasting, befell: 0 }
    }

    fn judge(&mut self) -> Checked {
        self.script()
    }

    fn heal(&mut self) -> Checked {
        self.all_heals()
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn faults(&self) -> u64 {
        self.befell
    }

    fn violation(&self) -> Option<Violation> {
        self.findings.borrow().broken.clone().map(|(at, broken)| Violation { at, broken })
    }

    fn into_lines(self) -> Vec<String> {
        let trace = self.findings.borrow_mut().trace.take();
        trace.map(|trace| trace.into_lines()).unwrap_or_default()
    }
}

impl ReadsSubject {
    /// All steps of the trial, with their times.
    fn script(&mut self) -> Checked {
        let trial = Rc::clone(&self.trial);
        let mut steps = Vec::new();
        for (n, fault) in trial.faults.iter().enumerate() {
            let (begin, end) = trial.times(fault);
            steps.push((begin, Step::Begin(n)));
            steps.push((end, Step::End(n)));
        }
        steps.sort_by_key(|(at, _)| *at);
        for (at, step) in steps {
            self.run_until(at)?;
            match step {
                Step::Begin(fault) => self.begin(fault),
                Step::End(fault) => self.end(fault),
            }
        }
        self.run_until(trial.heal_ms * MS)
    }

    /// `Err` as soon as a rule is broken. Meanwhile the operator does what has to be done.
    pub(super) fn run_until(&mut self, at: Nanos) -> Checked {
        loop {
            let is_waiting = self.identities.borrow().iter().any(|identity| identity.lost.is_some());
            let next = if is_waiting { at.min(self.world.now() + OPERATOR) } else { at };
            let findings = Rc::clone(&self.findings);
            self.world.run(next, |_| findings.borrow().broken.is_some());
            if let Some((_, broken)) = &self.findings.borrow().broken {
                return Err(broken.clone());
            }
            if is_waiting {
                self.operate();
            }
            if next >= at {
                return Ok(());
            }
        }
    }

    fn node(&self, party: Party) -> NodeId {
        match party {
            Party::Switch(n) => self.places.switches[n],
            Party::Replica(n) => self.places.replicas[n],
            Party::Client(n) => self.places.clients[n],
        }
    }

    /// The replica in a place, if it runs.
    pub(super) fn replica(&self, place: usize) -> Option<&Replica> {
        nodes::replica(&self.world, self.places.replicas[place])
    }

    /// It happens before any other step.
    fn act(&mut self, action: Action) {
        act(&mut self.world, action);
    }

    /// The place of the replica that leads in the highest term.
    pub(super) fn leader(&self) -> Option<usize> {
        let leads = |place: &usize| {
            let status = self.replica(*place)?.status(0);
            (status.role == replica::Role::Leader).then_some(status.term)
        };
        (0..self.trial.replicas).filter(|place| leads(place).is_some()).max_by_key(leads)
    }

    fn ask_leader(&mut self, order: Order) {
        if let Some(leader) = self.leader() {
            self.act(Action::command(self.places.replicas[leader], order));
        }
    }

    /// A replica that has lost its disk leaves the set, and joins it under its new id.
    fn operate(&mut self) {
        let Some(leader) = self.leader() else { return };
        let known: Vec<u64> = self.replica(leader).into_iter().flat_map(Replica::members).map(|m| m.id).collect();
        for place in 0..self.trial.replicas {
            let Identity { member, lost, .. } = self.identities.borrow()[place].clone();
            let Some(lost) = lost else { continue };
            if known.contains(&lost) {
                self.ask_leader(Order::Remove(lost));
            } else if !known.contains(&member.id) {
                self.ask_leader(Order::Add(member));
            } else if self.is_caught_up(place, leader) {
                self.identities.borrow_mut()[place].lost = None;
            }
        }
    }

    fn is_caught_up(&self, place: usize, leader: usize) -> bool {
        let commit = self.replica(leader).map(|leader| leader.status(0).committed);
        let applied = self.replica(place).map(|replica| replica.status(0).applied);
        matches!((commit, applied), (Some(commit), Some(applied)) if applied >= commit)
    }

    /// One replica at a time may lose its disk: else what a minority loses could be more than that (R2).
    fn wipe(&mut self, place: usize) -> bool {
        let is_first = self.identities.borrow().iter().all(|identity| identity.lost.is_none());
        if !is_first || self.trial.replicas < 3 {
            return false;
        }
        {
            let identity = &mut self.identities.borrow_mut()[place];
            identity.lost = Some(identity.member.id);
            identity.lives += 1;
            identity.member.id = SECOND_IDS * (place as u64 + 1) + identity.lives;
        }
        let node = self.places.replicas[place];
        self.disturbed.crash(&mut self.world, node);
        self.act(Action::Wipe(node));
        true
    }

    fn begin(&mut self, number: usize) {
        let trial = Rc::clone(&self.trial);
        self.befell += 1;
        match &trial.faults[number].what {
            What::Crash(party) => {
                let node = self.node(*party);
                self.disturbed.crash(&mut self.world, node);
            }
            What::PowerCut => {
                for node in self.places.replicas.clone() {
                    self.disturbed.crash(&mut self.world, node);
                }
            }
            What::Pause(party) => {
                let node = self.node(*party);
                self.disturbed.pause(&mut self.world, node);
            }
            What::Drift { party, ppm, ahead_ms } => {
                self.act(Action::Drift { node: self.node(*party), ppm: *ppm, offset: ahead_ms * MS });
            }
            What::Partition { .. } | What::Burst(_) => {}
            What::Late { party, kind, by_ms, copies } => self.set_late(*party, Some(late(*kind, *by_ms, *copies))),
            What::Wipe(place) => {
                if !self.wipe(*place) {
                    return; // it has no end, either
                }
            }
            What::SlowDisk { replica, by } => {
                let node = self.places.replicas[*replica];
                self.act(Action::Disk { node, condition: DiskCondition::Slow(*by) });
            }
            What::Transfer(place) => {
                let id = self.identities.borrow()[*place].member.id;
                self.ask_leader(Order::Transfer(id));
            }
            What::Flush => {
                let now = self.world.now();
                self.findings.borrow_mut().flushed(now, &self.load.keys);
                self.ask_leader(Order::Flush);
            }
        }
        self.lasting.push(number);
        self.set_network(&trial.faults[number].what);
    }

    fn end(&mut self, number: usize) {
        let Some(place) = self.lasting.iter().position(|lasting| *lasting == number) else { return };
        self.lasting.remove(place);
        let trial = Rc::clone(&self.trial);
        match &trial.faults[number].what {
            What::Crash(party) => {
                let node = self.node(*party);
                self.disturbed.restart(&mut self.world, node);
            }
            What::PowerCut => {
                for node in self.places.replicas.clone() {
                    self.disturbed.restart(&mut self.world, node);
                }
            }
            What::Wipe(place) => {
                let node = self.places.replicas[*place];
                self.disturbed.restart(&mut self.world, node);
            }
            What::Pause(party) => {
                let node = self.node(*party);
                self.disturbed.resume(&mut self.world, node);
            }
            What::Drift { party, .. } => self.act(Action::Drift { node: self.node(*party), ppm: 0, offset: 0 }),
            What::Late { party, .. } => self.set_late(*party, None),
            What::SlowDisk { replica, .. } => {
                let node = self.places.replicas[*replica];
                self.act(Action::Disk { node, condition: DiskCondition::Healthy });
            }
            What::Partition { .. } | What::Burst(_) | What::Transfer(_) | What::Flush => {}
        }
        self.set_network(&trial.faults[number].what);
    }

    fn set_late(&mut self, party: Party, late: Option<Late>) {
        let node = self.node(party);
        self.act(match party {
            Party::Switch(_) => Action::command(node, late),
            Party::Replica(_) => Action::command(node, Order::Late(late)),
            Party::Client(_) => Action::command(node, Ask::Late(late)),
        });
    }

    /// A fault of the network begins, or ends: applies those that last.
    fn set_network(&mut self, what: &What) {
        match what {
            What::Partition { .. } => self.partition(),
            What::Burst(_) => {
                let trial = Rc::clone(&self.trial);
                let net = |number: &usize| match &trial.faults[*number].what {
                    What::Burst(net) => Some(net),
                    _ => None,
                };
                let net = self.lasting.iter().rev().find_map(net).unwrap_or(&trial.network);
                self.act(Action::Faults(net.faults()));
            }
            _ => {}
        }
    }

    fn partition(&mut self) {
        let trial = Rc::clone(&self.trial);
        self.act(Action::Heal);
        for number in self.lasting.clone() {
            if let What::Partition { from, to, both } = &trial.faults[number].what {
                let nodes = |parties: &[Party]| parties.iter().map(|party| self.node(*party)).collect();
                self.act(Action::Partition { from: nodes(from), to: nodes(to), both: *both });
            }
        }
    }
}

/// The addresses of the replicas, whose nodes stand behind the switches'.
fn addresses(switches: usize, replicas: usize) -> Vec<SocketAddr> {
    (switches..switches + replicas).map(|number| NodeId(number as u32).home()).collect()
}

fn member(id: u64, slot: u8, at: SocketAddr) -> Member {
    Member { id, slot, address: at, links: at }
}

fn bounds(set: &SetSpec) -> ReadsConfig {
    ReadsConfig { sets: 1, kgroup_bits: set.kgroup_bits.into(), cookie_ns: SECOND, ..ReadsConfig::default() }
}

fn new_set(set: &SetSpec, replicas: &[SocketAddr]) -> NewSet {
    NewSet {
        number: SET,
        incarnation: 0, // drawn at each start
        lease_ns: Timing::default().session_lease,
        kgroup_bits: set.kgroup_bits,
        reply_check: if set.is_relaxed { ReplyCheck::Relaxed } else { ReplyCheck::Strict },
        policy: if set.avoids_leader { Policy::LeaderAvoidance } else { Policy::Random },
        replicas: replicas.to_vec(),
    }
}

fn replica_config(
    set: &SetSpec,
    identities: &[Identity],
    place: usize,
    first: &[Member],
    switches: &[SocketAddr],
) -> ReplicaConfig {
    let own = &identities[place];
    let is_first = own.lives == 0;
    let initial = if is_first { first.to_vec() } else { Vec::new() };
    let mut config = ReplicaConfig::new(CLUSTER, SET, own.member.id, initial, switches.to_vec(), 0);
    config.founds = is_first;
    config.contacts = identities.iter().map(|identity| identity.member.clone()).collect();
    config.kgroup_bits = set.kgroup_bits;
    config.mode = match set.mode {
        Mode::Flair => replica::Mode::Flair,
        Mode::Raft => replica::Mode::Raft,
        Mode::LeaderLease => replica::Mode::LeaderLease,
    };
    config.timing.drift_ppm = set.drift_ppm;
    config.clients = set.client_ids;
    config.client_idle = set.client_idle_ms * MS;
    config.snapshot_after = set.snapshot_after;
    config
}

fn client_config(set: &SetSpec, spec: &ClientSpec, switches: Vec<SocketAddr>) -> ClientConfig {
    ClientConfig {
        lanes: spec.lanes,
        timeout: TIMEOUT,
        // Ids are given up soon here: half of that time lies beyond the drift of clocks.
        id_kept: set.client_idle_ms * MS / 2,
        ..ClientConfig::new(switches, SET, 0)
    }
}
