//! A replica: Raft, the store, and what connects them with the switch.
//!
//! - `node`: Raft with times by a clock: promises, elections, the leader's lease;
//! - `state`, of `store` and `clients`: what the log's entries (`entry`) add up to; `image`: its snapshots, in parts; `snapshots`: when they are made;
//! - `transfer`: snapshots on their way to replicas that are far behind; `letters`: what replicas say to each other;
//! - `hand_over`: leadership that moves to another replica;
//! - `session`: a leader's sessions with switches, and the fencing of earlier ones; `switches`: what it knows of them; `presence`: what
//!   switches hear of other replicas;
//! - `datagrams`: what comes from switches; `writes` and `reads`: what a leader, and any replica, does with requests; `replies`: which way answers to READs go;
//!   `balance`: how many READs each replica gets; `seqs`: what its replies say of the last write;
//! - `room`: what goes on where disks are full; `times`: how long all that takes;
//! - `founding`: how a set begins;
//! - `read_index` and `leases`: two other ways for followers to serve reads.
//!
//! [`Replica`] puts them together: an endpoint without I/O, with a disk ([`midflight_endpoint::Durable`]) and links to its peers
//! ([`midflight_endpoint::Linked`]).

mod balance;
mod clients;
mod config;
mod counters;
mod datagrams;
mod drive;
mod entry;
mod founding;
mod hand_over;
mod image;
mod leases;
mod letters;
mod members;
mod node;
mod packets;
mod presence;
mod read_index;
mod reads;
mod replies;
mod room;
mod seqs;
mod session;
mod snapshots;
mod state;
mod status;
mod store;
mod succession;
mod switches;
mod times;
mod transfer;
mod writes;

pub use config::{ConfigError, Member, Mode, ReplicaConfig, Timing};
pub use counters::Counters;
pub use founding::Refusal;
pub use hand_over::HAND_OVER_PROMISES;
pub use image::SnapshotError;
pub use members::{ChangeError, HandOverError};
pub use status::{Role, StatusReport};
pub use times::{ReplicaTimes, TIME_BUCKETS, Times};

pub use crate::log::Cut;
use crate::log::{Identity, Log, LogError};
use counters::Counters as Counts;
use founding::Founding;
use image::Image;
use letters::Letter;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{File, Lane, Link, MS, Nanos};
use midflight_wire::reads::NO_SLOT;
use node::Node;
use raft::eraftpb::MessageType;
use raft::prelude::Entry;
use raft::prelude::Message;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use reads::Reads;
use replies::Replies;
use session::{Datagrams, Sessions};
use state::State;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use writes::{Bounds, Refresh};

/// Entries that a snapshot has made needless, and that one turn frees.
const TRIMMED_AT_ONCE: usize = 4096;

/// A replica of a set.
pub struct Replica {
    config: ReplicaConfig,
    node: Node,
    state: State,
    applied: u64,
    seqs: seqs::Seqs,
    /// What is committed and not applied: holders of leases do not have it.
    to_apply: VecDeque<Entry>,
    /// What a leader does, while this replica is one.
    sessions: Option<Sessions>,
    /// What it says to switches while it does not lead.
    presence: presence::Presence,
    reads: Reads,
    read_index: read_index::ReadIndex,
    /// Where followers serve reads by leases.
    leases: Option<leases::Leases>,
    gauge: balance::Gauge,
    /// The newest snapshot.
    image: Option<Image>,
    snapshot: Option<snapshots::Snapshotting>,
    transfers: transfer::Transfers,
    /// Something is left to do that one turn has not done, as it would have stopped the replica for too long.
    has_work: bool,
    /// Bytes of entries applied since the last snapshot.
    log_bytes: usize,
    /// A member has come: it takes no snapshot that does not name it.
    wants_snapshot: bool,
    /// Whose time went from `State::time` on, and since when: the store's time, in which clients are idle.
    time_since: Nanos,
    hand_over: Option<hand_over::HandOver>,
    /// What a leader knows of changes of the members.
    changes: members::Changes,
    /// Its set has not begun.
    founding: Option<Founding>,
    /// It was a member, and has been removed.
    has_left: bool,
    /// Its members have changed: peers are told.
    wants_announcement: bool,
    /// When each peer was heard last.
    heard: BTreeMap<u64, Nanos>,
    next_beat: Nanos,
    /// Its last turn.
    now: Nanos,
    links: drive::Links,
    /// Switches that have been found to be configured otherwise; at most as many as the configuration names.
    unlike: BTreeSet<SocketAddr>,
    /// To switches.
    out: Datagrams,
    /// To clients: answers that do not pass the switch.
    direct: Datagrams,
    events: VecDeque<Event>,
    counters: Counts,
    times: ReplicaTimes,
    room: room::Room,
}

