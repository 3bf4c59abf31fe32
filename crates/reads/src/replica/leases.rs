//! Leases by which followers serve reads (mode `follower-lease`). `docs/internals/reads-modes.md` says why they are right.
//!
//! A follower asks for its lease at each heartbeat of the leader. A write revokes the leases of its key group: a follower that has
//! received the entry serves the group no more, until the leader *shows* the entry. The leader shows it, and applies it itself, when
//! every holder of a lease has acknowledged it, or holds its lease no more.

use super::Replica;
use super::config::{ReplicaConfig, Timing};
use super::entry::Record;
use super::letters::{Letter, Other};
use super::node::Node;
use super::writes::kgroup_of;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Lane, Nanos};
use midflight_wire::reads::key_hash;
use raft::eraftpb::MessageType;
use raft::prelude::{Entry, EntryType, Message};
use std::collections::BTreeMap;

/// Both sides: a replica may lead, and follow again.
pub(super) struct Leases {
    pub(super) held: Held,
    pub(super) granted: Granted,
}

/// A follower's lease.
pub(super) struct Held {
    timing: Timing,
    kgroup_bits: u8,
    /// When the replica started: no lease is older.
    started: Nanos,
    /// The term of the leader that granted it: it holds in no other.
    term: u64,
    /// The lease ends then.
    until: Nanos,
    /// The leader shows entries up to this one.
    shown: u64,
    /// The last entry that writes to each key group.
    written: Vec<u64>,
    /// One that may write to any.
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

    /// Up to this entry, nobody has looked which key groups they write to.
    fn revoke_all(&mut self, index: u64) {
        self.written_all = self.written_all.max(index);
    }

    /// What a leader's message writes to, before it is acknowledged. An entry that Raft replaces later revokes for longer than it must,
    /// which does no harm.
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
            Some(Record::Write(write) | Record::SeqWrite(_, write)) => {
                let hash = key_hash(write.what.key());
                let written = &mut self.written[kgroup_of(hash, self.kgroup_bits) as usize];
                *written = entry.index.max(*written);
            }
            Some(Record::Session(_) | Record::Fenced(_) | Record::Open { .. }) => {}
            Some(Record::Flush) | None => self.revoke_all(entry.index),
        }
    }

    /// A leader's word. The lease runs from when this replica asked for it, by its own clock.
    fn take(&mut self, term: u64, echo: Nanos, shown: u64) {
        if term != self.term {
            (self.term, self.until, self.shown) = (term, 0, 0);
        }
        self.until = self.until.max(echo.saturating_add(self.timing.leader_lease));
        self.shown = self.shown.max(shown);
    }

    /// Whether this replica may serve a key now, in this term, with what it has applied.
    pub(super) fn covers(&self, now: Nanos, term: u64, applied: u64, hash: u32) -> bool {
        let written = self.written[kgroup_of(hash, self.kgroup_bits) as usize].max(self.written_all);
        let is_revoked = written > applied.min(self.shown) && !planted(171);
        self.term == term && now < self.until && !is_revoked
    }
}

/// The leases that a leader has granted.
#[derive(Default)]
pub(super) struct Granted {
    /// Until then a former leader's may hold.
    former_until: Nanos,
    grants: BTreeMap<u64, Grant>,
    /// The last entry that holders have been shown.
    told: u64,
}

/// A member's lease.
struct Grant {
    /// When the member asked for it, by its clock.
    echo: Nanos,
    /// Then it has ended there, whatever the drift.
    until: Nanos,
    /// What was committed when it was granted: the next one asks for that much.
    goal: u64,
}

impl Granted {
    /// Those of a new leader.
    fn new(since: Nanos, timing: &Timing) -> Self {
        Self { former_until: since + timing.with_drift(timing.leader_lease), ..Self::default() }
    }

    fn holders(&self, now: Nanos) -> impl Iterator<Item = (u64, &Grant)> {
        self.grants.iter().filter(move |(_, grant)| now < grant.until).map(|(&id, grant)| (id, grant))
    }

    /// Up to which entry the leader may apply what is committed: all holders have it. One that is no member any more has nothing.
    fn may_show(&self, now: Nanos, node: &Node) -> u64 {
        if now < self.former_until {
            return 0;
        }
        let of_holders = self.holders(now).map(|(id, _)| node.matched(id)).min();
        of_holders.filter(|_| !planted(172)).unwrap_or(u64::MAX)
    }

    /// When the next lease ends that may be waited for.
    fn timeout(&self, now: Nanos) -> Option<Nanos> {
        let ends = self.grants.values().map(|grant| grant.until);
        ends.chain([self.former_until]).filter(|end| *end > now).min()
    }
}

impl Leases {
    pub(super) fn new(config: &ReplicaConfig, last_index: u64, now: Nanos) -> Self {
        Self { held: Held::new(config, last_index, now), granted: Granted::default() }
    }

    /// This replica leads from now on.
    pub(super) fn leads(&mut self, since: Nanos, timing: &Timing) {
        self.granted = Granted::new(since, timing);
    }

    /// It leads no more. What it has appended as the leader, nobody has looked at.
    pub(super) fn follows(&mut self, last_index: u64) {
        self.granted = Granted::default();
        self.held.revoke_all(last_index);
    }
}

impl Replica {
    /// Up to which entry it may apply what is committed.
    pub(super) fn may_apply(&self, now: Nanos) -> u64 {
        match &self.leases {
            Some(leases) if self.node.is_leader() => leases.granted.may_show(now, &self.node),
            _ => u64::MAX,
        }
    }

    /// When a lease ends that keeps entries from being applied.
    pub(super) fn lease_timeout(&self) -> Option<Nanos> {
        let leases = self.leases.as_ref().filter(|_| !self.to_apply.is_empty())?;
        leases.granted.timeout(self.now)
    }

    /// A heartbeat of the leader came: asks it for a lease.
    pub(super) fn ask_lease(&mut self, now: Nanos, leader: u64) {
        if self.leases.is_some() && self.node.leader() == Some(leader) {
            let ask = Other::AskLease { term: self.node.term(), at: now };
            // Where the link takes nothing, the next heartbeat asks again.
            self.links.queue(leader, Lane::Prompt, Letter::Other(ask));
        }
    }

    /// A follower asks. It gets a lease if it has what the leader shows, and what was committed when it was granted one last: else one
    /// that no longer acknowledges what it gets would keep its lease, and hold all writes up.
    pub(super) fn take_ask_lease(&mut self, now: Nanos, peer: u64, term: u64, at: Nanos) {
        let (node, applied) = (&self.node, self.applied);
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        // With an entry of its own term it shows all that earlier leaders have shown.
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
        self.links.queue(peer, Lane::Prompt, Letter::Other(Other::Lease { term, echo: at, shown: applied }));
    }

    /// The leader grants a lease, or shows more entries. Those are committed.
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

    /// Tells the holders what the leader shows: it takes the place of Raft's own word of what is committed.
    pub(super) fn show(&mut self, now: Nanos) {
        let (term, applied) = (self.node.term(), self.applied);
        let leads = self.node.is_leader() && self.node.term_at(applied) == Some(term);
        let Some(leases) = self.leases.as_mut().filter(|leases| leads && leases.granted.told < applied) else { return };
        leases.granted.told = applied;
        for (holder, grant) in leases.granted.holders(now) {
            let lease = Other::Lease { term, echo: grant.echo, shown: applied };
            self.links.queue(holder, Lane::Prompt, Letter::Other(lease));
        }
    }
}
