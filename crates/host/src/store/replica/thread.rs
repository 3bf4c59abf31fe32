//! The replica's thread: brings it datagrams, peer messages and completed disk writes, and carries out its requests.
//!
//! The clock counts suspension and is read after each receipt: a promise runs from then, and must not begin before the leader's message was
//! sent.

use super::orders::Waiting;
use super::{Published, Shared};
use crate::clock::{self, now_counting_suspension as now};
use crate::disk::{Disk, Report};
use crate::driver::lock;
use crate::links::{LinkEvent, Links};
use crate::socket::busy_poll::BusyPoll;
use crate::socket::{ReceiveBatch, SendQueue};
use midflight_endpoint::{Durable, Endpoint, Link, Linked, MS, Nanos, SECOND};
use midflight_store::replica::{Cut, Event, Refusal, Replica, ReplicaTimes, Times};
use midflight_wire::PACKET_MAX;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PUBLISH_EVERY: Nanos = 100 * MS;

/// At the end, longest wait until everything is durable.
const SEAL_PATIENCE: Nanos = 2 * SECOND;

/// Link events per turn, so that a busy peer cannot delay heartbeats.
const EVENTS_A_TURN: usize = 64;

pub(super) struct Parts {
    pub(super) replica: Replica,
    pub(super) disk: Disk,
    pub(super) links: Links,
    pub(super) orders: Waiting,
    pub(super) busy_poll: Duration,
}

pub(super) struct ReplicaThread {
    shared: Arc<Shared>,
    replica: Replica,
    disk: Disk,
    links: Links,
    orders: Waiting,
    busy_poll: BusyPoll,
    up: BTreeSet<Link>,
    peers: Vec<(u64, SocketAddr)>,
    sends: SendQueue,
    direct_sends: SendQueue,
    packet: Vec<u8>,
    message: Vec<u8>,
    /// Durations of syncs.
    syncs: Times,
    next_publish: Nanos,
}

impl ReplicaThread {
    pub(super) fn new(shared: Arc<Shared>, parts: Parts) -> Self {
        let Parts { replica, disk, links, orders, busy_poll } = parts;
        Self {
            shared,
            replica,
            disk,
            links,
            orders,
            busy_poll: BusyPoll::new(busy_poll),
            up: BTreeSet::new(),
            peers: Vec::new(),
            sends: SendQueue::default(),
            direct_sends: SendQueue::default(),
            packet: Vec::with_capacity(PACKET_MAX),
            message: Vec::new(),
            syncs: Times::default(),
            next_publish: 0,
        }
    }

    /// Runs until stopped; an error says why it ended early.
    pub(super) fn run(&mut self) -> Result<(), String> {
        // The default timer slack of 50 µs would prolong every sleep.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut batch = ReceiveBatch::new();
        while !self.shared.stop.load(Ordering::Acquire) {
            let due = self.due();
            let received = self.busy_poll.receive(due, || self.shared.socket.receive(&mut batch));
            let received_at = now();
            if received {
                self.replica.begin_turn(if batch.is_full() { self.shared.socket.waiting() } else { 0 });
            }
            for (from, datagram) in batch.iter() {
                self.replica.handle(received_at, from, datagram);
            }
            self.take_all()?;
            self.give_all();
            if !received && !self.busy_poll.is_polling() && !self.links.has_event() {
                let timeout = self.due().saturating_sub(now());
                self.shared.waker.wait(&self.shared.socket, Some(timeout));
            }
        }
        self.seal()
    }

    /// Writes the end of the log once everything is durable. With a slow disk it gives up, and the next start knows less.
    fn seal(&mut self) -> Result<(), String> {
        let end = now() + SEAL_PATIENCE;
        while !self.replica.is_safe() && now() < end {
            while let Some(batch) = self.replica.poll_persist() {
                self.disk.write(batch);
            }
            self.take_reports()?;
            self.shared.waker.wait(&self.shared.socket, Some(MS));
        }
        self.replica.seal();
        while let Some(batch) = self.replica.poll_persist() {
            self.disk.write(batch);
        }
        Ok(())
    }

    fn due(&self) -> Nanos {
        self.replica.poll_timeout().map_or(self.next_publish, |due| due.min(self.next_publish))
    }

    fn take_reports(&mut self) -> Result<(), String> {
        while let Some(report) = self.disk.report() {
            match report.map_err(|error| error.to_string())? {
                Report::Safe { id, sync } => {
                    sync.into_iter().for_each(|took| self.syncs.add(took.as_nanos() as Nanos));
                    self.replica.persisted(now(), id);
                }
                Report::Room(has_room) => self.replica.set_disk_room(now(), has_room),
            }
        }
        Ok(())
    }

