//! The turns of a replica: input and timeouts, applying committed entries, and heartbeats.

use super::balance::EVEN_SHARE;
use super::entry::{ClientWrite, Record};
use super::image::Image;
use super::node::Turn;
use super::peer_messages::{OwnMessage, PeerMessage};
use super::switches::is_silent;
use super::{Event, Replica};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Durable, Endpoint, Lane, Nanos, Persist};
use midflight_wire::store::{NO_SLOT, REPLICAS_MAX, Replica as Row, Status, key_hash};
use raft::prelude::{Entry, EntryType};
use std::net::SocketAddr;
use zerocopy::FromZeros;

const ENTRY_BYTES: usize = 64;

impl Replica {
    pub(super) fn take_turn(&mut self, now: Nanos, turn: Turn) {
        if let Some(snapshot) = turn.snapshot {
            self.restore(snapshot.get_metadata().index);
        }
        self.to_apply.extend(turn.committed);
        self.apply_committed(now);
    }

    /// Applies committed entries as far as allowed. Returns whether there were any.
    pub(super) fn apply_committed(&mut self, now: Nanos) -> bool {
        let (before, may_apply) = (self.applied, self.may_apply(now));
        let mut last = before;
        while let Some(entry) = self.to_apply.pop_front_if(|entry| entry.index <= may_apply) {
            self.apply(now, &entry);
            last = entry.index;
        }
        if last > before {
            self.applied = last;
            self.node.applied(last);
            let times = &mut self.times.apply;
            self.node.take_applied(last, |since| times.add(now.saturating_sub(since)));
        }
        last > before
    }

    fn restore(&mut self, index: u64) {
        let Some(state) = self.transfers.take(index) else { return };
        let former = std::mem::replace(&mut self.state, state);
        self.state.store.replace(former.store);
        self.applied = index;
        self.seqs.begin(&self.state.sessions);
        self.set_image(Image::of(&self.state, self.config.agreed(), index));
        self.counters.restored += 1;
        self.node.set_position(self.slot());
        self.node.applied(index);
        self.wants_announcement = true;
    }

    fn apply(&mut self, now: Nanos, entry: &Entry) {
        self.counters.applied += 1;
        self.log_bytes += entry.get_data().len() + ENTRY_BYTES;
        if entry.get_entry_type() != EntryType::EntryNormal {
            return self.apply_change(entry);
        }
        if entry.get_data().is_empty() {
            return; // a new leader's first entry
        }
        let Some(record) = Record::decode(entry.get_data()) else {
            self.counters.unknown_entries += 1;
            return self.fail("the log has an entry of a newer version: use a newer program for this replica");
        };
        let before = self.state.time;
        let record = match record {
            Record::Open { source, .. } if planted(163) => Record::Open { time: self.store_time(now), source },
            Record::Write(seq, write) if planted(198) => {
                Record::Write(seq, ClientWrite { time: self.store_time(now), ..write })
            }
            record => record,
        };
        let outcome = self.state.apply(entry.index, record.clone());
        if self.state.time > before {
            self.time_since = now;
        }
        match &record {
            Record::Session(_) => self.seqs.begin(&self.state.sessions),
            Record::Write(seq, write) => {
                self.seqs.applied(key_hash(write.what.key()), *seq);
                if write.is_expiry() {
                    self.expiry.applied(write.what.key());
                    self.counters.expired += u64::from(outcome.status == Status::Done);
                }
            }
            _ => {}
        }
        let Some(sessions) = &mut self.sessions else { return };
        if matches!(record, Record::Session(_)) {
            sessions.applied(entry.index, &self.node, &self.state.sessions);
        }
        if let Some(present) = &mut sessions.present {
            present.writes.applied(entry.index, &record, outcome);
        }
    }

