//! The world of a cell.

use super::cell::{Cell, CellError, CellResult, FaultKind, Shares, System};
use super::costs::Costs;
use super::measured::Measured;
use super::quorum;
use super::replica::{Machine, Pace};
use super::users::{Order, Users, Workload};
use crate::cell::testbed::{hardware, host};
use midflight_dataplane::store::{NewSet, SetStats, StoreConfig};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_sim::store::{ReplicaActor, SwitchActor, add_switch as add_store_switch};
use midflight_sim::{Action, Actor, Birth, Faults, Hardware, LinkConfig, NodeId, Place, World};
use midflight_store::client::{Client, ClientConfig};
use midflight_store::replica::{Member, Mode, Replica, ReplicaConfig, Role, Timing};
use rand::RngExt;
use std::net::SocketAddr;
use std::time::Instant;

const SET: u16 = 1;
/// The store elects a leader, and its keys are written, within this simulated time.
const READY: Nanos = 60 * SECOND;

/// Runs a cell.
///
/// # Errors
/// If it is invalid, or the store does not begin.
pub fn run(cell: &Cell) -> Result<CellResult, CellError> {
    cell.check()?;
    let began = Instant::now();
    let result = match cell.system.mode() {
        Some(mode) => run_store(cell, mode)?,
        None => quorum::run(cell),
    };
    Ok(CellResult { wall_ms: began.elapsed().as_secs_f64() * 1e3, ..result })
}

fn run_store(cell: &Cell, mode: Mode) -> Result<CellResult, CellError> {
    let mut site = Site::build(cell, mode);
    site.load()?;
    site.measure(cell);
    Ok(site.result(cell))
}

/// A store and its clients.
struct Site {
    world: World,
    switch: NodeId,
    replicas: Vec<NodeId>,
    paces: Vec<Pace>,
    machines: Vec<NodeId>,
    /// Counts at the end of the warm-up.
    before: Counts,
}

/// Counts of reads.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    served: u64,
    by_leader: u64,
    turned_back: u64,
    leader_only: u64,
}

impl Site {
    fn build(cell: &Cell, mode: Mode) -> Self {
        let mut world = World::with_hardware(cell.seed, Faults::INSTANT, &with_way(cell.way_ns));
        let addresses: Vec<SocketAddr> = (1..=u32::from(cell.replicas)).map(World::home).collect();
        let switch = add_switch(&mut world, cell, &addresses);
        let at = world.address(switch);
        let members: Vec<Member> = (0..)
            .zip(&addresses)
            .map(|(slot, &at)| Member { id: slot + 1, slot: slot as u8, address: at, links: at })
            .collect();
        let paces: Vec<Pace> = members.iter().map(|_| Pace::default()).collect();
        let replicas = members
            .iter()
            .zip(&paces)
            .map(|(own, pace)| add_replica(&mut world, (cell, mode), own, &members, at, pace))
            .collect();
        let machines = cell.busy_machines();
        let machines = (0..machines).map(|place| add_machine(&mut world, cell, place, machines, at)).collect();
        world.set_sink(Box::new(Measured::default()));
        Self { world, switch, replicas, paces, machines, before: Counts::default() }
    }

    /// Waits until all keys are written, which costs nothing. Then requests take their time.
    fn load(&mut self) -> Result<(), CellError> {
        let all = self.machines.len();
        let is_loaded = |world: &World| world.sink::<Measured>().is_some_and(|measured| measured.loaded == all);
        if !self.world.run(READY, is_loaded) {
            return Err(CellError::NotReady(READY / SECOND));
        }
        self.paces.iter().for_each(|pace| pace.set(1_000));
        Ok(())
    }

    fn measure(&mut self, cell: &Cell) {
        let start = self.world.now();
        let at = |ms: u64| start + ms * MS;
        if let Some(measured) = self.world.sink_mut::<Measured>() {
            measured.begin(start, cell);
        }
        let (leader, follower) = self.roles();
        self.paces[follower].set(1_000 + u64::from(cell.slower_per_mille));
        for &machine in &self.machines {
            self.world.at(start, Action::command(machine, Order::Begin));
        }
        if let Some(fault) = cell.fault {
            let node = match fault.kind {
                FaultKind::Switch => self.switch,
                FaultKind::Leader => self.replicas[leader],
                FaultKind::Follower => self.replicas[follower],
            };
            self.world.at(at(fault.at_ms), Action::Crash(node));
            if fault.kind == FaultKind::Switch {
                self.world.at(at(fault.at_ms), Action::Restart(node));
            }
        }
        self.world.run(at(cell.warmup_ms), |_| false);
        self.before = self.counts();
        self.world.run(at(cell.duration_ms), |_| false);
    }

