//! A run: a world from a trial, and its faults in their order.

use super::guess::CRAFT;
use super::monitor::Findings;
use super::mutants::MUTANTS;
use super::rogue;
use super::trial::{ClientSpec, Mode, Party, SetSpec, Trial, What, late};
use crate::check::{Checked, Mutant, Places, Stage, Subject, add_attacker};
use crate::reads::{Ask, Late, Load, Order, nodes};
use crate::{Action, DiskCondition, NodeId, World};
use midflight_dataplane::reads::{NewSet, Policy, ReadsConfig, ReplyCheck};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_reads::client::ClientConfig;
use midflight_reads::replica::{self, Member, Replica, ReplicaConfig, Timing};
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;

/// The store's number.
const CLUSTER: u64 = 77;
pub(super) const SET: u16 = 1;
/// A client gives an operation up after this.
const TIMEOUT: Nanos = 60 * SECOND;
/// How often the operator looks whether a replica that has lost its disk can be added again.
const OPERATOR: Nanos = 20 * MS;
/// Ids of replicas that have lost their disks begin here.
const SECOND_IDS: u64 = 100;

/// The reads program under faults: a store and its checker.
pub struct ReadsSubject {
    pub(super) stage: Stage<Trial, Findings>,
    pub(super) load: Rc<Load>,
    /// Who has each replica's place.
    identities: Rc<RefCell<Vec<Identity>>>,
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
    type Findings = Findings;
    type Deed = Infallible;

    fn draw(seed: u64) -> Trial {
        Trial::draw(seed)
    }

    fn build(trial: &Trial, traced: bool) -> Self {
        let mut world = World::new(trial.seed, trial.network.faults());
        let replicas = addresses(trial.switches, trial.replicas);
        let switches: Vec<NodeId> = (0..trial.switches)
            .map(|_| {
                let set = new_set(&trial.set, &replicas);
                nodes::add_switch(&mut world, bounds(&trial.set), set, trial.set.is_asic)
            })
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
        let places = Places::default()
            .with(Party::Switch, &switches)
            .with(Party::Replica, &replicas)
            .with(Party::Client, &clients);
        let recent = add_attacker(trial, &mut world, CRAFT);
        rogue::add(trial, &mut world, &load, &at);
        let findings = Findings::new(places.clone(), traced, recent);
        Self { stage: Stage::new(trial, world, places, findings), load, identities }
    }

    fn stage(&self) -> &Stage<Trial, Findings> {
        &self.stage
    }

    fn stage_mut(&mut self) -> &mut Stage<Trial, Findings> {
        &mut self.stage
    }

    fn into_stage(self) -> Stage<Trial, Findings> {
        self.stage
    }

    fn begins(&mut self, what: &What) -> bool {
        match what {
            What::PowerCut => self.replicas().for_each(|node| self.stage.crash(node)),
            What::Late { party, kind, by_ms, copies } => self.set_late(*party, Some(late(*kind, *by_ms, *copies))),
            What::Wipe(place) => return self.wipe(*place),
            What::SlowDisk { replica, by } => self.set_disk(*replica, DiskCondition::Slow(*by)),
            What::Transfer(place) => {
                let id = self.identities.borrow()[*place].member.id;
                self.ask_leader(Order::Transfer(id));
            }
            What::Flush => {
                let now = self.stage.world.now();
                self.stage.findings().flushed(now, &self.load.keys);
                self.ask_leader(Order::Flush);
            }
            // It knows its times.
            What::Rogue(_) | What::Common(_) => {}
        }
        true
    }

    fn ends(&mut self, what: &What) {
        match what {
            What::PowerCut => self.replicas().for_each(|node| self.stage.restart(node)),
            What::Wipe(place) => self.stage.restart(self.stage.node(Party::Replica(*place))),
            What::Late { party, .. } => self.set_late(*party, None),
            What::SlowDisk { replica, .. } => self.set_disk(*replica, DiskCondition::Healthy),
            What::Transfer(_) | What::Flush | What::Rogue(_) | What::Common(_) => {}
        }
    }

    /// Meanwhile the operator does what has to be done.
    fn run_until(&mut self, at: Nanos) -> Checked {
        loop {
            let is_waiting = self.identities.borrow().iter().any(|identity| identity.lost.is_some());
            let next = if is_waiting { at.min(self.stage.world.now() + OPERATOR) } else { at };
            self.stage.run_until(next)?;
            if is_waiting {
                self.operate();
            }
            if next >= at {
                return Ok(());
            }
        }
    }

    fn heal(&mut self) -> Checked {
        self.all_heals()
    }
}

impl ReadsSubject {
    /// The replica in a place, if it runs.
    pub(super) fn replica(&self, place: usize) -> Option<&Replica> {
        nodes::replica(&self.stage.world, self.stage.node(Party::Replica(place)))
    }

    fn replicas(&self) -> std::vec::IntoIter<NodeId> {
        self.stage.places.of(Party::Replica).collect::<Vec<_>>().into_iter()
    }

    /// The place of the replica that leads in the highest term.
    pub(super) fn leader(&self) -> Option<usize> {
        let leads = |place: &usize| {
            let status = self.replica(*place)?.status(0);
            (status.role == replica::Role::Leader).then_some(status.term)
        };
        (0..self.stage.trial.replicas).filter(|place| leads(place).is_some()).max_by_key(leads)
    }

    fn ask_leader(&mut self, order: Order) {
        if let Some(leader) = self.leader() {
            self.stage.act(Action::command(self.stage.node(Party::Replica(leader)), order));
        }
    }

    /// A replica that has lost its disk leaves the set, and joins it under its new id.
    fn operate(&mut self) {
        let Some(leader) = self.leader() else { return };
        let known: Vec<u64> = self.replica(leader).into_iter().flat_map(Replica::members).map(|m| m.id).collect();
        for place in 0..self.stage.trial.replicas {
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
        if !is_first || self.stage.trial.replicas < 3 {
            return false;
        }
        {
            let identity = &mut self.identities.borrow_mut()[place];
            identity.lost = Some(identity.member.id);
            identity.lives += 1;
            identity.member.id = SECOND_IDS * (place as u64 + 1) + identity.lives;
        }
        let node = self.stage.node(Party::Replica(place));
        self.stage.crash(node);
        self.stage.act(Action::Wipe(node));
        true
    }

    fn set_disk(&mut self, replica: usize, condition: DiskCondition) {
        self.stage.act(Action::Disk { node: self.stage.node(Party::Replica(replica)), condition });
    }

    fn set_late(&mut self, party: Party, late: Option<Late>) {
        let node = self.stage.node(party);
        self.stage.act(match party {
            Party::Switch(_) => Action::command(node, late),
            Party::Replica(_) => Action::command(node, Order::Late(late)),
            Party::Client(_) => Action::command(node, Ask::Late(late)),
        });
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
        Mode::FollowerReadIndex => replica::Mode::FollowerReadIndex,
        Mode::FollowerLease => replica::Mode::FollowerLease,
        Mode::Unreplicated => replica::Mode::Unreplicated,
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
