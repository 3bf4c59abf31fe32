//! A replica: Raft, the store, and the protocol with the switch.
//!
//! - `node`: Raft with a clock: promises, elections, the leader's lease; `members`: member changes;
//! - `drive`: the turns of a replica; `from_peers`: links to peers and what their messages do; `peer_messages`: encoding of messages;
//! - `entry`, `state`, `store`, `item`, `updates`, `clients`: log entries, and the state that they add up to;
//! - `image`, `snapshots`, `transfer`: snapshots, when they are taken, and how they are sent; `backup`: a copy for an operator;
//! - `hand_over`, `succession`: moving leadership to another replica;
//! - `session`: a leader's sessions with switches, and fencing; `presence`: HELLOs of the other replicas; `switches`: which switches answer;
//! - `received`: datagrams from switches; `packets`: those to switches; `reads`, `writes`, `replies`: requests;
//! - `balance`: weights of replicas; `seqs`: the last write that replies report;
//! - `expiry`: keys that have expired; `room`: full disks; `times`: histograms; `founding`: how a set begins;
//! - `read_index`, `leases`: two other ways for followers to serve reads.
//!
//! [`Replica`] combines them: an endpoint without I/O, with a disk ([`midflight_endpoint::Durable`]) and links to its peers
//! ([`midflight_endpoint::Linked`]).

mod backup;
mod balance;
mod clients;
mod config;
mod counters;
mod drive;
mod entry;
mod expiry;
mod founding;
mod from_peers;
mod hand_over;
mod image;
mod item;
mod leases;
mod members;
mod node;
mod packets;
mod peer_messages;
mod presence;
mod read_index;
mod reads;
mod received;
mod replies;
mod room;
mod seqs;
mod session;
mod snapshots;
mod staged;
mod state;
mod status;
mod store;
mod succession;
mod switches;
mod times;
mod transactions;
mod transfer;
mod updates;
mod writes;

pub use backup::{Backup, BackupItem};
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
use midflight_endpoint::{File, Lane, Link, MS, Nanos};
use midflight_wire::store::NO_SLOT;
use node::Node;
use peer_messages::PeerMessage;
use raft::eraftpb::MessageType;
use raft::prelude::Entry;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use reads::Reads;
use replies::Replies;
use session::{Datagrams, Sessions};
use state::State;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use writes::{Bounds, Refresh};

/// Compacted entries freed in one turn.
const TRIMMED_AT_ONCE: usize = 4096;

/// A replica of a set.
pub struct Replica {
    config: ReplicaConfig,
    node: Node,
    state: State,
    applied: u64,
    seqs: seqs::Seqs,
    /// Committed entries that wait, because holders of leases do not have them.
    to_apply: VecDeque<Entry>,
    /// Only while this replica leads.
    sessions: Option<Sessions>,
    /// Only used while it does not lead.
    presence: presence::Presence,
    reads: Reads,
    read_index: read_index::ReadIndex,
    /// Only in mode `follower-lease`.
    leases: Option<leases::Leases>,
    gauge: balance::Gauge,
    /// Only used while this replica leads.
    expiry: expiry::Expiry,
    image: Option<Image>,
    snapshot: Option<snapshots::Snapshotting>,
    transfers: transfer::Transfers,
    /// Work is left that would have made one turn too long.
    has_work: bool,
    /// Bytes of entries applied since the last snapshot.
    log_bytes: usize,
    /// A member was added; it needs a snapshot that names it.
    wants_snapshot: bool,
    /// The local time at which `State::time` last changed. Their sum is the store's time, by which clients expire.
    time_since: Nanos,
    hand_over: Option<hand_over::HandOver>,
    changes: members::Changes,
    /// Set until the store has begun.
    founding: Option<Founding>,
    has_left: bool,
    /// Its members have changed, and peers must be told.
    wants_announcement: bool,
    heard: BTreeMap<u64, Nanos>,
    next_beat: Nanos,
    now: Nanos,
    links: from_peers::Links,
    /// Switches reported as configured differently; bounded by the configuration's switches.
    unlike: BTreeSet<SocketAddr>,
    /// To switches.
    out: Datagrams,
    /// Direct answers to clients.
    direct: Datagrams,
    events: VecDeque<Event>,
    counters: Counts,
    times: ReplicaTimes,
    room: room::Room,
}

/// What the driver must know or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It became the leader in this term.
    Leads(u64),
    /// It no longer leads.
    Follows,
    /// Outcome of [`Replica::transfer`].
    HandedOver(Result<(), HandOverError>),
    /// A session has begun at this switch.
    Session(SocketAddr),
    /// This switch has another session lease or number of key groups, so it is not used.
    Unlike(SocketAddr),
    /// This switch has had a session of a later term's leader, so it is not used.
    Overtaken(SocketAddr),
    /// Its disk is slow: it hands leadership over to this replica.
    SlowDisk(u64),
    /// Its disk is full: it hands leadership over to this replica, whose disk has room.
    FullDisk(u64),
    /// Its disk got room, or ran out of it.
    Room(bool),
    /// This peer has another value of a setting that all replicas must share, so it is ignored.
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
    /// The log ended inside a batch, which was cut off. A power failure leaves that, but so does a truncated file.
    LogCut(Cut),
    /// The set has not begun; it waits for these first members.
    Founding(Vec<u64>),
    /// The set has begun: all first members have the founding state.
    Founded,
    /// This peer is ignored.
    Refused {
        /// Its id.
        peer: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A leader's commit index is beyond this replica's log; its messages are refused.
    Contradicted {
        /// Its id.
        peer: u64,
        /// Its commit index.
        commit: u64,
        /// The last index of this log.
        last: u64,
    },
    /// This peer sent entries or a snapshot that this release cannot read; they were refused.
    Unreadable(u64),
    /// A snapshot of this peer was refused.
    SnapshotRefused(u64, SnapshotError),
    /// The driver must end this link.
    Ended(Link),
    /// The replica was removed, according to this peer or to the log.
    Removed(Option<u64>),
    /// The replica has no data, but its peers have. The process must end with this message.
    NotFounded(String),
    /// The replica cannot continue. The process must end with this message.
    Failed(String),
}

