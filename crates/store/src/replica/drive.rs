use super::balance::{EVEN_SHARE, Load};
use super::config::{Agreed, Habits};
use super::entry::Record;
use super::image::Image;
use super::node::Turn;
use super::peer_messages::{OwnMessage, PeerMessage};
use super::switches::is_silent;
use super::{Event, Refusal, Replica};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Durable, Endpoint, Lane, Link, Linked, Nanos, Persist};
use midflight_wire::store::{NO_SLOT, REPLICAS_MAX, Replica as Row, key_hash};
use raft::eraftpb::MessageType;
use raft::prelude::{Entry, EntryType};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use zerocopy::FromZeros;

/// Bound on queued messages per link. Others are dropped, and Raft repeats them.
const QUEUE_MAX: usize = 4096;
const ENTRY_BYTES: usize = 64;

#[derive(Default)]
pub(super) struct Links {
    queues: BTreeMap<(u64, Lane), VecDeque<PeerMessage>>,
    up: BTreeMap<(u64, Lane), u64>,
    /// Peers with other settings; their messages are dropped.
    pub(super) unlike: BTreeSet<u64>,
    pub(super) refused: BTreeMap<u64, Refusal>,
    /// Leaders whose commit index is beyond this log.
    pub(super) contradicting: BTreeSet<u64>,
    pub(super) unreadable: BTreeSet<u64>,
    /// Peers whose greeting on the current link matched.
    greeted: BTreeSet<u64>,
}

impl Links {
    /// Queues a peer message; returns false and drops it if the link is down or its queue is full.
    pub(super) fn queue(&mut self, peer: u64, lane: Lane, peer_message: PeerMessage) -> bool {
        if !self.up.contains_key(&(peer, lane)) {
            return false;
        }
        let queue = self.queues.entry((peer, lane)).or_default();
        let may = queue.len() < QUEUE_MAX;
        if may {
            queue.push_back(peer_message);
        }
        may
    }

    pub(super) fn generation(&self, peer: u64, lane: Lane) -> Option<u64> {
        self.up.get(&(peer, lane)).copied()
    }

    /// Peers with a link for urgent messages.
    pub(super) fn peers(&self) -> Vec<u64> {
        self.up.keys().filter(|(_, lane)| *lane == Lane::Prompt).map(|(peer, _)| *peer).collect()
    }

    pub(super) fn is_greeted(&self, peer: u64) -> bool {
        self.greeted.contains(&peer)
    }

