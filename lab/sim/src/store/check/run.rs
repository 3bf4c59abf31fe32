//! A run: a world from a trial, and its faults in order.

use super::guess::CRAFT;
use super::monitor::Findings;
use super::mutants::MUTANTS;
use super::operator::{OPERATOR, Place};
use super::rogue;
use super::trial::{ClientSpec, FaultKind, Mode, Party, SetSpec, Trial, late};
use crate::check::{Checked, Mutant, Places, Subject, TrialRun, add_attacker};
use crate::store::{Ask, Late, Load, Order, nodes};
use crate::{Action, DiskCondition, NodeId, Place as AnyPlace, World};
use midflight_dataplane::store::{NewSet, Policy, StoreConfig};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_store::client::ClientConfig;
use midflight_store::replica::{self, Member, Replica, ReplicaConfig, Timing};
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;

const CLUSTER: u64 = 77;
pub(super) const SET: u16 = 1;
const TIMEOUT: Nanos = 60 * SECOND;

/// The store program under faults: a store and its checker.
pub struct StoreSubject {
    pub(super) run: TrialRun<Trial, Findings>,
    pub(super) load: Rc<Load>,
    pub(super) set: Rc<RefCell<Vec<Place>>>,
}

impl Subject for StoreSubject {
    const NAME: &'static str = "store";
    const MUTANTS: &'static [Mutant] = MUTANTS;
    type Trial = Trial;
    type Findings = Findings;
    type ScheduledAction = Infallible;

    fn draw(seed: u64) -> Trial {
        Trial::draw(seed)
    }

