//! Leases under which followers serve reads (mode `follower-lease`). Correctness: `docs/internals/store-modes.md`.
//!
//! A follower requests its lease at each heartbeat. A write revokes the leases of its key group: a follower that has received the entry
//! stops serving the group until the leader *shows* the entry. The leader shows and applies it once each lease holder has acknowledged it
//! or lost its lease.

use super::Replica;
use super::config::{ReplicaConfig, Timing};
use super::entry::Record;
use super::node::Node;
use super::peer_messages::{OwnMessage, PeerMessage};
use super::writes::kgroup_of;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Lane, Nanos};
use midflight_wire::store::key_hash;
use raft::eraftpb::MessageType;
use raft::prelude::{Entry, EntryType, Message};
use std::collections::BTreeMap;

/// Both sides, because the role changes.
pub(super) struct Leases {
    pub(super) held: Held,
    pub(super) granted: Granted,
}

/// A follower's lease.
pub(super) struct Held {
    timing: Timing,
    kgroup_bits: u8,
    /// The replica's start; no lease is older.
    started: Nanos,
    /// The granting leader's term; the lease is valid in no other.
    term: u64,
    until: Nanos,
    /// The leader shows entries up to this one.
    shown: u64,
    /// The last entry that writes to each key group.
    written: Vec<u64>,
    /// The last entry that may write to any.
    written_all: u64,
}

impl Held {
    fn new(config: &ReplicaConfig, last_index: u64, now: Nanos) -> Self {
        Self {
            timing: config.timing,
            kgroup_bits: config.kgroup_bits,
            started: now,
            term: 0,
            until: 0,
            shown: 0,
            written: vec![0; 1 << config.kgroup_bits],
            written_all: last_index,
        }
    }

    fn revoke_all(&mut self, index: u64) {
        self.written_all = self.written_all.max(index);
    }

    /// Revokes what a leader's message writes to, before it is acknowledged. An entry that Raft replaces later revokes longer than
    /// necessary, which is harmless.
    pub(super) fn revoke(&mut self, message: &Message) {
        match message.get_msg_type() {
            MessageType::MsgAppend => message.entries.iter().for_each(|entry| self.revoke_for(entry)),
            MessageType::MsgSnapshot => self.revoke_all(message.get_snapshot().get_metadata().index),
            _ => {}
        }
    }

    fn revoke_for(&mut self, entry: &Entry) {
        // A change of the members, or a new leader's first entry.
        if entry.get_entry_type() != EntryType::EntryNormal || entry.get_data().is_empty() {
            return;
        }
        match Record::decode(entry.get_data()) {
            Some(Record::Write(_, write)) => {
                let hash = key_hash(write.what.key());
                let written = &mut self.written[kgroup_of(hash, self.kgroup_bits) as usize];
                *written = entry.index.max(*written);
            }
            Some(Record::Session(_) | Record::Fenced(_) | Record::Open { .. }) => {}
            Some(Record::Flush) | None => self.revoke_all(entry.index),
        }
    }

    /// The lease runs from the request, by this replica's clock.
    fn take(&mut self, term: u64, echo: Nanos, shown: u64) {
        if term != self.term {
            (self.term, self.until, self.shown) = (term, 0, 0);
        }
        self.until = self.until.max(echo.saturating_add(self.timing.leader_lease));
        self.shown = self.shown.max(shown);
    }

    pub(super) fn covers(&self, now: Nanos, term: u64, applied: u64, hash: u32) -> bool {
        let written = self.written[kgroup_of(hash, self.kgroup_bits) as usize].max(self.written_all);
        let is_revoked = written > applied.min(self.shown) && !planted(171);
        self.term == term && now < self.until && !is_revoked
    }
}

#[derive(Default)]
pub(super) struct Granted {
    /// Until then, a former leader's leases may be valid.
    former_until: Nanos,
    grants: BTreeMap<u64, Grant>,
    /// The last entry shown to holders.
    told: u64,
}

struct Grant {
    /// Time of the request by the member's clock.
    echo: Nanos,
    /// Latest expiry at the member, whatever the drift.
    until: Nanos,
    /// The commit index at the grant; the next request must have reached it.
    goal: u64,
}

impl Granted {
    fn new(since: Nanos, timing: &Timing) -> Self {
        Self { former_until: since + timing.with_drift(timing.leader_lease), ..Self::default() }
    }

    fn holders(&self, now: Nanos) -> impl Iterator<Item = (u64, &Grant)> {
        self.grants.iter().filter(move |(_, grant)| now < grant.until).map(|(&id, grant)| (id, grant))
    }