/// What a driver should know, or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It leads, in this term.
    Leads(u64),
    /// It leads no more.
    Follows,
    /// What has come of [`Replica::transfer`].
    HandedOver(Result<(), HandOverError>),
    /// A session has begun at this switch.
    Session(SocketAddr),
    /// This switch has another lease of sessions, or another number of key groups, than this replica: it is not worked with.
    Unlike(SocketAddr),
    /// This switch has had a session of a leader of a later term than this one's: it is not worked with.
    Overtaken(SocketAddr),
    /// Its disk is slower than the others': it hands leadership over to this replica.
    SlowDisk(u64),
    /// Its disk is full: it hands leadership over to this replica, whose disk has room.
    FullDisk(u64),
    /// Whether its disk has room, which it had not before, or had.
    Room(bool),
    /// This peer was started with another value of a setting that all replicas must have in common: it is not listened to.
    UnlikePeer {
        /// Its id.
        peer: u64,
        /// The setting.
        name: &'static str,
        /// Its value here.
        ours: String,
        /// Its value there.
        theirs: String,
    },
    /// The leader removes this new member, which has not caught up in time.
    LeftBehind(u64),
    /// Its log ended in the middle of a batch, and what was there of it is cut off: a power cut leaves that. A file that has lost its end
    /// may look like that, too.
    LogCut(Cut),
    /// Its set has not begun: it waits for these first members.
    Founding(Vec<u64>),
    /// Its set has begun: all first members have the founding state.
    Founded,
    /// This peer is not listened to.
    Refused {
        /// Its id.
        peer: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A leader counts on more than this replica's log has: nothing is taken from it.
    Contradicted {
        /// Its id.
        peer: u64,
        /// What it says is committed.
        commit: u64,
        /// Where this log ends.
        last: u64,
    },
    /// This peer has sent entries, or a snapshot, that this program cannot read, and that are not taken.
    Unreadable(u64),
    /// This peer has sent a snapshot that is not taken, for this reason.
    SnapshotRefused(u64, SnapshotError),
    /// This link must end.
    Ended(Link),
    /// It was a member, and has been removed: a peer says so, or the log.
    Removed(Option<u64>),
    /// It has no data, and peers have: it takes no part, and the process must end with this message.
    NotFounded(String),
    /// It cannot go on: the process must end, with this message.
    Failed(String),
}

/// A replica cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its files are not usable.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It should have files, and has none.
    #[error(
        "there is no data of replica {0} here. If the store is new, say so (--new). If this replica has lost its data, it must not \
         come back under its id: have a member remove it, and let another id join (--join)"
    )]
    NoFiles(u64),
    /// Its snapshot is not usable.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Raft does not take what its files say.
    #[error("the log does not fit together: {0}")]
    Raft(#[from] raft::Error),
}