    fn build(trial: &Trial, traced: bool) -> Self {
        let mut world = World::new(trial.seed, trial.network.faults());
        let replicas = addresses(trial.switches, trial.places());
        let switches: Vec<NodeId> = (0..trial.switches)
            .map(|_| {
                let set = new_set(&trial.set, &replicas);
                nodes::add_switch(&mut world, AnyPlace::Apart, bounds(&trial.set), set, trial.set.is_asic)
            })
            .collect();
        let at: Vec<SocketAddr> = switches.iter().map(|switch| world.address(*switch)).collect();
        let members: Vec<Member> =
            (0..).zip(&replicas).map(|(place, &at)| member(place + 1, place as u8, at)).collect();
        let places = members.iter().enumerate();
        let places = places.map(|(place, member)| Place::new(member.clone(), place < trial.replicas));
        let set = Rc::new(RefCell::new(places.collect::<Vec<_>>()));
        let first = &members[..trial.replicas];
        let replicas: Vec<NodeId> = (0..trial.places())
            .map(|place| {
                let (places, first) = (Rc::clone(&set), first.to_vec());
                let (spec, at) = (trial.set, at.clone());
                nodes::add_replica(&mut world, move || replica_config(&spec, &places.borrow(), place, &first, &at))
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
        let places = Places::default()
            .with(Party::Switch, &switches)
            .with(Party::Replica, &replicas)
            .with(Party::Client, &clients);
        let recent = add_attacker(trial, &mut world, CRAFT);
        rogue::add(trial, &mut world, &load, &at);
        let findings = Findings::new(Rc::clone(&load), places.clone(), traced, recent);
        Self { run: TrialRun::new(trial, world, places, findings), load, set }
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
        match what {
            FaultKind::PowerCut => self.replicas().for_each(|node| self.run.crash(node)),
            FaultKind::Late { party, kind, by_ms, copies } => {
                self.set_late_datagrams(*party, Some(late(*kind, *by_ms, *copies)))
            }
            FaultKind::Wipe(place) => return self.wipe(*place),
            FaultKind::Refound { replica, joins } => return self.begin_mistake(*replica, *joins),
            FaultKind::SlowDisk { replica, by } => self.set_disk(*replica, DiskCondition::Slow(*by)),
            FaultKind::Transfer(place) => {
                let id = self.set.borrow()[*place].member.id;
                self.ask_leader(Order::Transfer(id));
            }
            FaultKind::Join(place) => self.join(*place),
            FaultKind::Leave { replica, .. } => return self.leave(*replica),
            FaultKind::Flush => {
                let now = self.run.world.now();
                self.run.findings().flushed(now);
                self.ask_leader(Order::Flush);
            }
            // It knows its times.
            FaultKind::Rogue(_) | FaultKind::Common(_) => {}
        }
        true
    }

    fn end_fault(&mut self, what: &FaultKind) {
        match what {
            FaultKind::PowerCut => self.replicas().for_each(|node| self.run.restart(node)),
            FaultKind::Wipe(place) => self.run.restart(self.run.node(Party::Replica(*place))),
            FaultKind::Refound { replica, .. } => self.end_mistake(*replica),
            FaultKind::Late { party, .. } => self.set_late_datagrams(*party, None),
            FaultKind::SlowDisk { replica, .. } => self.set_disk(*replica, DiskCondition::Healthy),
            FaultKind::Leave { replica, returns: true } => self.come_back(*replica),
            FaultKind::Leave { .. } | FaultKind::Join(_) => {}
            FaultKind::Transfer(_) | FaultKind::Flush | FaultKind::Rogue(_) | FaultKind::Common(_) => {}
        }
    }

    fn run_until(&mut self, at: Nanos) -> Checked {
        loop {
            let is_waiting = !self.is_settled();
            let next = if is_waiting { at.min(self.run.world.now() + OPERATOR) } else { at };
            self.run.run_until(next)?;
            if is_waiting {
                self.operate();
            }
            if next >= at {
                return Ok(());
            }
        }
    }

    fn await_recovery(&mut self) -> Checked {
        self.all_heals()
    }
}

impl StoreSubject {
    pub(super) fn replica(&self, place: usize) -> Option<&Replica> {
        nodes::replica(&self.run.world, self.run.node(Party::Replica(place)))
    }

    fn replicas(&self) -> std::vec::IntoIter<NodeId> {
        self.run.places.of(Party::Replica).collect::<Vec<_>>().into_iter()
    }

    /// The place of the leader with the highest term.
    pub(super) fn leader(&self) -> Option<usize> {
        let leads = |place: &usize| {
            let status = self.replica(*place)?.status(0);
            (status.role == replica::Role::Leader).then_some(status.term)
        };
        (0..self.run.trial.places()).filter(|place| leads(place).is_some()).max_by_key(leads)
    }

    pub(super) fn ask_leader(&mut self, order: Order) {
        if let Some(leader) = self.leader() {
            self.run.act(Action::command(self.run.node(Party::Replica(leader)), order));
        }
    }

    fn set_disk(&mut self, replica: usize, condition: DiskCondition) {
        self.run.act(Action::Disk { node: self.run.node(Party::Replica(replica)), condition });
    }

    fn set_late_datagrams(&mut self, party: Party, late: Option<Late>) {
        let node = self.run.node(party);
        self.run.act(match party {
            Party::Switch(_) => Action::command(node, late),
            Party::Replica(_) => Action::command(node, Order::Late(late)),
            Party::Client(_) => Action::command(node, Ask::Late(late)),
        });
    }
}

fn addresses(switches: usize, replicas: usize) -> Vec<SocketAddr> {
    (switches..switches + replicas).map(|number| NodeId(number as u32).home()).collect()
}

fn member(id: u64, slot: u8, at: SocketAddr) -> Member {
    Member { id, slot, address: at, links: at }
}

fn bounds(set: &SetSpec) -> StoreConfig {
    StoreConfig { sets: 1, kgroup_bits: set.kgroup_bits.into(), cookie_ns: SECOND, ..StoreConfig::default() }
}

fn new_set(set: &SetSpec, replicas: &[SocketAddr]) -> NewSet {
    NewSet {
        number: SET,
        incarnation: 0, // drawn at each start
        lease_ns: Timing::default().session_lease,
        kgroup_bits: set.kgroup_bits,
        reply_check: set.reply_check,
        policy: if set.avoids_leader { Policy::LeaderAvoidance } else { Policy::Random },
        replicas: replicas.to_vec(),
    }
}

fn replica_config(
    set: &SetSpec,
    places: &[Place],
    place: usize,
    first: &[Member],
    switches: &[SocketAddr],
) -> ReplicaConfig {
    let own = &places[place];
    let joins_by_mistake = own.mistake == Some(true);
    let is_first = own.lives == 0 && place < first.len() && !joins_by_mistake;
    let initial = if is_first { first.to_vec() } else { Vec::new() };
    let mut config = ReplicaConfig::new(CLUSTER, SET, own.member.id, initial, switches.to_vec(), 0);
    config.founds = is_first;
    config.contacts = places.iter().map(|place| place.member.clone()).collect();
    config.kgroup_bits = set.kgroup_bits;
    config.mode = match set.mode {
        Mode::Flair => replica::Mode::Flair,
        Mode::Raft => replica::Mode::Raft,
        Mode::LeaderLease => replica::Mode::LeaderLease,
        Mode::FollowerReadIndex => replica::Mode::FollowerReadIndex,
        Mode::FollowerLease => replica::Mode::FollowerLease,
        Mode::Unreplicated => replica::Mode::Unreplicated,
    };
    config.timing.drift_ppm = set.drift_ppm;
    config.clients = set.client_ids;
    config.client_idle = set.client_idle_ms * MS;
    config.snapshot_after = set.snapshot_after;
    config.learn_within = set.learn_ms * MS;
    config
}

fn client_config(set: &SetSpec, spec: &ClientSpec, switches: Vec<SocketAddr>) -> ClientConfig {
    ClientConfig {
        lanes: spec.lanes,
        timeout: TIMEOUT,
        // Ids expire soon here: half of that time is beyond the drift of clocks.
        id_kept: set.client_idle_ms * MS / 2,
        ..ClientConfig::new(switches, SET, 0)
    }
}