    fn is_present(&self, link: Link) -> bool {
        self.generation(link.peer, link.lane) == Some(link.generation)
    }
}

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
        self.node.set_slot(self.slot());
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
            record => record,
        };
        let outcome = self.state.apply(entry.index, record.clone());
        if self.state.time > before {
            self.time_since = now;
        }
        match &record {
            Record::Session(_) => self.seqs.begin(&self.state.sessions),
            Record::SeqWrite(seq, write) => self.seqs.applied(key_hash(write.what.key()), *seq),
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

    fn take_load(&mut self, peer: u64, load: Load) {
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        match &mut self.sessions {
            Some(sessions) if is_member => sessions.balance.report(peer, load),
            _ => self.counters.loads_astray += 1,
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

impl Replica {
    fn take_peer_message(&mut self, now: Nanos, link: Link, peer_message: PeerMessage) {
        let peer = link.peer;
        match peer_message {
            PeerMessage::Own(OwnMessage::Greeting(agreed, habits)) => self.greeted(peer, agreed, habits),
            _ if self.links.unlike.contains(&peer) => self.counters.unlike_peers += 1,
            PeerMessage::Own(OwnMessage::Origin(origin)) => self.take_origin(now, peer, origin),
            _ if self.is_founding() || self.links.refused.contains_key(&peer) => self.counters.other_stores += 1,
            // Snapshots come in parts.
            PeerMessage::Raft(message) if message.get_msg_type() == MessageType::MsgSnapshot => {
                self.counters.foreign_messages += 1;
            }
            PeerMessage::Raft(message) => self.take_message(now, peer, message),
            PeerMessage::Own(OwnMessage::Part { transfer, number, content }) => {
                self.take_part(now, link, transfer, number, content);
            }
            PeerMessage::Own(OwnMessage::Received { transfer, parts }) => self.take_received(peer, transfer, parts),
            PeerMessage::Own(OwnMessage::Refused { transfer }) => self.take_refused(peer, transfer),
            PeerMessage::Own(OwnMessage::Load(load)) => self.take_load(peer, load),
            PeerMessage::Own(OwnMessage::Room { has_room }) => self.take_room(peer, has_room),
            PeerMessage::Own(OwnMessage::AskLease { term, at }) => self.take_ask_lease(now, peer, term, at),
            PeerMessage::Own(OwnMessage::Lease { term, echo, shown }) => self.take_lease(now, peer, term, echo, shown),
            PeerMessage::Own(OwnMessage::AskIndex { number }) => self.take_ask_index(now, peer, number),
            PeerMessage::Own(OwnMessage::Index { number, index }) => self.take_index(now, number, index),
            PeerMessage::Own(OwnMessage::Reach { is_heard }) => self.take_reach(now, peer, is_heard),
        }
    }

    /// Compares settings. Other bounds would change the result of entries; other times or another read mode would change leases and
    /// promises.
    fn greeted(&mut self, peer: u64, agreed: Agreed, habits: Habits) {
        let differs = self.config.agreed().differs_from(&agreed);
        let differs = differs.map(|(name, ours, theirs)| (name, ours.to_string(), theirs.to_string()));
        match differs.or_else(|| self.config.habits().differs_from(&habits)) {
            None => {
                self.links.unlike.remove(&peer);
                self.links.greeted.insert(peer);
            }
            Some((name, ours, theirs)) if self.links.unlike.insert(peer) => {
                self.events.push_back(Event::UnlikePeer { peer, name, ours, theirs });
            }
            Some(_) => {}
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
        due = [self.lease_timeout(), self.index_timeout()].into_iter().flatten().fold(due, Nanos::min);
        if self.has_work { Some(0) } else { Some(due) }
    }
}

impl Replica {
    pub(super) fn end_link(&mut self, now: Nanos, peer: u64, lane: Lane) {
        if let Some(generation) = self.links.generation(peer, lane) {
            let link = Link { peer, lane, generation };
            self.events.push_back(Event::Ended(link));
            self.link_broken(now, link);
        }
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

impl Linked for Replica {
    fn name(&self) -> u64 {
        self.config.id
    }

    fn peers(&self) -> Vec<(u64, SocketAddr)> {
        let is_outside = super::members::slot_of(&self.state.members, self.config.id) == NO_SLOT;
        let known = match is_outside {
            true if self.config.contacts.is_empty() => &self.config.initial,
            true => &self.config.contacts,
            false => &self.state.members,
        };
        let others = known.iter().filter(|member| member.id != self.config.id);
        others.map(|member| (member.id, member.links)).collect()
    }

    fn link_up(&mut self, _now: Nanos, link: Link) {
        // It may replace a link, and lose what was in flight there.
        self.end_transfers(link);
        self.node.unreachable(link.peer);
        self.links.up.insert((link.peer, link.lane), link.generation);
        self.links.queues.remove(&(link.peer, link.lane));
        self.links.queue(
            link.peer,
            link.lane,
            PeerMessage::Own(OwnMessage::Greeting(self.config.agreed(), self.config.habits())),
        );
        if link.lane == Lane::Prompt {
            self.tell_origin(link.peer);
        }
    }

    fn link_broken(&mut self, now: Nanos, link: Link) {
        if self.links.is_present(link) {
            self.links.up.remove(&(link.peer, link.lane));
            self.links.queues.remove(&(link.peer, link.lane));
            self.links.greeted.remove(&link.peer);
            self.end_transfers(link);
            self.node.unreachable(link.peer);
            self.go_on(now);
        }
    }

    fn handle_message(&mut self, now: Nanos, link: Link, message: &[u8]) {
        if !self.links.is_present(link) {
            return;
        }
        match PeerMessage::decode(message) {
            Ok(peer_message) => self.take_peer_message(now, link, peer_message),
            Err(_) => self.counters.foreign_messages += 1,
        }
        self.go_on(now);
    }

    fn poll_message(&mut self, _now: Nanos, link: Link, buffer: &mut Vec<u8>) -> bool {
        if !self.links.is_present(link) {
            return false;
        }
        while let Some(peer_message) = self.links.queues.get_mut(&(link.peer, link.lane)).and_then(VecDeque::pop_front)
        {
            if peer_message.encode(buffer).is_ok() {
                return true;
            }
            // Tell Raft of the loss; otherwise it waits for the answer.
            self.counters.messages_too_long += 1;
            self.node.unreachable(link.peer);
        }
        link.lane == Lane::Bulk && self.write_part(link.peer, buffer)
    }
}
