//! The Raft node: raft-rs, with time by a clock instead of ticks.
//!
//! raft-rs counts ticks. A process that was stopped fires all the ticks that it missed at once, so ticks can neither keep a promise
//! nor measure a lease. Here nobody calls `tick`: elections, heartbeats and the leader's lease have times of their own. The
//! lease comes from ReadIndex rounds: each heartbeat carries the time at which it was sent, and raft-rs says when a quorum (of both
//! halves of a joint configuration) has answered it.

mod received;
mod slow_disk;

pub(super) use received::Refused;

use super::config::{Mode, ReplicaConfig, Timing};
use super::switches::SILENT_HEARTBEATS;
use crate::log::Log;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Nanos, Persist};
use raft::eraftpb::MessageType;
use raft::prelude::{ConfChangeV2, ConfState, Entry, Message, Snapshot};
use raft::{INVALID_ID, RawNode, StateRole};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use slow_disk::SlowDisk;
use std::collections::VecDeque;

/// raft-rs counts these; they only have to be valid.
const TICKS: usize = 10;
/// Bytes of entries in one message.
const MESSAGE_BYTES: u64 = 1 << 20;
/// Messages with entries that may be under way to a follower.
const MESSAGES_IN_FLIGHT: usize = 256;

/// A Raft node with its log.
pub(super) struct Node {
    raw: RawNode<Log>,
    timing: Timing,
    random: Pcg32,
    /// Its place in the set: it decides who campaigns first.
    slot: u8,
    /// Until then it neither votes nor campaigns.
    promise: Nanos,
    /// Then it campaigns, unless it hears a leader.
    election: Nanos,
    leadership: Option<Leadership>,
    /// The leader's next heartbeat.
    heartbeat: Nanos,
    /// What the driver is to write.
    to_disk: VecDeque<Persist>,
    /// What waits for the disk, in order.
    unsafe_batches: VecDeque<Batch>,
    /// Term and vote that are on disk.
    safe_term: u64,
    outbox: Vec<Message>,
    /// What a snapshot of the leader says, once it is on disk.
    restored: Option<Snapshot>,
    /// The last entry that was handed out to be applied.
    handed: u64,
    /// The last entry that is applied.
    applied: u64,
    /// Of entries that are not applied: the last one of each turn, and when it came.
    appended: VecDeque<(u64, Nanos)>,
}

/// What a leader knows.
#[derive(Clone, Copy, Debug)]
struct Leadership {
    since: Nanos,
    /// When the last round was sent that a quorum answered.
    confirmed: Nanos,
    /// It hands over, or has tried to: it takes no lease in this term. Until when.
    handing_over: Option<Nanos>,
    /// When the last round was sent.
    round: Nanos,
    /// Whether one was sent whose answers count: raft-rs counts them once an entry of this term is committed.
    has_asked: bool,
    slow_disk: SlowDisk,
}

struct Batch {
    id: u64,
    /// When it was handed over.
    since: Nanos,
    /// The last entry in it.
    last: Option<u64>,
    /// When this entry was committed without this disk.
    elsewhere: Option<Nanos>,
    ready: u64,
    term: u64,
    /// They go when the batch is safe.
    messages: Vec<Message>,
    snapshot: Option<Snapshot>,
}

/// What came of a turn of the node.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// To apply, in order.
    pub(super) committed: Vec<Entry>,
    /// To take instead of all that was applied, before `committed`.
    pub(super) snapshot: Option<Snapshot>,
}

impl Node {
    /// A node with what its disk holds. Whatever it was before, it has promised not to vote.
    pub(super) fn new(config: &ReplicaConfig, log: Log, applied: u64, slot: u8, now: Nanos) -> raft::Result<Self> {
        let timing = config.timing;
        let raft_config = raft::Config {
            id: config.id,
            election_tick: TICKS,
            heartbeat_tick: 1,
            applied,
            max_size_per_msg: MESSAGE_BYTES,
            max_inflight_msgs: MESSAGES_IN_FLIGHT,
            pre_vote: true,
            max_uncommitted_size: config.unsafe_bytes as u64,
            // Holders of leases hear it with what the leader shows.
            skip_bcast_commit: config.mode == Mode::FollowerLease,
            ..raft::Config::default()
        };
        let raw = RawNode::new(&raft_config, log, &slog::Logger::root(slog::Discard, slog::o!()))?;
        let mut node = Self {
            safe_term: raw.raft.term,
            raw,
            timing,
            random: Pcg32::seed_from_u64(config.seed),
            slot,
            promise: now + timing.promise,
            election: 0,
            leadership: None,
            heartbeat: now,
            to_disk: VecDeque::new(),
            unsafe_batches: VecDeque::new(),
            outbox: Vec::new(),
            restored: None,
            handed: applied,
            applied,
            appended: VecDeque::new(),
        };
        node.wait_for_leader(now);
        Ok(node)
    }

