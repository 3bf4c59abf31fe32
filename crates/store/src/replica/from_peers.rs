//! Messages of peers: their links, the queues of messages to send, and what each received message does.

use super::balance::Load;
use super::config::{Agreed, Habits};
use super::peer_messages::{OwnMessage, PeerMessage};
use super::{Event, Refusal, Replica, node};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Lane, Link, Linked, Nanos};
use midflight_wire::store::NO_SLOT;
use raft::eraftpb::MessageType;
use raft::prelude::Message;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Bound on queued messages per link. Others are dropped, and Raft repeats them.
const QUEUE_MAX: usize = 4096;

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
    fn take_load(&mut self, peer: u64, load: Load) {
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        match &mut self.sessions {
            Some(sessions) if is_member => sessions.balance.report(peer, load),
            _ => self.counters.loads_astray += 1,
        }
    }

    pub(super) fn take_message(&mut self, now: Nanos, peer: u64, message: Message) {
        // The link proves that the peer belongs to this store. It may be a member, even the leader, that this replica does not know yet.
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
            // Raft refuses entries after a gap, or of a former leader.
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
            Err(node::Refused::BeyondLog { commit }) => self.end_contradicting_link(now, peer, commit),
        }
    }

    /// The leader's commit index is beyond this log. Either it is wrong or this disk lost acknowledged entries; only an operator can
    /// tell.
    fn end_contradicting_link(&mut self, now: Nanos, peer: u64, commit: u64) {
        self.counters.contradictions += 1;
        if self.links.contradicting.insert(peer) {
            self.events.push_back(Event::Contradicted { peer, commit, last: self.node.last_index() });
        }
        self.end_link(now, peer, Lane::Prompt);
    }

    pub(super) fn end_link(&mut self, now: Nanos, peer: u64, lane: Lane) {
        if let Some(generation) = self.links.generation(peer, lane) {
            let link = Link { peer, lane, generation };
            self.events.push_back(Event::Ended(link));
            self.link_broken(now, link);
        }
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