    fn replica(&self, place: usize) -> Option<&Replica> {
        self.world.actor::<Machine>(self.replicas[place])?.replica()
    }

    /// Places of the leader and of the first follower.
    fn roles(&self) -> (usize, usize) {
        let leads = |place: &usize| self.replica(*place).is_some_and(|replica| replica.status(0).role == Role::Leader);
        let leader = (0..self.replicas.len()).find(leads).unwrap_or(0);
        (leader, usize::from(leader == 0).min(self.replicas.len() - 1))
    }

    fn counts(&self) -> Counts {
        let set: Option<SetStats> =
            self.world.actor::<SwitchActor>(self.switch).and_then(|switch| switch.stats().present().next().copied());
        let of_switch = set.map_or_else(Counts::default, |set| Counts {
            turned_back: set.turned_back,
            leader_only: set.leader_only,
            ..Counts::default()
        });
        let replicas = (0..self.replicas.len()).filter_map(|place| self.replica(place));
        replicas.map(Replica::counters).fold(of_switch, |counts, replica| Counts {
            served: counts.served + replica.reads_served,
            by_leader: counts.by_leader + replica.reads_as_leader,
            ..counts
        })
    }

    fn result(&self, cell: &Cell) -> CellResult {
        let (before, after) = (self.before, self.counts());
        let served = after.served.saturating_sub(before.served).max(1) as f64;
        let share = |after: u64, before: u64| after.saturating_sub(before) as f64 / served;
        let is_flair = cell.system == System::Flair;
        let shares = Shares {
            by_leader: share(after.by_leader, before.by_leader),
            unstable: if is_flair { share(after.leader_only, before.leader_only) } else { 0.0 },
            redirected: share(after.turned_back, before.turned_back),
        };
        let events = self.world.events();
        self.world.sink::<Measured>().map_or_else(CellResult::default, |measured| measured.result(cell, shares, events))
    }
}

/// The testbed with longer ways. A way has two links.
pub(super) fn with_way(added: Nanos) -> Hardware {
    let usual = hardware();
    let link = LinkConfig { latency: usual.link.latency + added / 2, ..usual.link };
    Hardware { link, ..usual }
}

fn add_switch(world: &mut World, cell: &Cell, replicas: &[SocketAddr]) -> NodeId {
    let config = StoreConfig { sets: 1, kgroup_bits: cell.kgroup_bits.into(), ..StoreConfig::default() };
    let set = NewSet {
        number: SET,
        incarnation: 0, // drawn at each start
        lease_ns: Timing::default().session_lease,
        kgroup_bits: cell.kgroup_bits,
        reply_check: cell.reply_check,
        policy: cell.policy,
        replicas: replicas.to_vec(),
    };
    add_store_switch(world, Place::Switch(0), config, set, false)
}

fn add_replica(
    world: &mut World,
    (cell, mode): (&Cell, Mode),
    own: &Member,
    members: &[Member],
    switch: SocketAddr,
    pace: &Pace,
) -> NodeId {
    let mut config = ReplicaConfig::new(1, SET, own.id, members.to_vec(), vec![switch], 0);
    config.founds = true;
    config.mode = mode;
    config.kgroup_bits = cell.kgroup_bits;
    config.store_bytes = STORE_BYTES;
    let (costs, pace, threads) = (cell.costs, pace.clone(), cell.threads());
    let costs = if members.len() == 1 { Costs { write_ns: costs.write_alone_ns, ..costs } } else { costs };
    let host = world.add_host(host());
    let node = world.add_actor(
        Place::Host(host),
        Box::new(move |birth: &mut Birth| {
            let config = ReplicaConfig { seed: birth.random.random(), ..config.clone() };
            let replica = Replica::new(config, std::mem::take(&mut birth.files), birth.now);
            let actor = ReplicaActor::new(replica.map_err(|error| error.to_string()));
            Box::new(Machine::new(actor, costs, pace.clone(), threads)) as Box<dyn Actor>
        }),
    );
    world.set_volatile(node);
    world.set_threads(node, threads);
    world.set_wake_up(node, costs.wake_up_ns);
    if costs.share_per_mille < 1_000 {
        // Groups start one after the other, and so do their periods.
        let phase = SHARE_PERIOD * Nanos::from(own.slot) / members.len() as Nanos;
        world.set_share(node, SHARE_PERIOD * Nanos::from(costs.share_per_mille) / 1_000, SHARE_PERIOD, phase);
    }
    node
}

/// Period of a control group's quota, as in `midflight-lab bench modes`.
const SHARE_PERIOD: Nanos = 10 * MS;
/// The largest that a replica takes.
const STORE_BYTES: usize = 512 << 20;