    pub(super) fn set_slot(&mut self, slot: u8) {
        self.slot = slot;
    }

    pub(super) fn term(&self) -> u64 {
        self.raw.raft.term
    }

    pub(super) fn leader(&self) -> Option<u64> {
        Some(self.raw.raft.leader_id).filter(|&id| id != INVALID_ID)
    }

    pub(super) fn is_leader(&self) -> bool {
        self.leadership.is_some()
    }

    pub(super) fn committed(&self) -> u64 {
        self.raw.raft.raft_log.committed
    }

    pub(super) fn last_index(&self) -> u64 {
        self.raw.raft.raft_log.last_index()
    }

    pub(super) fn log(&self) -> &Log {
        self.raw.store()
    }

    pub(super) fn log_mut(&mut self) -> &mut Log {
        self.raw.mut_store()
    }

    /// The leader's log is that of a member up to this index, and on the member's disk. Its own is it to the end: it serves what it has
    /// applied, wherever that is on disk.
    pub(super) fn matched(&self, id: u64) -> u64 {
        if id == self.raw.raft.id && self.is_leader() {
            return self.last_index();
        }
        self.raw.raft.prs().get(id).map_or(0, |progress| progress.matched)
    }

    /// The last entry of its log that is on its disk, with all before.
    pub(super) fn persisted_index(&self) -> u64 {
        self.raw.raft.raft_log.persisted
    }

    /// When it became the leader.
    pub(super) fn leads_since(&self) -> Option<Nanos> {
        self.leadership.map(|leadership| leadership.since)
    }

    /// When the last round was sent that a quorum answered.
    pub(super) fn confirmed(&self) -> Nanos {
        self.leadership.map_or(0, |leadership| leadership.confirmed)
    }

    /// Whether no other node can lead now.
    pub(super) fn has_lease(&self, now: Nanos) -> bool {
        self.leadership.is_some_and(|leadership| {
            leadership.handing_over.is_none()
                && leadership.confirmed > 0
                && now < leadership.confirmed + self.timing.leader_lease
        })
    }

    /// Bytes that wait for the disk.
    pub(super) fn unsafe_bytes(&self) -> usize {
        self.raw.store().unsafe_bytes()
    }

    /// Appends an entry to the leader's log; `None` where that cannot be now.
    pub(super) fn propose(&mut self, data: Vec<u8>) -> Option<u64> {
        // A follower would forward the proposal, and it would be appended below no SEQ.
        if !self.is_leader() || self.raw.propose(Vec::new(), data).is_err() {
            return None;
        }
        Some(self.last_index())
    }

    /// Appends a change of the members; `None` where that cannot be now.
    pub(super) fn propose_change(&mut self, context: Vec<u8>, change: ConfChangeV2) -> Option<u64> {
        if planted(183) {
            self.raw.raft.pending_conf_index = 0;
        }
        if !self.is_leader() || self.raw.raft.has_pending_conf() {
            return None;
        }
        self.raw.propose_conf_change(context, change).ok().map(|()| self.last_index())
    }

    /// Whether a change of the members is in the log that is not applied.
    pub(super) fn has_pending_change(&self) -> bool {
        self.raw.raft.has_pending_conf()
    }

    /// Whether all is applied that was committed before this leader's election.
    pub(super) fn has_applied_former_terms(&self) -> bool {
        self.raw.raft.apply_to_current_term()
    }

    /// A change of the members is applied.
    pub(super) fn apply_change(&mut self, change: &ConfChangeV2) -> raft::Result<ConfState> {
        self.raw.apply_conf_change(change)
    }

    /// Hands leadership over. From now on it has no lease. Returns whether raft-rs tries it.
    pub(super) fn transfer(&mut self, now: Nanos, to: u64) -> bool {
        let Some(leadership) = &mut self.leadership else { return false };
        self.raw.transfer_leader(to);
        let is_tried = self.raw.raft.lead_transferee == Some(to);
        if is_tried {
            leadership.handing_over = Some(now + self.timing.promise);
        }
        is_tried
    }

