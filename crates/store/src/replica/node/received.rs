//! Filters peers' messages for raft-rs, which trusts its peers and panics if one contradicts it.

use super::super::entry::Record;
use super::super::members;
use super::Node;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use raft::StateRole;
use raft::eraftpb::MessageType;
use raft::prelude::{Entry, EntryType, Message};

/// Context of a vote during a hand-over; private in raft-rs.
const TRANSFER: &[u8] = b"CampaignTransfer";
/// The upper half of a SID is a term.
const TERM_MAX: u64 = u32::MAX as u64 / 2;
/// raft-rs adds to indexes.
const INDEX_MAX: u64 = u64::MAX / 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) enum Refused {
    /// The kind, recipient or sender is wrong.
    Foreign,
    /// A vote during this node's promise.
    Promised,
    /// Raft cannot take it now.
    Unfit,
    /// The leader's commit index is beyond this log.
    BeyondLog {
        /// The leader's commit index.
        commit: u64,
    },
    /// Entries of a newer version, or damaged ones.
    Unreadable,
}

impl Node {
    /// Whether a peer's message may be taken. Also applies the effects of its arrival.
    pub(in crate::replica) fn check(&mut self, now: Nanos, message: &Message) -> Result<(), Refused> {
        use MessageType::*;
        let kind = message.get_msg_type();
        if message.to != self.raw.raft.id {
            return Err(Refused::Foreign);
        }
        // raft-rs uses term 0 for its own messages. An election adds one to the term.
        let index = message.index.max(message.commit).max(message.reject_hint);
        if message.term == 0 || message.term > TERM_MAX || index > INDEX_MAX || self.is_unfit_now(message) {
            return Err(Refused::Unfit);
        }
        match kind {
            MsgAppend | MsgHeartbeat | MsgSnapshot => self.check_leader(now, message)?,
            MsgRequestVote | MsgRequestPreVote => {
                let is_bound = now < self.promise || self.has_lease(now);
                let is_bound = is_bound && message.get_context() != TRANSFER && !planted(125);
                // An empty log must not vote: if its data is lost, any log would look up to date.
                let is_blank = self.last_index() == 0 && !planted(189);
                if is_bound || is_blank {
                    return Err(Refused::Promised);
                }
            }
            MsgHeartbeatResponse => {
                let of_learner = planted(167) && self.learner() == Some(message.from);
                if of_learner || planted(169) && self.conf_state().voters.len() > 3 {
                    self.confirm(&message.context);
                }
            }
            MsgAppendResponse | MsgRequestVoteResponse | MsgRequestPreVoteResponse | MsgTimeoutNow => {}
            // raft-rs forwards these, or sends them to itself.
            _ => return Err(Refused::Foreign),
        }
        Ok(())
    }

    /// Takes a message that was checked.
    pub(in crate::replica) fn step(&mut self, now: Nanos, message: Message) -> Result<(), Refused> {
        let stepped = self.raw.step(message);
        self.note_role(now);
        stepped.map_err(|_| Refused::Unfit)
    }

    /// Whether no correct peer can send it now.
    fn is_unfit_now(&self, message: &Message) -> bool {
        let raft = &self.raw.raft;
        match message.get_msg_type() {
            // A leader that hands over waits until this node has the whole log. raft-rs would look for entries that the snapshot has
            // replaced.
            MessageType::MsgTimeoutNow => self.has_snapshot_to_install(),
            MessageType::MsgAppendResponse => message.term == self.term() && message.index > self.last_index(),
            // A candidate requests votes only after its log is on disk.
            MessageType::MsgRequestVoteResponse => {
                raft.state == StateRole::Candidate && raft.raft_log.persisted != self.last_index()
            }
            _ => false,
        }
    }

    pub(super) fn has_snapshot_to_install(&self) -> bool {
        self.restored.is_some() || self.unsafe_batches.iter().any(|batch| batch.snapshot.is_some())
    }

    /// Effects of a leader's message before raft-rs sees it: the promise, unless the term is past.
    fn check_leader(&mut self, now: Nanos, message: &Message) -> Result<(), Refused> {
        if message.term < self.term() {
            return Ok(());
        }
        // raft-rs would panic: a leader's commit index never exceeds what this node acknowledged.
        if message.get_msg_type() == MessageType::MsgHeartbeat && message.commit > self.last_index() {
            return Err(Refused::BeyondLog { commit: message.commit });
        }
        // Entries that cannot be applied must not be acknowledged, because they may be committed.
        if !message.entries.iter().all(is_readable) {
            return Err(Refused::Unreadable);
        }
        if !self.fits(message) {
            return Err(Refused::Unfit);
        }
        self.wait_for_leader(now);
        Ok(())
    }

    fn fits(&self, message: &Message) -> bool {
        if message.get_msg_type() == MessageType::MsgSnapshot {
            return fits_snapshot(message);
        }
        let (last, committed) = (self.last_index(), self.committed());
        let follows =
            |pair: &[Entry]| pair[0].index.checked_add(1) == Some(pair[1].index) && pair[0].term <= pair[1].term;
        let begins = |first: &Entry| first.index == message.index + 1 && first.term > 0;
        let is_whole = message.entries.windows(2).all(follows)
            && message.entries.first().is_none_or(begins)
            && message.entries.last().is_none_or(|last| last.term <= message.term);
        let is_known = |entry: &&Entry| self.term_at(entry.index).is_none_or(|term| term == entry.term);
        let agrees = message.entries.iter().take_while(|entry| entry.index <= committed).all(|entry| is_known(&entry));
        let has_start = message.index <= last || message.log_term != 0;
        is_whole && agrees && has_start
    }
}

fn is_readable(entry: &Entry) -> bool {
    match entry.get_entry_type() {
        EntryType::EntryNormal => entry.get_data().is_empty() || Record::decode(entry.get_data()).is_some(),
        EntryType::EntryConfChangeV2 => members::change_of(entry).is_some(),
        EntryType::EntryConfChange => false,
    }
}

/// Whether a snapshot has a valid index and term, and a valid list of members: some voters, no duplicates.
fn fits_snapshot(message: &Message) -> bool {
    let metadata = message.get_snapshot().get_metadata();
    // raft-rs uses term 0 for any index beyond the log.
    let is_placed = (1..=INDEX_MAX).contains(&metadata.index) && (1..=message.term).contains(&metadata.term);
    let members = metadata.get_conf_state();
    let all = members.voters.iter().chain(&members.learners);
    let mut names: Vec<u64> = all.copied().collect();
    names.sort_unstable();
    let is_plain = members.voters_outgoing.is_empty() && members.learners_next.is_empty() && !members.auto_leave;
    is_placed
        && !members.voters.is_empty()
        && is_plain
        && names.first() != Some(&0)
        && names.windows(2).all(|pair| pair[0] != pair[1])
}
