//! The Raft node: raft-rs with a clock instead of ticks.
//!
//! A stopped process fires all its missed ticks at once, so ticks cannot measure a promise or a lease. `tick` is never called; elections,
//! heartbeats and the leader's lease have their own times. The lease comes from ReadIndex rounds: each heartbeat carries its send time,
//! and raft-rs reports when a quorum (of both halves of a joint configuration) has answered it.

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

/// Never used, but must be valid.
const TICKS: usize = 10;
const MESSAGE_BYTES: u64 = 1 << 20;
const MESSAGES_IN_FLIGHT: usize = 256;

pub(super) struct Node {
    raw: RawNode<Log>,
    timing: Timing,
    random: Pcg32,
    /// Its position in the set. Each position waits a little longer before it campaigns, so the first does so first.
    slot: u8,
    /// No vote and no campaign before this time.
    promise: Nanos,
    election: Nanos,
    leadership: Option<Leadership>,
    heartbeat: Nanos,
    to_disk: VecDeque<Persist>,
    unsafe_batches: VecDeque<Batch>,
    /// Highest term on disk.
    safe_term: u64,
    outbox: Vec<Message>,
    /// The leader's snapshot, once it is durable.
    restored: Option<Snapshot>,
    handed: u64,
    applied: u64,
    /// Unapplied entries: the last one of each turn, and when it came.
    appended: VecDeque<(u64, Nanos)>,
}

#[derive(Clone, Copy, Debug)]
struct Leadership {
    since: Nanos,
    /// Send time of the last round that a quorum answered.
    confirmed: Nanos,
    /// The deadline of a hand-over. Once set, the leader takes no lease in this term.
    handing_over: Option<Nanos>,
    round: Nanos,
    /// Whether a round that counts was sent: raft-rs counts answers only after an entry of this term is committed.
    has_asked: bool,
    slow_disk: SlowDisk,
}

struct Batch {
    id: u64,
    since: Nanos,
    last: Option<u64>,
    /// When its last entry was committed without this disk.
    elsewhere: Option<Nanos>,
    ready: u64,
    term: u64,
    /// Sent once the batch is durable.
    messages: Vec<Message>,
    snapshot: Option<Snapshot>,
}

#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) committed: Vec<Entry>,
    /// Replaces the applied state, before `committed`.
    pub(super) snapshot: Option<Snapshot>,
}

impl Node {
    /// Restores a node from its disk. It may have promised not to vote before the restart.
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
            // Lease holders learn the commit index from what the leader shows.
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

