//! Replicas, two switches and a user on one clock. Datagrams, links and disks are slow, but do not fail; `midflight-lab sim check store`
//! simulates failures.

mod replies;
mod user;

use midflight_dataplane::Out;
use midflight_dataplane::store::{NewSet, Outcome, Policy, ReplyCheck, SetOrder, Store, StoreConfig};
use midflight_endpoint::{Change, Durable, Endpoint, File, Lane, Link, Linked, MS, Nanos, Persist};
use midflight_store::replica::{Event, Member, Replica, ReplicaConfig, StatusReport};
use midflight_wire::store::{Packet, parse};
pub(crate) use replies::Replies;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use user::Answer;

pub(crate) const SET: u16 = 3;
const KGROUP_BITS: u8 = 8;
const NETWORK: Nanos = 50_000;
const DISK: Nanos = 300_000;

/// A scheduled event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Datagram { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
    Message { from: u64, to: u64, lane: Lane, bytes: Vec<u8> },
    Persisted { id: u64, batch: u64, life: u32 },
}

struct Node {
    replica: Option<Replica>,
    config: ReplicaConfig,
    files: BTreeMap<File, Vec<u8>>,
    /// Batches that are not durable; a power failure loses them.
    unsafe_batches: VecDeque<Persist>,
    life: u32,
}

/// Replaces a message on the bulk lane.
pub(crate) type Mischief = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>>>;

/// Whether a packet between these addresses is lost. A replica's address is that for datagrams.
pub(crate) type Cut = Box<dyn Fn(SocketAddr, SocketAddr) -> bool>;

/// Extra delay of a message between two replicas on the prompt lane.
pub(crate) type Delay = Box<dyn Fn(u64, u64, &[u8]) -> Nanos>;

pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) mischief: Option<Mischief>,
    pub(crate) delay: Option<Delay>,
    pub(crate) cut: Option<Cut>,
    /// Time between a slow replica's turns for datagrams.
    pub(crate) slow: BTreeMap<u64, Nanos>,
    /// Time per batch of a slow disk.
    pub(crate) slow_disks: BTreeMap<u64, Nanos>,
    /// Durable batches by replica.
    pub(crate) batches: BTreeMap<u64, u64>,
    /// The longest processor time of a call to a replica, and its name. (Starts are excluded.)
    pub(crate) longest: (Duration, &'static str),
    queue: BinaryHeap<std::cmp::Reverse<(Nanos, u64, What)>>,
    order: u64,
    nodes: BTreeMap<u64, Node>,
    switches: BTreeMap<SocketAddr, Option<Store>>,
    pub(crate) events: Vec<(Nanos, u64, Event)>,
    /// When each switch last verified a datagram from a peer.
    pub(crate) known: BTreeMap<(SocketAddr, SocketAddr), Nanos>,
    /// Replies to READs of stable key groups, at a switch.
    pub(crate) replies: Replies,
    answers: Vec<Answer>,
    cookie: [u8; 8],
    requests: u64,
}

/// Of this thread, so that other programs do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub(crate) fn user() -> SocketAddr {
    "10.0.0.9:9000".parse().unwrap()
}

pub(crate) fn switch(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, number], 7700))
}

/// The incarnation that a switch draws at this start.
pub(crate) fn incarnation(switch: u8, start: u64) -> u64 {
    u64::from(switch) << 32 | start
}

pub(crate) fn member(id: u64) -> Member {
    let slot = id as u8 - 1;
    Member {
        id,
        slot,
        address: SocketAddr::from(([10, 0, 0, id as u8], 7000)),
        links: SocketAddr::from(([10, 0, 0, id as u8], 7001)),
    }
}

impl World {
    pub(crate) fn new(replicas: u64) -> Self {
        Self::with(replicas, |_| {})
    }

    pub(crate) fn with(replicas: u64, change: impl Fn(&mut ReplicaConfig)) -> Self {
        let mut world = Self::prepared(replicas, change);
        (1..=replicas).for_each(|id| world.start(id));
        world
    }