    /// Whether it hands leadership over.
    pub(super) fn is_handing_over(&self) -> bool {
        self.leadership.is_some_and(|leadership| leadership.handing_over.is_some())
    }

    /// Whether no majority has answered this leader for so long that another one should lead. A new leader has more time: its first
    /// round that counts waits for disks.
    pub(super) fn has_lost_quorum(&self, now: Nanos) -> bool {
        self.leadership.is_some_and(|leadership| now >= self.loses_quorum(&leadership))
    }

    fn loses_quorum(&self, leadership: &Leadership) -> Nanos {
        match leadership.confirmed {
            0 => leadership.since + 2 * self.timing.promise,
            confirmed => confirmed + self.timing.leader_lease + SILENT_HEARTBEATS * self.timing.heartbeat,
        }
    }

    /// Gives leadership up, and asks another one to campaign at once: whoever still hears this leader would wait for a promise. It has no
    /// lease, and takes none later in this term.
    pub(super) fn resign(&mut self, now: Nanos, heir: Option<u64>) {
        if let Some(to) = heir {
            let mut message = Message::default();
            message.set_msg_type(MessageType::MsgTimeoutNow);
            (message.from, message.to, message.term) = (self.raw.raft.id, to, self.term());
            self.outbox.push(message);
        }
        self.step_down(now);
    }

    /// Gives leadership up; campaigns again later than the others.
    pub(super) fn step_down(&mut self, now: Nanos) {
        let term = self.term();
        self.raw.raft.become_follower(term, INVALID_ID);
        self.leadership = None;
        self.wait_for_leader(now);
        self.election += 2 * self.timing.promise;
    }