    /// Its place among the members, which staggers elections.
    pub(super) fn set_position(&mut self, slot: u8) {
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

    /// The index up to which a member's durable log matches the leader's. For the leader itself the end of its log, because it serves
    /// what it has applied, durable or not.
    pub(super) fn matched(&self, id: u64) -> u64 {
        if id == self.raw.raft.id && self.is_leader() {
            return self.last_index();
        }
        self.raw.raft.prs().get(id).map_or(0, |progress| progress.matched)
    }

    pub(super) fn persisted_index(&self) -> u64 {
        self.raw.raft.raft_log.persisted
    }

    pub(super) fn leads_since(&self) -> Option<Nanos> {
        self.leadership.map(|leadership| leadership.since)
    }

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

    pub(super) fn unsafe_bytes(&self) -> usize {
        self.raw.store().unsafe_bytes()
    }

    pub(super) fn propose(&mut self, data: Vec<u8>) -> Option<u64> {
        // A follower would forward the proposal, and it would be appended without a SEQ.
        if !self.is_leader() || self.raw.propose(Vec::new(), data).is_err() {
            return None;
        }
        Some(self.last_index())
    }

    pub(super) fn propose_change(&mut self, context: Vec<u8>, change: ConfChangeV2) -> Option<u64> {
        if planted(183) {
            self.raw.raft.pending_conf_index = 0;
        }
        if !self.is_leader() || self.raw.raft.has_pending_conf() {
            return None;
        }
        self.raw.propose_conf_change(context, change).ok().map(|()| self.last_index())
    }

    pub(super) fn has_pending_change(&self) -> bool {
        self.raw.raft.has_pending_conf()
    }

    pub(super) fn has_applied_former_terms(&self) -> bool {
        self.raw.raft.apply_to_current_term()
    }

    pub(super) fn apply_change(&mut self, change: &ConfChangeV2) -> raft::Result<ConfState> {
        self.raw.apply_conf_change(change)
    }

    /// Hands leadership over, and drops the lease. Returns whether raft-rs tries it.
    pub(super) fn transfer(&mut self, now: Nanos, to: u64) -> bool {
        let Some(leadership) = &mut self.leadership else { return false };
        self.raw.transfer_leader(to);
        let is_tried = self.raw.raft.lead_transferee == Some(to);
        if is_tried {
            leadership.handing_over = Some(now + self.timing.promise);
        }
        is_tried
    }

    pub(super) fn is_handing_over(&self) -> bool {
        self.leadership.is_some_and(|leadership| leadership.handing_over.is_some())
    }

    /// Whether no majority has answered for so long that another replica should lead. A new leader gets more time, because its first
    /// round waits for disks.
    pub(super) fn has_lost_quorum(&self, now: Nanos) -> bool {
        self.leadership.is_some_and(|leadership| now >= self.loses_quorum(&leadership))
    }

    fn loses_quorum(&self, leadership: &Leadership) -> Nanos {
        match leadership.confirmed {
            0 => leadership.since + 2 * self.timing.promise,
            confirmed => confirmed + self.timing.leader_lease + SILENT_HEARTBEATS * self.timing.heartbeat,
        }
    }

    /// Resigns and asks `successor` to campaign at once, because replicas that still hear this leader would wait for their promise.
    pub(super) fn resign(&mut self, now: Nanos, successor: Option<u64>) {
        if let Some(to) = successor {
            let mut message = Message::default();
            message.set_msg_type(MessageType::MsgTimeoutNow);
            (message.from, message.to, message.term) = (self.raw.raft.id, to, self.term());
            self.outbox.push(message);
        }
        self.step_down(now);
    }

    pub(super) fn step_down(&mut self, now: Nanos) {
        let term = self.term();
        self.raw.raft.become_follower(term, INVALID_ID);
        self.leadership = None;
        self.wait_for_leader(now);
        self.election += 2 * self.timing.promise;
    }

    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index > self.last_index() { None } else { self.raw.raft.raft_log.term(index).ok() }
    }

    /// The caller knows that the log up to `index` is that of a leader which has committed `index`.
    pub(super) fn advance_commit(&mut self, index: u64) {
        if index <= self.last_index() {
            self.raw.raft.raft_log.commit_to(index);
        }
    }

    pub(super) fn applied(&mut self, index: u64) {
        self.applied = index;
        self.note_applied();
    }

    /// Reports when each turn's entries came, for entries applied up to `index`.
    pub(super) fn take_applied(&mut self, index: u64, mut took: impl FnMut(Nanos)) {
        while let Some((_, since)) = self.appended.pop_front_if(|(last, _)| *last <= index) {
            took(since);
        }
    }

    /// raft-rs hears of applied entries only once they are on this disk. Until then it delays the next change of the members, and does
    /// not campaign while a change seems unapplied.
    fn note_applied(&mut self) {
        let known = self.applied.min(self.persisted_index());
        if known > self.raw.raft.raft_log.applied {
            self.raw.advance_apply_to(known);
        }
    }

    fn wait_for_leader(&mut self, now: Nanos) {
        self.promise = now + self.timing.promise;
        let jitter = self.random.random_range(0..=self.timing.stagger / 4);
        let from = if planted(126) { now } else { self.promise };
        self.election = from + self.timing.stagger * Nanos::from(self.slot) + jitter;
    }

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

    /// Sends heartbeats to all. Their answers may confirm the lease and all earlier reads.
    pub(super) fn begin_round(&mut self, now: Nanos) {
        let Some(leadership) = &mut self.leadership else { return };
        leadership.round = now;
        leadership.has_asked |= self.raw.raft.commit_to_current_term();
        let has_asked = leadership.has_asked;
        if has_asked {
            self.raw.read_index(now.to_be_bytes().to_vec());
        }
        // A single voter needs no answers, but a learner must hear from it.
        if !has_asked || self.raw.raft.prs().is_singleton() {
            self.raw.ping();
        }
    }