impl Replica {
    /// A replica with what its disk holds; without a file, a new one.
    ///
    /// # Errors
    /// Where it must not run: see [`StartError`].
    pub fn new(config: ReplicaConfig, files: Vec<(File, Vec<u8>)>, now: Nanos) -> Result<Self, StartError> {
        config.check()?;
        let identity = Identity { cluster: config.cluster, node: config.id, set: config.set };
        let drawn = Pcg64::seed_from_u64(config.seed).random();
        let mut recovered = Log::recover(identity, files, config.founders.get(&config.id).copied().unwrap_or(drawn))?;
        if recovered.log.is_void() && !config.initial.is_empty() {
            // Files without a state are what a crash leaves of the first batches: nothing was acknowledged. Or they are all that is left.
            if !config.founds {
                return Err(StartError::NoFiles(config.id));
            }
            if !config.founders.is_empty() {
                recovered.snapshot = Some(snapshots::found(&config, &mut recovered.log));
            }
        }
        let (state, applied) = match recovered.snapshot {
            Some(stored) => (snapshots::thaw(&config, &stored.parts)?, stored.snapshot.get_metadata().index),
            // Who founds is no member before all others do.
            None => (State { members: Vec::new(), ..State::new(&config) }, 0),
        };
        let first = if recovered.log.is_void() { &config.initial } else { &state.members };
        let founding = Founding::of(&recovered.log, config.id, first, &state.founders);
        if config.mode == Mode::Unreplicated && state.members.len() > 1 {
            return Err(ConfigError::Replicated(state.members.len()).into());
        }
        let image = (applied > 0).then(|| Image::of(&state, config.agreed(), applied));
        let slot = members::slot_of(&state.members, config.id);
        // Only members get data.
        let has_left = slot == NO_SLOT && applied > 0;
        let left = has_left.then_some(Event::Removed(None));
        let node = Node::new(&config, recovered.log, applied, slot, now)?;
        let mut seqs = seqs::Seqs::new(config.kgroup_bits);
        seqs.begin(&state.sessions);
        let uses_leases = config.mode == Mode::FollowerLease;
        Ok(Self {
            leases: uses_leases.then(|| leases::Leases::new(&config, node.last_index(), now)),
            read_index: read_index::ReadIndex::new(config.seed),
            node,
            state,
            applied,
            seqs,
            to_apply: VecDeque::new(),
            sessions: None,
            presence: presence::Presence::new(&config, now),
            reads: Reads::default(),
            gauge: balance::Gauge::default(),
            image,
            snapshot: None,
            transfers: transfer::Transfers::default(),
            has_work: false,
            log_bytes: 0,
            wants_snapshot: false,
            time_since: now,
            hand_over: None,
            changes: members::Changes::default(),
            founding,
            has_left,
            wants_announcement: false,
            heard: BTreeMap::new(),
            next_beat: now,
            now,
            links: drive::Links::default(),
            unlike: BTreeSet::new(),
            out: Datagrams::new(),
            direct: Datagrams::new(),
            events: recovered.cut.map(Event::LogCut).into_iter().chain(left).collect(),
            counters: Counts::default(),
            times: ReplicaTimes::default(),
            room: room::Room::default(),
            config,
        })
    }

    /// Its counts.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How long it took.
    #[must_use]
    pub fn times(&self) -> &ReplicaTimes {
        &self.times
    }

    /// The next answer that goes to a client directly, and to whom. A driver sends it by a socket of its own, which never waits: what is
    /// owed to clients that are gone must not hold up a leader's heartbeats.
    pub fn poll_direct(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        pop(&mut self.direct, buffer)
    }