fn add_machine(world: &mut World, cell: &Cell, place: u32, machines: u32, switch: SocketAddr) -> NodeId {
    let bound = |place: u32| cell.clients * place / machines;
    let clients = bound(place)..bound(place + 1);
    let workload = Workload::of(cell);
    let host = world.add_host(host());
    world.add_actor(
        Place::Host(host),
        Box::new(move |birth: &mut Birth| {
            let config =
                ClientConfig { lanes: clients.len(), ..ClientConfig::new(vec![switch], SET, birth.random.random()) };
            let client = Client::new(config, birth.now).expect("`Cell::check` bounds a machine's clients");
            Box::new(Users::new(client, workload.clone(), clients.clone(), place, machines)) as Box<dyn Actor>
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::super::cell::Fault;
    use super::*;

    const ALL: [System; 8] = [
        System::Flair,
        System::FollowerLease,
        System::LeaderLease,
        System::Raft,
        System::Unreplicated,
        System::FollowerReadIndex,
        System::ViewstampedReplication,
        System::FastPaxos,
    ];

    fn small(system: System) -> Cell {
        let replicas = if system == System::Unreplicated { 1 } else { 3 };
        Cell { system, replicas, clients: 40, keys: 1_000, warmup_ms: 20, duration_ms: 40, ..Cell::default() }
    }

    #[test]
    fn every_system_serves_and_a_run_is_repeated_exactly() {
        for system in ALL {
            let first = run(&small(system)).unwrap().deterministic();
            assert!(first.per_second > 1_000.0 && first.failed == 0, "{system:?}: {first:?}");
            assert_eq!(first, run(&small(system)).unwrap().deterministic(), "{system:?}");
        }
    }

    /// Three replicas answer 3 / 7 of what seven do in the paper.
    #[test]
    fn a_store_that_nobody_writes_reaches_the_capacity_of_its_threads() {
        let cell = Cell { reads: 1.0, clients: 700, warmup_ms: 20, duration_ms: 40, ..small(System::Flair) };
        let result = run(&cell).unwrap();
        assert!((result.per_second / (5.4e6 * 3.0 / 7.0) - 1.0).abs() < 0.03, "{}", result.per_second);
        assert!((result.shares.by_leader - 1.0 / 3.0).abs() < 0.02, "{:?}", result.shares);
        let slower = run(&Cell { slower_per_mille: 1_000, ..cell }).unwrap();
        assert!(slower.per_second < 0.9 * result.per_second, "{}", slower.per_second);
    }

    #[test]
    fn a_read_that_a_follower_refuses_is_redirected_once() {
        let cell = Cell { reads: 0.5, zipf: 0.99, kgroup_bits: 4, ..small(System::FollowerLease) };
        let mut site = Site::build(&cell, Mode::FollowerLease);
        site.load().unwrap();
        site.measure(&cell);
        let refused: u64 = (0..3).filter_map(|place| site.replica(place)).map(|it| it.counters().reads_refused).sum();
        let (before, after) = (site.before, site.counts());
        assert!(after.turned_back > before.turned_back && after.turned_back <= refused, "{after:?} {refused}");
    }

    #[test]
    fn an_idle_store_takes_a_read_and_the_way_there_and_back() {
        let cell = Cell { reads: 1.0, clients: 1, warmup_ms: 1, duration_ms: 21, ..small(System::Flair) };
        let (result, host) = (run(&cell).unwrap(), host());
        let way = host.send + 2 * hardware().link.latency + hardware().switch.pass + host.receive + host.receive_jitter;
        let expected = 2 * way + Costs::default().read_ns;
        let mean = result.reads.mean_ms * 1e6;
        assert!((mean / expected as f64 - 1.0).abs() < 0.1, "{mean} {expected}");
    }

    #[test]
    fn a_store_goes_on_after_each_fault() {
        for kind in [FaultKind::Switch, FaultKind::Leader, FaultKind::Follower] {
            let fault = Some(Fault { kind, at_ms: 100 });
            let cell = Cell { reads: 0.99, clients: 4, fault, warmup_ms: 1, duration_ms: 600, ..small(System::Flair) };
            let over_time = run(&cell).unwrap().over_time;
            assert_eq!(over_time.len(), 12);
            let (before, least, last) =
                (over_time[1], over_time[2..8].iter().copied().fold(f64::MAX, f64::min), over_time[11]);
            assert!(least < 0.9 * before && last > 0.5 * before, "{kind:?}: {over_time:?}");
            assert!(kind == FaultKind::Follower || least == 0.0, "{kind:?}: {over_time:?}");
        }
    }
}