    /// The term of an entry of the log.
    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index > self.last_index() { None } else { self.raw.raft.raft_log.term(index).ok() }
    }

    /// Its log is that of the leader of `term` up to `index`, and that leader has committed `index`. So it may commit it too.
    pub(super) fn advance_commit(&mut self, index: u64) {
        if index <= self.last_index() {
            self.raw.raft.raft_log.commit_to(index);
        }
    }

    /// What was committed is applied up to this index.
    pub(super) fn applied(&mut self, index: u64) {
        self.applied = index;
        self.note_applied();
    }

    /// When the entries came that are applied now.
    pub(super) fn take_applied(&mut self, index: u64, mut took: impl FnMut(Nanos)) {
        while let Some((_, since)) = self.appended.pop_front_if(|(last, _)| *last <= index) {
            took(since);
        }
    }

    /// raft-rs hears what is applied once it is on this disk too. Until then it holds back the next change of the members, and does not
    /// campaign with one that it takes for not applied.
    fn note_applied(&mut self) {
        let known = self.applied.min(self.persisted_index());
        if known > self.raw.raft.raft_log.applied {
            self.raw.advance_apply_to(known);
        }
    }

    /// A leader was heard: a promise, and a later election.
    fn wait_for_leader(&mut self, now: Nanos) {
        self.promise = now + self.timing.promise;
        let jitter = self.random.random_range(0..=self.timing.stagger / 4);
        let from = if planted(126) { now } else { self.promise };
        self.election = from + self.timing.stagger * Nanos::from(self.slot) + jitter;
    }

    /// After raft-rs has run: whether it has become the leader, or is none any more.
    fn note_role(&mut self, now: Nanos) {
        let leads = self.raw.raft.state == StateRole::Leader;
        if leads && self.leadership.is_none() {
            self.leadership = Some(Leadership {
                since: now,
                confirmed: 0,
                handing_over: None,
                round: 0,
                has_asked: false,
                slow_disk: SlowDisk::default(),
            });
            self.heartbeat = now;
        } else if !leads && self.leadership.is_some() {
            self.leadership = None;
            self.wait_for_leader(now);
        }
    }

    /// A heartbeat to all, whose answers may confirm the lease, and all reads that came before it.
    pub(super) fn begin_round(&mut self, now: Nanos) {
        let Some(leadership) = &mut self.leadership else { return };
        leadership.round = now;
        leadership.has_asked |= self.raw.raft.commit_to_current_term();
        let has_asked = leadership.has_asked;
        if has_asked {
            self.raw.read_index(now.to_be_bytes().to_vec());
        }
        // Who is alone asks nobody; but a new member, which has no vote yet, must hear of it.
        if !has_asked || self.raw.raft.prs().is_singleton() {
            self.raw.ping();
        }
    }

    /// Whether the leader can get its first lease now.
    pub(super) fn wants_first_lease(&self) -> bool {
        self.leadership.is_some_and(|leadership| !leadership.has_asked) && self.raw.raft.commit_to_current_term()
    }

    /// When the last round began.
    pub(super) fn last_round(&self) -> Nanos {
        self.leadership.map_or(0, |leadership| leadership.round)
    }

    /// When something must happen next.
    pub(super) fn timeout(&self) -> Nanos {
        let Some(leadership) = &self.leadership else { return self.election };
        let due = self.heartbeat.min(self.loses_quorum(leadership));
        leadership.handing_over.map_or(due, |end| due.min(end))
    }

    /// It takes no part before now.
    pub(super) fn stay_silent(&mut self, now: Nanos) {
        self.wait_for_leader(now);
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        match self.leadership {
            Some(leadership) => self.lead_on(now, leadership),
            None if now < self.election => {}
            // Who is not a member (yet, or any more) never campaigns: raft-rs would let it win alone.
            None if !self.raw.raft.promotable() => self.election = now + self.timing.promise,
            // The only member of a set leads at once: all that it has must be on disk.
            None if !self.unsafe_batches.is_empty() => self.election = now + self.timing.heartbeat,
            None => self.campaign(now),
        }
        self.note_role(now);
    }

    fn lead_on(&mut self, now: Nanos, leadership: Leadership) {
        let is_aborted = leadership.handing_over.is_some_and(|end| now >= end);
        if is_aborted && planted(128) {
            self.leadership = Some(Leadership { handing_over: None, ..leadership });
            self.raw.raft.abort_leader_transfer();
        } else if is_aborted {
            return self.step_down(now);
        }
        if now >= self.heartbeat {
            self.heartbeat = now + self.timing.heartbeat;
            self.begin_round(now);
        }
    }

    fn campaign(&mut self, now: Nanos) {
        let jitter = self.random.random_range(0..=self.timing.stagger);
        self.election = now + self.timing.promise / 2 + self.timing.stagger * Nanos::from(self.slot) + jitter;
        // It fails only where raft-rs has a change of the members to apply first; the next election comes.
        let _ = self.raw.campaign();
    }

    /// Takes what raft-rs has for the disk, the network and the store. Call it until it returns `None`.
    pub(super) fn turn(&mut self, now: Nanos) -> Option<Turn> {
        if let Some(snapshot) = self.restored.take() {
            self.handed = snapshot.get_metadata().index;
            return Some(Turn { committed: Vec::new(), snapshot: Some(snapshot) });
        }
        if !self.raw.has_ready() {
            let committed = self.hand_out();
            return (!committed.is_empty()).then_some(Turn { committed, snapshot: None });
        }
        let mut ready = self.raw.ready();
        for state in ready.take_read_states() {
            self.confirm(&state.request_ctx);
        }
        self.outbox.append(&mut ready.take_messages());
        let after_disk = ready.take_persisted_messages();
        let snapshot = Some(ready.snapshot().clone()).filter(|snapshot| !snapshot.is_empty());
        let (number, must_sync) = (ready.number(), ready.must_sync());
        let (hard_state, entries) = (ready.hs().cloned(), ready.take_entries());
        let log = self.raw.mut_store();
        match hard_state {
            Some(state) if must_sync => log.set_hard_state(&state),
            // An entry that changes the members follows only when the change before it is committed. Who restarts with both must know
            // that, so the index goes with the next entries.
            Some(state) if !planted(166) => log.set_commit(state.commit),
            _ => {}
        }
        if must_sync {
            snapshot.iter().for_each(|snapshot| log.install(snapshot.clone()));
            log.append(&entries);
        }
        let last = entries.last().map(|entry| entry.index);
        if let Some(last) = last {
            while self.appended.pop_back_if(|(index, _)| *index >= last).is_some() {}
            self.appended.push_back((last, now));
        }
        self.raw.advance_append_async(ready);
        self.send_after_disk(now, number, last, after_disk, snapshot);
        self.note_role(now);
        self.note_elsewhere(now);
        Some(Turn { committed: self.hand_out(), snapshot: None })
    }

    /// What is committed and was not handed out. raft-rs would hand out only what is on this disk too; a majority of disks is enough.
    fn hand_out(&mut self) -> Vec<Entry> {
        let end = if planted(196) { self.last_index() } else { self.committed() };
        if self.handed >= end || self.has_snapshot_to_take() {
            return Vec::new();
        }
        let entries = self.raw.store().entries(self.handed + 1, end + 1, None);
        self.handed = end;
        entries.expect("the log keeps entries until they are applied")
    }

    /// Messages of a follower or candidate say what its disk holds: they wait for it. An answer to a heartbeat says only the term.
    fn send_after_disk(
        &mut self,
        now: Nanos,
        ready: u64,
        last: Option<u64>,
        messages: Vec<Message>,
        snapshot: Option<Snapshot>,
    ) {
        let (at_once, later): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| {
            planted(161)
                || message.get_msg_type() == MessageType::MsgHeartbeatResponse && message.term == self.safe_term
        });
        self.outbox.extend(at_once);
        if let Some(batch) = self.raw.mut_store().poll_persist() {
            let (id, term) = (batch.id, self.term());
            self.to_disk.push_back(batch);
            let batch = Batch { id, since: now, last, elsewhere: None, ready, term, messages: later, snapshot };
            self.unsafe_batches.push_back(batch);
        } else if let Some(batch) = self.unsafe_batches.back_mut() {
            batch.ready = ready;
            batch.messages.extend(later);
        } else {
            self.outbox.extend(later);
            self.raw.on_persist_ready(ready);
        }
        if planted(195) && self.is_leader() {
            let last = self.raw.store().last_index();
            self.raw.raft.on_persist_entries(last, self.term());
        }
    }

    /// This batch and all before it are safe.
    pub(super) fn persisted(&mut self, now: Nanos, id: u64) {
        self.raw.mut_store().persisted(id);
        while self.unsafe_batches.front().is_some_and(|batch| batch.id <= id) {
            let Some(batch) = self.unsafe_batches.pop_front() else { break };
            self.note_persisted(now, &batch);
            self.safe_term = self.safe_term.max(batch.term);
            self.outbox.extend(batch.messages);
            self.raw.on_persist_ready(batch.ready);
            self.restored = batch.snapshot.or(self.restored.take());
        }
        self.note_applied();
        self.note_role(now);
    }

    fn confirm(&mut self, context: &[u8]) {
        let (Some(leadership), Ok(sent)) = (&mut self.leadership, context.try_into()) else { return };
        leadership.confirmed = leadership.confirmed.max(Nanos::from_be_bytes(sent));
    }

    /// Messages to peers.
    pub(super) fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.outbox)
    }

    /// The next batch for the disk.
    pub(super) fn poll_persist(&mut self) -> Option<Persist> {
        self.to_disk.extend(self.raw.mut_store().poll_persist());
        self.to_disk.pop_front()
    }

    /// A peer cannot be reached: what was sent to it may be lost.
    pub(super) fn unreachable(&mut self, peer: u64) {
        self.raw.report_unreachable(peer);
        if !planted(164) && self.raw.raft.prs().get(peer).is_some_and(|progress| progress.pending_snapshot != 0) {
            self.raw.report_snapshot(peer, raft::SnapshotStatus::Failure);
        }
    }

    /// Whether Raft has taken the leader's snapshot of this index, in the place of its log.
    pub(super) fn has_taken(&self, index: u64) -> bool {
        self.raw.raft.snap().is_some_and(|snapshot| snapshot.get_metadata().index == index)
    }

    /// The founding state of a new set: raft-rs takes it as a leader's snapshot, of nobody.
    pub(super) fn take_founding(&mut self, snapshot: Snapshot) {
        let mut message = Message { to: self.raw.raft.id, term: snapshot.get_metadata().term, ..Message::default() };
        message.set_msg_type(MessageType::MsgSnapshot);
        message.set_snapshot(snapshot);
        // It cannot fail: the message is neither local nor an answer.
        let _ = self.raw.step(message);
    }

    /// A snapshot of its own that begins now, of what was applied up to `index`.
    pub(super) fn begin_snapshot(&mut self, index: u64) -> Option<Snapshot> {
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (index, self.term_at(index)?);
        metadata.set_conf_state(self.conf_state());
        self.raw.mut_store().begin_snapshot(metadata);
        Some(snapshot)
    }

    /// The first entry that one of these members does not have on disk, as far as the leader knows.
    pub(super) fn needed(&self, members: impl Iterator<Item = u64>) -> u64 {
        members.map(|id| self.matched(id) + 1).min().unwrap_or(u64::MAX)
    }

    /// The member that has no vote yet.
    pub(super) fn learner(&self) -> Option<u64> {
        self.raw.raft.prs().conf().learners().iter().min().copied()
    }

    /// The present configuration.
    pub(super) fn conf_state(&self) -> ConfState {
        self.raw.raft.prs().conf().to_conf_state()
    }
}