    /// Whether all that its log has is safe on disk.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.node.log().is_safe()
    }

    /// Its driver ends it, and all is safe: one more batch says where the log ends, so that a shorter one is noticed at the next start.
    pub fn seal(&mut self) {
        self.node.log_mut().seal();
    }

    /// Begins a turn of the driver. `waiting`, the approximate number of datagrams left in the socket, is a part of this replica's load.
    pub fn begin_turn(&mut self, waiting: u64) {
        self.gauge.begin_turn(waiting);
    }

    /// Removes all data, between two sessions.
    ///
    /// # Errors
    /// Where this replica does not lead.
    pub fn flush(&mut self, now: Nanos) -> Result<(), ChangeError> {
        self.check_leads()?;
        if let Some(sessions) = &mut self.sessions {
            sessions.request_flush(now);
        }
        self.go_on(now);
        Ok(())
    }

    fn check_leads(&self) -> Result<(), ChangeError> {
        match self.sessions {
            Some(_) => Ok(()),
            None => Err(ChangeError::NotLeader { leader: self.node.leader() }),
        }
    }

    fn slot(&self) -> u8 {
        members::slot_of(&self.state.members, self.config.id)
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            waiting: self.config.waiting,
            unsafe_bytes: self.config.unsafe_bytes,
            has_room: self.majority_has_room(),
        }
    }

    /// The store's time, for the next entry of this leader.
    fn store_time(&self, now: Nanos) -> u64 {
        self.state.time + now.saturating_sub(self.time_since) / MS
    }

    /// A message of a peer.
    fn take_message(&mut self, now: Nanos, peer: u64, message: Message) {
        // The link says that the peer is of this store. It may be a member that this replica has not heard of, and even the leader.
        let is_stranger = planted(165) && self.state.members.iter().all(|member| member.id != peer);
        if message.from != peer || is_stranger {
            self.counters.foreign_messages += 1;
            return;
        }
        if self.state.members.iter().any(|member| member.id == peer) {
            self.heard.insert(peer, now);
        }
        let is_heartbeat = message.get_msg_type() == MessageType::MsgHeartbeat;
        let taken = self.node.check(now, &message).and_then(|()| {
            // Raft refuses what would leave a gap, and what a former leader sends.
            let may_append = message.index <= self.node.last_index() && message.term >= self.node.term();
            if let Some(leases) = self.leases.as_mut().filter(|_| may_append) {
                leases.held.revoke(&message);
            }
            self.node.step(now, message)
        });
        match taken {
            Ok(()) if is_heartbeat => {
                self.links.contradicting.remove(&peer);
                self.has_left &= self.slot() == NO_SLOT;
                self.ask_lease(now, peer);
            }
            Ok(()) => {}
            Err(node::Refused::Unfit) => self.counters.unfit_messages += 1,
            Err(node::Refused::Promised) => self.counters.promised += 1,
            Err(node::Refused::Foreign) => self.counters.foreign_messages += 1,
            Err(node::Refused::Unreadable) => {
                self.counters.unknown_entries += 1;
                if self.links.unreadable.insert(peer) {
                    self.events.push_back(Event::Unreadable(peer));
                }
            }
            Err(node::Refused::BeyondLog { commit }) => self.end_contradicted(now, peer, commit),
        }
    }

    /// A leader says that more is committed than this log has. Whether it lies, or this disk has lost what it had acknowledged, only
    /// an operator can tell: nothing of it is taken.
    fn end_contradicted(&mut self, now: Nanos, peer: u64, commit: u64) {
        self.counters.contradictions += 1;
        if self.links.contradicting.insert(peer) {
            self.events.push_back(Event::Contradicted { peer, commit, last: self.node.last_index() });
        }
        self.end_link(now, peer, Lane::Prompt);
    }

    fn fail(&mut self, why: impl Into<String>) {
        self.events.push_back(Event::Failed(why.into()));
    }

    /// After any input: lets Raft, sessions and queues go on until nothing is left to do now.
    fn go_on(&mut self, now: Nanos) {
        self.now = now;
        self.go_on_founding(now);
        loop {
            self.follow_role(now);
            let mut is_quiet = true;
            while let Some(turn) = self.node.turn(now) {
                is_quiet = false;
                self.take_turn(now, turn);
            }
            is_quiet &= !self.apply_committed(now);
            let slot = self.slot();
            if let Some(sessions) = &mut self.sessions {
                sessions.advance(now, &mut self.node, slot, &mut self.out);
                self.counters.sessions_moved += std::mem::take(&mut sessions.moves);
            }
            self.answer(now);
            let round = self.node.last_round();
            let wants_round = self.reads.wants_round(round) || self.read_index.wants_round(round);
            let wants_round = wants_round || self.node.wants_first_lease();
            if self.node.is_leader() && wants_round {
                self.node.begin_round(now);
                is_quiet = false;
            }
            if is_quiet {
                break;
            }
        }
        if self.sessions.as_ref().is_some_and(|sessions| sessions.may_begin(now, &self.node)) {
            self.beat(now);
        }
        self.show(now);
        self.answer_questions();
        self.ask_index(now);
        self.check_hand_over(now);
        self.check_transfers();
        self.step_snapshot(now);
        let may_trim = self.node.log_mut().trim(TRIMMED_AT_ONCE);
        let may_clear = self.state.store.clear_up();
        if std::mem::take(&mut self.wants_announcement) {
            self.announce();
        }
        self.has_work = may_trim || may_clear || self.may_write_part();
        self.send_messages();
    }

    /// Raft must hear of what is dropped: it waits for the answer to a snapshot as long as nobody says that it is lost.
    fn send_messages(&mut self) {
        let mut unreachable = BTreeSet::new();
        for message in self.node.take_messages() {
            let to = message.to;
            let is_sent = match message.get_msg_type() {
                MessageType::MsgSnapshot => self.send_snapshot(message),
                _ => self.links.queue(to, Lane::Prompt, Letter::Raft(message)),
            };
            if !is_sent {
                unreachable.insert(to);
            }
        }
        unreachable.into_iter().for_each(|peer| self.node.unreachable(peer));
    }

    fn follow_role(&mut self, now: Nanos) {
        match (self.node.is_leader(), &self.sessions) {
            (true, None) => {
                self.sessions = Some(Sessions::new(&self.config));
                let since = self.node.leads_since().unwrap_or(now);
                if let Some(leases) = &mut self.leases {
                    leases.leads(since, &self.config.timing);
                }
                self.changes.begin_leading();
                self.room.begin_leading();
                self.next_beat = now;
                self.time_since = now;
                self.counters.elections += 1;
                self.events.push_back(Event::Leads(self.node.term()));
            }
            (false, Some(_)) => {
                self.sessions = None;
                if let Some(leases) = &mut self.leases {
                    leases.follows(self.node.last_index());
                }
                self.events.push_back(Event::Follows);
            }
            _ => {}
        }
    }

    fn answer(&mut self, now: Nanos) {
        let (slot, bounds) = (self.slot(), self.bounds());
        if let Some(present) = self.sessions.as_mut().and_then(|sessions| sessions.present.as_mut()) {
            let name = present.name;
            let refresh = Refresh { epoch: epoch_of(name.incarnation), sid: name.sid, set: self.config.set };
            self.counters.refreshed +=
                present.writes.refresh(now, self.config.refresh_after, &refresh, &self.node, bounds);
            let (applied, node, state) = (self.applied, &self.node, &self.state);
            let answered = present.writes.answer(applied, slot, node, state, name.switch, &mut self.out);
            answered.into_iter().for_each(|(command, at)| self.times.wrote(command, now.saturating_sub(at)));
        }
        let confirmed = self.node.is_leader().then(|| self.node.confirmed());
        let applied = self.applied;
        let (reads, mut replies) = self.replies();
        reads.answer(now, applied, confirmed, &mut replies);
    }

    /// The reads that wait, and what answers to reads need.
    fn replies(&mut self) -> (&mut Reads, Replies<'_>) {
        let own = self.state.members.iter().find(|member| member.id == self.config.id);
        let replies = Replies {
            slot: own.map_or(NO_SLOT, |own| own.slot),
            own: own.map(|own| own.address),
            store: &self.state.store,
            seqs: &self.seqs,
            out: &mut self.out,
            direct: &mut self.direct,
            counters: &mut self.counters,
            times: &mut self.times,
        };
        (&mut self.reads, replies)
    }
}

/// The next datagram of a queue, and where it goes.
fn pop(queue: &mut Datagrams, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
    let (to, datagram) = queue.pop_front()?;
    buffer.clear();
    buffer.extend_from_slice(&datagram);
    Some(to)
}

/// What the switch stamps on packets to replicas: the low half of the incarnation, but never 0.
fn epoch_of(incarnation: u64) -> u32 {
    (incarnation as u32).max(1)
}