/// Why a replica cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Invalid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Unusable files.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its files are missing.
    #[error(
        "there is no data of replica {0} here. If the store is new, say so (--new). If this replica has lost its data, it must not \
         come back under its id: have a member remove it, and let another id join (--join)"
    )]
    NoFiles(u64),
    /// Unusable snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Raft rejects the files' content.
    #[error("the log does not fit together: {0}")]
    Raft(#[from] raft::Error),
}

impl Replica {
    /// Creates a replica from its disk; without files, a new one.
    ///
    /// # Errors
    /// Why it must not run.
    pub fn new(config: ReplicaConfig, files: Vec<(File, Vec<u8>)>, now: Nanos) -> Result<Self, StartError> {
        config.check()?;
        let identity = Identity { cluster: config.cluster, node: config.id, set: config.set };
        let drawn = Pcg64::seed_from_u64(config.seed).random();
        let mut recovered = Log::recover(identity, files, config.founders.get(&config.id).copied().unwrap_or(drawn))?;
        if recovered.log.is_blank() && !config.initial.is_empty() {
            // A crash in the first batches leaves files without a state, and nothing was acknowledged. But they may also be all that is
            // left.
            if !config.founds {
                return Err(StartError::NoFiles(config.id));
            }
            if !config.founders.is_empty() {
                recovered.snapshot = Some(snapshots::found(&config, &mut recovered.log));
            }
        }
        let (state, applied) = match recovered.snapshot {
            Some(stored) => (snapshots::thaw(&config, &stored.parts)?, stored.snapshot.get_metadata().index),
            // A founder is not a member before all others are.
            None => (State { members: Vec::new(), ..State::new(&config) }, 0),
        };
        let first = if recovered.log.is_blank() { &config.initial } else { &state.members };
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
            expiry: expiry::Expiry::new(config.seed),
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
            links: from_peers::Links::default(),
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

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The histograms.
    #[must_use]
    pub fn times(&self) -> &ReplicaTimes {
        &self.times
    }

    /// The next direct answer to a client. A driver sends it through a separate socket that never blocks, because absent clients must not
    /// delay a leader's heartbeats.
    pub fn poll_direct(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        pop(&mut self.direct, buffer)
    }

    /// Whether its log is durable.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.node.log().is_safe()
    }

    /// Before a planned stop, once all is durable: records the end of the log, so that the next start detects a shorter one.
    pub fn seal(&mut self) {
        self.node.log_mut().seal();
    }

    /// Begins a turn of the driver. `waiting` is the approximate number of datagrams left in the socket, a part of this replica's load.
    pub fn begin_turn(&mut self, waiting: u64) {
        self.gauge.begin_turn(waiting);
    }

    /// Removes all data, between two sessions.
    ///
    /// # Errors
    /// If this replica does not lead.
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
            waiting_max: self.config.waiting,
            unsafe_bytes_max: self.config.unsafe_bytes,
            has_room: self.majority_has_room(),
        }
    }

    /// The store's time, for this leader's next entry.
    fn store_time(&self, now: Nanos) -> u64 {
        self.state.time + now.saturating_sub(self.time_since) / MS
    }

    fn fail(&mut self, why: impl Into<String>) {
        self.events.push_back(Event::Failed(why.into()));
    }

    /// After any input: runs Raft, sessions and queues until nothing is left to do now.
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
        self.expire(now);
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

    /// Tells Raft what was dropped; otherwise it waits for the answer to a lost snapshot.
    fn send_messages(&mut self) {
        let mut unreachable = BTreeSet::new();
        for message in self.node.take_messages() {
            let to = message.to;
            let is_sent = match message.get_msg_type() {
                MessageType::MsgSnapshot => self.send_snapshot(message),
                _ => self.links.queue(to, Lane::Prompt, PeerMessage::Raft(message)),
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
                self.expiry.begin_leading();
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

    fn replies(&mut self) -> (&mut Reads, Replies<'_>) {
        let own = self.state.members.iter().find(|member| member.id == self.config.id);
        let replies = Replies {
            slot: own.map_or(NO_SLOT, |own| own.slot),
            own: own.map(|own| own.address),
            kgroup_bits: self.config.kgroup_bits,
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

fn pop(queue: &mut Datagrams, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
    let (to, datagram) = queue.pop_front()?;
    buffer.clear();
    buffer.extend_from_slice(&datagram);
    Some(to)
}

/// The switch's stamp on packets to replicas: the low half of the incarnation, but never 0.
fn epoch_of(incarnation: u64) -> u32 {
    (incarnation as u32).max(1)
}