    /// The rows of a heartbeat. A replica that is silent, or that the switch does not reach, gets no READs.
    fn rows(&self, now: Nanos) -> Vec<Row> {
        let Some(sessions) = &self.sessions else { return Vec::new() };
        let timing = &self.config.timing;
        let mut rows = vec![Row::new_zeroed(); REPLICAS_MAX];
        for member in &self.state.members {
            let is_self = member.id == self.config.id;
            let heard = self.heard.get(&member.id).copied().unwrap_or(0);
            let serves = self.config.mode.uses_followers()
                && !is_silent(now, heard, timing)
                && self.node.learner() != Some(member.id)
                && sessions.switches.reaches(now, member.slot);
            let row = &mut rows[usize::from(member.slot)];
            row.address = member.address.into();
            row.weight = match is_self || serves {
                false => 0,
                true if self.config.mode.uses_any_replica() => EVEN_SHARE,
                true => sessions.balance.weight(member.id),
            };
            row.matched = self.node.matched(member.id).into();
        }
        let used = self.state.members.iter().map(|member| usize::from(member.slot) + 1).max().unwrap_or(1);
        rows.truncate(used);
        rows
    }

    /// Whether this replica sends HELLOs to switches: a member that has no heartbeats to send.
    fn is_to_greet(&self) -> bool {
        self.sessions.is_none() && self.slot() != NO_SLOT
    }

    /// Reports load and reachability to the leader. If this fails, the next report repeats it.
    fn report(&mut self) {
        if let Some(leader) = self.node.leader() {
            self.links.queue(leader, Lane::Prompt, PeerMessage::Own(OwnMessage::Load(self.gauge.load)));
            let is_heard = self.presence.is_heard;
            self.links.queue(leader, Lane::Prompt, PeerMessage::Own(OwnMessage::Reach { is_heard }));
        }
    }

    /// Adds the leader's own load and updates the weights.
    fn balance(&mut self, now: Nanos) {
        let Some(sessions) = &mut self.sessions else { return };
        let (id, members) = (self.config.id, &self.state.members);
        sessions.balance.report(id, self.gauge.load);
        sessions.balance.weigh(now, &self.config.timing, id, |id| members.iter().any(|member| member.id == id));
    }

    pub(super) fn beat(&mut self, now: Nanos) {
        self.balance(now);
        let (rows, slot) = (self.rows(now), self.slot());
        self.hand_over_to_reach_a_switch(now);
        let Some(sessions) = &mut self.sessions else { return };
        let was_active = sessions.is_active();
        sessions.beat(now, &self.node, slot, &rows, &mut self.out);
        if let Some(present) = sessions.present.as_ref().filter(|_| !was_active && sessions.is_active()) {
            self.counters.sessions += 1;
            self.events.push_back(Event::Session(present.name.switch));
        }
    }
}

impl Endpoint for Replica {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        self.gauge.take(now);
        self.take_datagram(now, from, datagram);
        self.go_on(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.is_founding() {
            self.node.stay_silent(now);
        } else {
            if self.node.has_lost_quorum(now) {
                let successor = self.choose_successor(|_| true);
                self.node.resign(now, successor);
            }
            self.node.handle_timeout(now);
        }
        self.go_on(now);
        if self.sessions.is_some() && now >= self.next_beat {
            self.next_beat = now + self.config.timing.heartbeat;
            self.attend_members(now);
            self.leave_bad_disk(now);
            self.beat(now);
            self.go_on(now);
        }
        if self.is_to_greet() && self.presence.greet(now, self.slot(), &mut self.out) {
            self.report();
            self.report_room();
        }
    }

    fn poll_transmit(&mut self, _now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        super::pop(&mut self.out, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let mut due = self.node.timeout();
        if let Some(sessions) = &self.sessions {
            due = due.min(self.next_beat);
            due = sessions.timeout(self.now).map_or(due, |at| due.min(at));
            let refresh = sessions.present.as_ref().and_then(|p| p.writes.timeout(self.config.refresh_after));
            due = refresh.map_or(due, |at| due.min(at));
        }
        if self.is_to_greet() {
            due = due.min(self.presence.timeout());
        }
        due = self.hand_over.map_or(due, |hand_over| due.min(hand_over.until));
        due = [self.lease_timeout(), self.index_timeout(), self.expiry_timeout()]
            .into_iter()
            .flatten()
            .fold(due, Nanos::min);
        if self.has_work { Some(0) } else { Some(due) }
    }
}

impl Durable for Replica {
    fn poll_persist(&mut self) -> Option<Persist> {
        self.node.poll_persist()
    }

    fn persisted(&mut self, now: Nanos, id: u64) {
        self.node.persisted(now, id);
        self.go_on(now);
    }
}