    /// The same, without running replicas.
    pub(crate) fn prepared(replicas: u64, change: impl Fn(&mut ReplicaConfig)) -> Self {
        let mut world = Self {
            now: 1_000_000 * MS,
            mischief: None,
            delay: None,
            cut: None,
            slow: BTreeMap::new(),
            slow_disks: BTreeMap::new(),
            batches: BTreeMap::new(),
            longest: (Duration::ZERO, ""),
            queue: BinaryHeap::new(),
            order: 0,
            nodes: BTreeMap::new(),
            switches: BTreeMap::new(),
            events: Vec::new(),
            known: BTreeMap::new(),
            replies: Replies::default(),
            answers: Vec::new(),
            cookie: [0; 8],
            requests: 77,
        };
        let members: Vec<Member> = (1..=replicas).map(member).collect();
        (1..=2).for_each(|number| world.start_switch(number, 1));
        for id in 1..=replicas {
            let mut config = ReplicaConfig::new(5, SET, id, members.clone(), vec![switch(1), switch(2)], id);
            config.kgroup_bits = KGROUP_BITS;
            config.founds = true;
            change(&mut config);
            world.nodes.insert(
                id,
                Node { replica: None, config, files: BTreeMap::new(), unsafe_batches: VecDeque::new(), life: 0 },
            );
        }
        world
    }

    /// A replica that waits to be added.
    pub(crate) fn start_outsider(&mut self, id: u64) {
        let mut config = ReplicaConfig::new(5, SET, id, Vec::new(), vec![switch(1), switch(2)], id);
        config.kgroup_bits = KGROUP_BITS;
        self.nodes.insert(
            id,
            Node { replica: None, config, files: BTreeMap::new(), unsafe_batches: VecDeque::new(), life: 0 },
        );
        self.start(id);
    }

    pub(crate) fn start_switch(&mut self, number: u8, incarnation: u64) {
        let config = StoreConfig { sets: 2, kgroup_bits: 12, ..StoreConfig::default() };
        let mut engine = Store::new(&config, 1, u128::from(incarnation)).unwrap();
        let mut order = SetOrder::add(&new_set(self::incarnation(number, incarnation), Policy::Random));
        while !engine.order(&mut order) {}
        self.switches.insert(switch(number), Some(engine));
    }

    pub(crate) fn change_policy(&mut self, number: u8, policy: Policy) {
        self.change_set(number, &new_set(0, policy));
    }

    pub(crate) fn change_reply_check(&mut self, number: u8, reply_check: ReplyCheck) {
        self.change_set(number, &NewSet { reply_check, ..new_set(0, Policy::Random) });
    }

    fn change_set(&mut self, number: u8, set: &NewSet) {
        let engine = self.switches.get_mut(&switch(number)).unwrap().as_mut().unwrap();
        let mut order = SetOrder::change(set);
        assert!(engine.order(&mut order) && order.outcome() == Outcome::Done);
    }

    pub(crate) fn stop_switch(&mut self, number: u8) {
        self.switches.insert(switch(number), None);
    }

    pub(crate) fn start(&mut self, id: u64) {
        self.try_start(id).unwrap();
    }

    pub(crate) fn try_start(&mut self, id: u64) -> Result<(), String> {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        node.life += 1;
        let files = node.files.clone().into_iter().collect();
        // Each start draws another one.
        node.config.seed = id + 1000 * u64::from(node.life);
        node.replica = Some(Replica::new(node.config.clone(), files, now).map_err(|error| error.to_string())?);
        for other in self.ids() {
            if other != id && self.nodes[&other].replica.is_some() {
                self.link(id, other, true);
            }
        }
        self.drive(id);
        Ok(())
    }

    /// Crashes a replica as by a power failure: unsynced writes are lost.
    pub(crate) fn kill(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        node.replica = None;
        node.unsafe_batches.clear();
        for other in self.ids() {
            self.link(id, other, false);
        }
    }

    /// Loses the disk.
    pub(crate) fn wipe(&mut self, id: u64) {
        self.put_files(id, BTreeMap::new());
    }

    /// Keeps only the file with the directory's owner.
    pub(crate) fn keep_identity(&mut self, id: u64) {
        self.nodes.get_mut(&id).unwrap().files.retain(|file, _| *file == File::Identity);
    }

    pub(crate) fn files(&self, id: u64) -> BTreeMap<File, Vec<u8>> {
        self.nodes[&id].files.clone()
    }

    pub(crate) fn put_files(&mut self, id: u64, files: BTreeMap<File, Vec<u8>>) {
        self.nodes.get_mut(&id).unwrap().files = files;
    }

    pub(crate) fn change_config(&mut self, id: u64, change: impl FnOnce(&mut ReplicaConfig)) {
        change(&mut self.nodes.get_mut(&id).unwrap().config);
    }