    pub(super) fn wants_first_lease(&self) -> bool {
        self.leadership.is_some_and(|leadership| !leadership.has_asked) && self.raw.raft.commit_to_current_term()
    }

    pub(super) fn last_round(&self) -> Nanos {
        self.leadership.map_or(0, |leadership| leadership.round)
    }

    pub(super) fn timeout(&self) -> Nanos {
        let Some(leadership) = &self.leadership else { return self.election };
        let due = self.heartbeat.min(self.loses_quorum(leadership));
        leadership.handing_over.map_or(due, |end| due.min(end))
    }

    pub(super) fn stay_silent(&mut self, now: Nanos) {
        self.wait_for_leader(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        match self.leadership {
            Some(leadership) => self.tick_leader(now, leadership),
            None if now < self.election => {}
            // A non-member never campaigns: raft-rs would let it win alone.
            None if !self.raw.raft.promotable() => self.election = now + self.timing.promise,
            // The only member leads at once, so all its entries must be on disk.
            None if !self.unsafe_batches.is_empty() => self.election = now + self.timing.heartbeat,
            None => self.campaign(now),
        }
        self.note_role(now);
    }

    fn tick_leader(&mut self, now: Nanos, leadership: Leadership) {
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
        // Fails only if raft-rs must first apply a change of the members; the next election follows.
        let _ = self.raw.campaign();
    }

    /// Takes raft-rs's output for the disk, the network and the store. Call until it returns `None`.
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
            // An entry that changes the members follows only when the previous change is committed. A node that restarts with both must
            // know that, so the commit index goes with the next entries.
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

    /// Committed entries not handed out yet. raft-rs would wait for this disk; a majority of disks is enough.
    fn hand_out(&mut self) -> Vec<Entry> {
        let end = if planted(196) { self.last_index() } else { self.committed() };
        if self.handed >= end || self.has_snapshot_to_install() {
            return Vec::new();
        }
        let entries = self.raw.store().entries(self.handed + 1, end + 1, None);
        self.handed = end;
        entries.expect("the log keeps entries until they are applied")
    }

    /// Messages of a follower or candidate confirm what is on its disk, so they wait for it. An answer to a heartbeat confirms only the
    /// term.
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

    pub(super) fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.outbox)
    }

    pub(super) fn poll_persist(&mut self) -> Option<Persist> {
        self.to_disk.extend(self.raw.mut_store().poll_persist());
        self.to_disk.pop_front()
    }

    /// Messages to this peer may be lost.
    pub(super) fn unreachable(&mut self, peer: u64) {
        self.raw.report_unreachable(peer);
        if !planted(164) && self.raw.raft.prs().get(peer).is_some_and(|progress| progress.pending_snapshot != 0) {
            self.raw.report_snapshot(peer, raft::SnapshotStatus::Failure);
        }
    }

    /// Whether Raft has replaced its log by the leader's snapshot of this index.
    pub(super) fn has_taken(&self, index: u64) -> bool {
        self.raw.raft.snap().is_some_and(|snapshot| snapshot.get_metadata().index == index)
    }

    /// Takes the founding state as a leader's snapshot without a sender.
    pub(super) fn take_founding(&mut self, snapshot: Snapshot) {
        let mut message = Message { to: self.raw.raft.id, term: snapshot.get_metadata().term, ..Message::default() };
        message.set_msg_type(MessageType::MsgSnapshot);
        message.set_snapshot(snapshot);
        // Cannot fail: the message is neither local nor a response.
        let _ = self.raw.step(message);
    }

    pub(super) fn begin_snapshot(&mut self, index: u64) -> Option<Snapshot> {
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (index, self.term_at(index)?);
        metadata.set_conf_state(self.conf_state());
        self.raw.mut_store().begin_snapshot(metadata);
        Some(snapshot)
    }

    /// The first entry that, as far as the leader knows, one of these members lacks on disk.
    pub(super) fn needed(&self, members: impl Iterator<Item = u64>) -> u64 {
        members.map(|id| self.matched(id) + 1).min().unwrap_or(u64::MAX)
    }

    pub(super) fn learner(&self) -> Option<u64> {
        self.raw.raft.prs().conf().learners().iter().min().copied()
    }

    pub(super) fn conf_state(&self) -> ConfState {
        self.raw.raft.prs().conf().to_conf_state()
    }
}