    /// The highest index that the leader may apply: the logs of all lease holders reach it. That of a removed member counts as empty.
    fn applicable_up_to(&self, now: Nanos, node: &Node) -> u64 {
        if now < self.former_until {
            return 0;
        }
        let of_holders = self.holders(now).map(|(id, _)| node.matched(id)).min();
        of_holders.filter(|_| !planted(172)).unwrap_or(u64::MAX)
    }

    fn timeout(&self, now: Nanos) -> Option<Nanos> {
        let ends = self.grants.values().map(|grant| grant.until);
        ends.chain([self.former_until]).filter(|end| *end > now).min()
    }
}

impl Leases {
    pub(super) fn new(config: &ReplicaConfig, last_index: u64, now: Nanos) -> Self {
        Self { held: Held::new(config, last_index, now), granted: Granted::default() }
    }

    pub(super) fn leads(&mut self, since: Nanos, timing: &Timing) {
        self.granted = Granted::new(since, timing);
    }

    /// The replica did not inspect the entries that it appended as the leader.
    pub(super) fn follows(&mut self, last_index: u64) {
        self.granted = Granted::default();
        self.held.revoke_all(last_index);
    }
}

impl Replica {
    pub(super) fn may_apply(&self, now: Nanos) -> u64 {
        match &self.leases {
            Some(leases) if self.node.is_leader() => leases.granted.applicable_up_to(now, &self.node),
            _ => u64::MAX,
        }
    }

    /// Expiry of a lease that delays applying.
    pub(super) fn lease_timeout(&self) -> Option<Nanos> {
        let leases = self.leases.as_ref().filter(|_| !self.to_apply.is_empty())?;
        leases.granted.timeout(self.now)
    }

    /// Requests a lease, after a heartbeat of the leader.
    pub(super) fn ask_lease(&mut self, now: Nanos, leader: u64) {
        if self.leases.is_some() && self.node.leader() == Some(leader) {
            let ask = OwnMessage::AskLease { term: self.node.term(), at: now };
            // If the link is full, the next heartbeat asks again.
            self.links.queue(leader, Lane::Prompt, PeerMessage::Own(ask));
        }
    }

    /// Handles a follower's request. It must have what the leader shows, and what was committed at its last grant. Otherwise a follower
    /// that stopped acknowledging would keep its lease and block all writes.
    pub(super) fn take_ask_lease(&mut self, now: Nanos, peer: u64, term: u64, at: Nanos) {
        let (node, applied) = (&self.node, self.applied);
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        // With an entry of its own term, it shows all that earlier leaders have shown.
        let may_grant = is_member && term == node.term() && node.has_lease(now) && node.term_at(applied) == Some(term);
        let Some(leases) = self.leases.as_mut().filter(|_| may_grant) else {
            self.counters.leases_refused += 1;
            return;
        };
        let goal = leases.granted.grants.get(&peer).map_or(0, |grant| grant.goal);
        if node.matched(peer) < goal.max(applied) {
            self.counters.leases_refused += 1;
            return;
        }
        let until = now + self.config.timing.with_drift(self.config.timing.leader_lease);
        leases.granted.grants.insert(peer, Grant { echo: at, until, goal: node.committed() });
        self.links.queue(peer, Lane::Prompt, PeerMessage::Own(OwnMessage::Lease { term, echo: at, shown: applied }));
    }

    /// A grant, or more entries shown, which are committed.
    pub(super) fn take_lease(&mut self, now: Nanos, peer: u64, term: u64, echo: Nanos, shown: u64) {
        let is_leaders = self.node.leader() == Some(peer) && self.node.term() == term && !self.node.is_leader();
        let asked = |leases: &&mut Leases| (leases.held.started..=now).contains(&echo);
        let Some(leases) = self.leases.as_mut().filter(|_| is_leaders).filter(asked) else {
            self.counters.grants_astray += 1;
            return;
        };
        leases.held.take(term, echo, shown);
        if self.node.term_at(shown) == Some(term) {
            self.node.advance_commit(shown);
        }
    }

    /// Tells the holders which entries they may show. This replaces Raft's message about the commit index.
    pub(super) fn show(&mut self, now: Nanos) {
        let (term, applied) = (self.node.term(), self.applied);
        let leads = self.node.is_leader() && self.node.term_at(applied) == Some(term);
        let Some(leases) = self.leases.as_mut().filter(|leases| leads && leases.granted.told < applied) else { return };
        leases.granted.told = applied;
        for (holder, grant) in leases.granted.holders(now) {
            let lease = OwnMessage::Lease { term, echo: grant.echo, shown: applied };
            self.links.queue(holder, Lane::Prompt, PeerMessage::Own(lease));
        }
    }
}