    fn ids(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    /// Brings the links between two nodes up, or breaks them.
    pub(crate) fn link(&mut self, a: u64, b: u64, is_up: bool) {
        let now = self.now;
        let generation = u64::from(self.nodes[&a].life + self.nodes[&b].life);
        for (one, peer) in [(a, b), (b, a)] {
            for lane in [Lane::Prompt, Lane::Bulk] {
                if let Some(replica) = &mut self.nodes.get_mut(&one).unwrap().replica {
                    let link = Link { peer, lane, generation };
                    if is_up { replica.link_up(now, link) } else { replica.link_broken(now, link) }
                }
            }
        }
        [a, b].into_iter().for_each(|id| self.drive(id));
    }

    fn schedule(&mut self, after: Nanos, what: What) {
        let way = match &what {
            What::Datagram { from, to, .. } => Some((*from, *to)),
            What::Message { from, to, .. } => Some((member(*from).address, member(*to).address)),
            What::Persisted { .. } => None,
        };
        if way.is_some_and(|(from, to)| self.cut.as_ref().is_some_and(|is_cut| is_cut(from, to))) {
            return;
        }
        self.order += 1;
        let at = self.now + after;
        let slow = match &what {
            What::Datagram { to, .. } => self.slow.iter().find(|(id, _)| member(**id).address == *to),
            _ => None,
        };
        let at = slow.map_or(at, |(_, turn)| at.next_multiple_of(*turn));
        self.queue.push(std::cmp::Reverse((at, self.order, what)));
    }

    fn timed(&mut self, id: u64, what: &'static str, call: impl FnOnce(&mut Replica)) {
        if let Some(replica) = &mut self.nodes.get_mut(&id).unwrap().replica {
            let begun = processor_time();
            call(replica);
            self.longest = self.longest.max((processor_time() - begun, what));
        }
    }

    /// A turn of a replica's driver.
    fn drive(&mut self, id: u64) {
        let now = self.now;
        let peers = self.ids();
        let lives: BTreeMap<u64, u32> = self.nodes.iter().map(|(id, node)| (*id, node.life)).collect();
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let Some(replica) = &mut node.replica else { return };
        let mut all = Vec::new();
        while let Some(event) = replica.poll_event() {
            self.events.push((now, id, event));
        }
        while let Some(batch) = replica.poll_persist() {
            let after = self.slow_disks.get(&id).copied().unwrap_or(DISK);
            all.push((after, What::Persisted { id, batch: batch.id, life: node.life }));
            node.unsafe_batches.push_back(batch);
        }
        let mut buffer = Vec::new();
        let from = member(id).address;
        while let Some(to) = replica.poll_transmit(now, &mut buffer).or_else(|| replica.poll_direct(&mut buffer)) {
            all.push((NETWORK, What::Datagram { from, to, bytes: buffer.clone() }));
        }
        for peer in peers.into_iter().filter(|peer| *peer != id) {
            for lane in [Lane::Prompt, Lane::Bulk] {
                let link = Link { peer, lane, generation: u64::from(lives[&id] + lives[&peer]) };
                while replica.poll_message(now, link, &mut buffer) {
                    let messages = match &mut self.mischief {
                        Some(mischief) if lane == Lane::Bulk => mischief(buffer.clone()),
                        _ => vec![buffer.clone()],
                    };
                    let delay = self.delay.as_ref().filter(|_| lane == Lane::Prompt);
                    let after = NETWORK + delay.map_or(0, |delay| delay(id, peer, &buffer));
                    let message = |bytes| (after, What::Message { from: id, to: peer, lane, bytes });
                    all.extend(messages.into_iter().map(message));
                }
            }
        }
        all.into_iter().for_each(|(after, what)| self.schedule(after, what));
    }

    pub(crate) fn run(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.step(end) {}
    }

    fn step(&mut self, end: Nanos) -> bool {
        let due = |node: &Node| node.replica.as_ref().and_then(Replica::poll_timeout);
        let timer = self.nodes.iter().filter_map(|(id, node)| Some((due(node)?, *id))).min();
        let event = self.queue.peek().map(|next| next.0.0);
        let next = timer.map_or(u64::MAX, |(at, _)| at).min(event.unwrap_or(u64::MAX));
        if next > end {
            self.now = end;
            return false;
        }
        self.now = self.now.max(next);
        let now = self.now;
        match timer {
            Some((at, id)) if event.is_none_or(|event| at <= event) => {
                self.timed(id, "a timeout", |replica| replica.handle_timeout(now));
                self.drive(id);
            }
            _ => {
                if let Some(std::cmp::Reverse((_, _, what))) = self.queue.pop() {
                    self.happen(what);
                }
            }
        }
        true
    }

    fn happen(&mut self, what: What) {
        let now = self.now;
        match what {
            What::Datagram { from, to, bytes } => self.datagram(from, to, bytes),
            What::Message { from, to, lane, bytes } => {
                let generation = u64::from(self.nodes[&from].life + self.nodes[&to].life);
                let link = Link { peer: from, lane, generation };
                self.timed(to, "a message", |replica| replica.handle_message(now, link, &bytes));
                self.drive(to);
            }
            What::Persisted { id, batch, life } => {
                let node = self.nodes.get_mut(&id).unwrap();
                if node.life == life && node.replica.is_some() {
                    while let Some(safe) = node.unsafe_batches.pop_front_if(|safe| safe.id <= batch) {
                        safe.changes.into_iter().for_each(|change| write(&mut node.files, change));
                        *self.batches.entry(id).or_default() += 1;
                    }
                    self.timed(id, "the disk", |replica| replica.persisted(now, batch));
                }
                self.drive(id);
            }
        }
    }

    fn datagram(&mut self, from: SocketAddr, to: SocketAddr, mut bytes: Vec<u8>) {
        let now = self.now;
        if let Some(engine) = self.switches.get_mut(&to) {
            let Some(engine) = engine else { return };
            let mut out = Out::new();
            let came = bytes.clone();
            engine.take(now, from, &mut bytes, &mut out);
            if out.is_genuine() {
                self.known.insert((to, from), now);
            }
            let owed: Vec<_> = out.all(&bytes).map(|(to, bytes)| (to, bytes.to_vec())).collect();
            for (receiver, bytes) in owed {
                self.replies.note(&came, &bytes);
                self.schedule(NETWORK, What::Datagram { from: to, to: receiver, bytes });
            }
        } else if to == user() {
            match parse(&bytes) {
                Ok(Packet::ReadReply(reply, _, _, value) | Packet::WriteReply(reply, _, value)) => {
                    self.answers.push(Answer { from, reply: *reply, value: value.to_vec() });
                }
                other => panic!("the user got {other:?}"),
            }
        } else if let Some(id) = self.ids().into_iter().find(|&id| member(id).address == to) {
            self.timed(id, "a datagram", |replica| replica.handle(now, from, &bytes));
            self.drive(id);
        }
    }

    pub(crate) fn replica(&mut self, id: u64) -> &mut Replica {
        self.nodes.get_mut(&id).unwrap().replica.as_mut().unwrap()
    }

    pub(crate) fn status(&self, id: u64) -> StatusReport {
        self.nodes[&id].replica.as_ref().unwrap().status(self.now)
    }

    pub(crate) fn leader(&self) -> Option<u64> {
        let leads =
            |node: &&Node| node.replica.as_ref().is_some_and(|replica| replica.status(self.now).session.is_some());
        self.nodes.values().find(leads).map(|node| node.config.id)
    }

    /// Calls a replica's function, then its driver.
    pub(crate) fn call<T>(&mut self, id: u64, call: impl FnOnce(&mut Replica, Nanos) -> T) -> T {
        let now = self.now;
        let result = call(self.replica(id), now);
        self.drive(id);
        result
    }

    /// Sends a datagram with a forged sender.
    pub(crate) fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.schedule(NETWORK, What::Datagram { from, to, bytes });
    }
}

fn new_set(incarnation: u64, policy: Policy) -> NewSet {
    NewSet {
        number: SET,
        incarnation,
        lease_ns: midflight_store::replica::Timing::default().session_lease,
        kgroup_bits: KGROUP_BITS,
        reply_check: ReplyCheck::Strict,
        policy,
        replicas: (1..=5).map(|id| member(id).address).collect(),
    }
}

fn write(files: &mut BTreeMap<File, Vec<u8>>, change: Change) {
    match change {
        Change::Append { file, bytes } => files.entry(file).or_default().extend(bytes),
        Change::Replace { file, bytes } => drop(files.insert(file, bytes)),
        Change::Remove { file } => drop(files.remove(&file)),
    }
}