    fn take_all(&mut self) -> Result<(), String> {
        self.take_reports()?;
        for _ in 0..EVENTS_A_TURN {
            let Some(event) = self.links.event() else { break };
            self.take_link_event(now(), event);
        }
        self.orders.begin(now(), &mut self.replica);
        if self.replica.poll_timeout().is_some_and(|due| due <= now()) {
            self.replica.handle_timeout(now());
        }
        while let Some(event) = self.replica.poll_event() {
            match event {
                Event::Failed(why) | Event::NotFounded(why) => return Err(why),
                Event::Leads(term) => tracing::info!("leads in term {term}"),
                Event::Follows => tracing::info!("leads no more"),
                Event::HandedOver(outcome) => self.orders.handed_over(outcome),
                Event::SlowDisk(to) => tracing::warn!(
                    "the disk of this replica is slower than those of the others: it hands leadership over to replica {to}. \
                     midflight_replica_fsync_seconds says how slow"
                ),
                Event::FullDisk(to) => tracing::warn!(
                    "the disk of this replica is full: it hands leadership over to replica {to}, whose disk has room"
                ),
                Event::Room(true) => tracing::info!("the disk has room again"),
                Event::Room(false) => tracing::error!(
                    "the disk of this replica is full: reads and deletes go on, and other writes while a majority of the disks has \
                     room. Free space on its file system"
                ),
                Event::Session(switch) => tracing::info!("a session at switch {switch} has begun"),
                Event::LeftBehind(id) => tracing::error!(
                    "the new member {id} has not caught up in time, and is removed: see why it is slow or not reached, then let \
                     another id join, with an empty directory"
                ),
                Event::Unlike(switch) => tracing::error!(
                    "switch {switch} has another session_lease or kgroup_bits for this set than this replica, which does not \
                     work with it: give all replicas and switches the same configuration"
                ),
                Event::Overtaken(switch) => tracing::warn!(
                    "switch {switch} has had a session of a later term than this leader's: it is not used until a replica of a later \
                     term leads, or the switch restarts"
                ),
                Event::LogCut(Cut { file, offset, bytes }) => tracing::warn!(
                    "the log ends in the middle of a batch, in {file:?} at byte {offset}: the {bytes} bytes behind that are cut off. A power \
                     cut leaves such an end, and nothing of it was acknowledged. If this machine had none, its disk has lost data: replace \
                     this replica. docs/store.md says how"
                ),
                Event::Founding(missing) => tracing::info!(
                    "the store has not begun: its first members found it together, and replicas {missing:?} have not come. Start each of \
                     them with --new"
                ),
                Event::Founded => tracing::info!("the store has begun: all its first members are there"),
                Event::Refused { peer, refusal: Refusal::OtherStore } => tracing::error!(
                    "replica {peer} has data of another store, which other disks have founded: they do not listen to each other. Start \
                     it with the data of this store, or this one with the data of that"
                ),
                Event::Refused { peer, refusal: Refusal::NoData } => tracing::error!(
                    "replica {peer} has no data, though this store has begun: it is not listened to. Start it with its data; if that is \
                     lost, remove it (midflight store members remove {peer}), and let another id join (--join)"
                ),
                Event::Contradicted { peer, commit, last } => tracing::error!(
                    "replica {peer} says, as the leader, that entries up to {commit} are committed, and this log ends at {last}: nothing is \
                     taken from it, and its connections are ended. Compare with what the other replicas say (midflight store status): the \
                     one that differs has other data than it had. docs/store.md says more"
                ),
                Event::Unreadable(peer) => tracing::error!(
                    "replica {peer} sends entries that this program cannot read: they are not taken. If it runs a newer version, use \
                     that for this replica too"
                ),
                Event::SnapshotRefused(peer, why) => {
                    tracing::error!("a snapshot of replica {peer} is not taken: {why}")
                }
                Event::Ended(link) => self.links.end(link),
                Event::Removed(by) => tracing::error!(
                    "this replica was removed from its set{}: it holds no part of the store any more, and serves nothing. Stop it. Its \
                     machine may come back under an id that was never used, with a data directory of its own (--join)",
                    by.map_or(String::new(), |peer| format!(", as replica {peer} says"))
                ),
                Event::UnlikePeer { peer, name, ours, theirs } => tracing::error!(
                    "replica {peer} was started with {name} = {theirs}, this one with {ours}: they do not listen to each other. All \
                     replicas of a set must have the same: start the one that is wrong with the value of all others"
                ),
            }
        }
        Ok(())
    }

    fn take_link_event(&mut self, now: Nanos, event: LinkEvent) {
        match event {
            LinkEvent::Up(link) => {
                self.up.insert(link);
                self.replica.link_up(now, link);
            }
            LinkEvent::Broken(link) => {
                self.up.remove(&link);
                self.replica.link_broken(now, link);
            }
            LinkEvent::Message(link, message) => self.replica.handle_message(now, link, &message),
        }
    }

    fn give_all(&mut self) {
        while let Some(batch) = self.replica.poll_persist() {
            self.disk.write(batch);
        }
        let peers = self.replica.peers();
        if peers != self.peers {
            self.links.set_peers(&peers);
            self.peers = peers;
        }
        let now = now();
        for &link in &self.up {
            while self.links.has_room(link) && self.replica.poll_message(now, link, &mut self.message) {
                self.links.send(link, &self.message);
            }
        }
        let socket = &self.shared.socket;
        while let Some(to) = self.replica.poll_transmit(now, &mut self.packet) {
            self.sends.push(socket, to, &self.packet);
        }
        self.sends.flush(socket);
        let direct = &self.shared.direct;
        while let Some(to) = self.replica.poll_direct(&mut self.packet) {
            self.direct_sends.push(direct, to, &self.packet);
        }
        self.direct_sends.flush(direct);
        self.shared.turned.store(clock::now(), Ordering::Relaxed);
        if now >= self.next_publish {
            self.next_publish = now + PUBLISH_EVERY;
            let (status, counters) = (self.replica.status(now), *self.replica.counters());
            let times = ReplicaTimes { sync: self.syncs, ..*self.replica.times() };
            *lock(&self.shared.published) = Published { status, counters, times, links: self.links.counters() };
        }
    }
}
