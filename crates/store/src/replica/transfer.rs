//! Snapshot transfers to replicas that are far behind. `docs/internals/store-replica.md`, "A snapshot on its way".

use super::image::{Cursor, Image, SnapshotError, Thawing};
use super::peer_messages::{Content, OwnMessage, PeerMessage, Transfer};
use super::state::State;
use super::{Event, Replica};
use crate::log::{decode_message, encode_message};
use midflight_endpoint::{Lane, Link, Nanos};
use raft::eraftpb::MessageType;
use raft::prelude::Message;
use std::collections::BTreeMap;

/// Parts in flight that the receiver has not confirmed as durable. Bounds its memory, and slows the sender down to its disk.
const WINDOW: u64 = 4;

#[derive(Default)]
pub(super) struct Transfers {
    outgoing: BTreeMap<u64, Outgoing>,
    incoming: Option<Incoming>,
    /// The last one that started here. Parts of this or an earlier attempt start nothing.
    begun: Option<Transfer>,
    /// The peer whose last snapshot was refused, and why.
    refused: Option<(u64, SnapshotError)>,
    number: u64,
    /// A snapshot that Raft has taken and that is not durable yet: index and content.
    taken: Option<(u64, State)>,
}

struct Outgoing {
    transfer: Transfer,
    message: Option<Message>,
    image: Image,
    cursor: Cursor,
    sent: u64,
    /// Parts with data.
    data_sent: u64,
    data_safe: u64,
}

struct Incoming {
    link: Link,
    transfer: Transfer,
    message: Message,
    thawing: Thawing,
    next: u64,
    /// Last confirmation sent.
    told: u64,
}

enum Verdict {
    /// Taken now or earlier.
    Fine,
    /// The transfer cannot continue.
    Refused,
}

impl Outgoing {
    fn next(&mut self) -> Option<(OwnMessage, bool)> {
        let content = match self.message.take() {
            Some(message) => {
                let mut bytes = Vec::new();
                encode_message(&message, &mut bytes).ok()?;
                Content::Message(bytes)
            }
            None if self.data_sent >= self.data_safe + WINDOW => return None,
            None => self.image.part(&mut self.cursor).map_or(Content::End, Content::Data),
        };
        let (number, is_last) = (self.sent, content == Content::End);
        self.sent += 1;
        self.data_sent += u64::from(matches!(content, Content::Data(_)));
        Some((OwnMessage::Part { transfer: self.transfer, number, content }, is_last))
    }
}

impl Transfers {
    pub(super) fn is_sending(&self) -> bool {
        !self.outgoing.is_empty()
    }

    pub(super) fn is_receiving(&self) -> bool {
        self.incoming.is_some() || self.taken.is_some()
    }

    pub(super) fn take_founding(&mut self, index: u64, state: State) {
        self.taken = Some((index, state));
    }

    pub(super) fn take(&mut self, index: u64) -> Option<State> {
        self.taken.take_if(|(of, _)| *of == index).map(|(_, state)| state)
    }
}

impl Replica {
    pub(super) fn send_snapshot(&mut self, message: Message) -> bool {
        let index = message.get_snapshot().get_metadata().index;
        let has_link = self.links.generation(message.to, Lane::Bulk).is_some();
        let Some(image) = self.image.as_ref().filter(|image| has_link && image.index == index) else { return false };
        self.transfers.number += 1;
        let transfer = Transfer { term: message.term, number: self.transfers.number };
        let (to, image) = (message.to, image.clone());
        let (cursor, message) = (Cursor::default(), Some(message));
        let outgoing = Outgoing { transfer, message, image, cursor, sent: 0, data_sent: 0, data_safe: 0 };
        if let Some(former) = self.transfers.outgoing.insert(to, outgoing) {
            former.image.discard(&mut self.state.store);
        }
        true
    }

    pub(super) fn write_part(&mut self, peer: u64, buffer: &mut Vec<u8>) -> bool {
        let Some((part, is_last)) = self.transfers.outgoing.get_mut(&peer).and_then(Outgoing::next) else {
            return false;
        };
        if is_last {
            // The peer reports the outcome to Raft.
            self.counters.snapshots_sent += 1;
            self.stop_sending(peer);
        }
        part.encode(buffer);
        true
    }

    fn stop_sending(&mut self, peer: u64) {
        if let Some(outgoing) = self.transfers.outgoing.remove(&peer) {
            outgoing.image.discard(&mut self.state.store);
        }
    }

    /// The receiver confirms durable parts.
    pub(super) fn take_received(&mut self, peer: u64, transfer: Transfer, parts: u64) {
        let outgoing = self.transfers.outgoing.get_mut(&peer);
        if let Some(outgoing) = outgoing.filter(|outgoing| outgoing.transfer == transfer) {
            outgoing.data_safe = parts.clamp(outgoing.data_safe, outgoing.data_sent);
        }
    }

    /// The receiver gave up. Raft starts again with the newest snapshot.
    pub(super) fn take_refused(&mut self, peer: u64, transfer: Transfer) {
        let is_present = self.transfers.outgoing.get(&peer).is_none_or(|outgoing| outgoing.transfer == transfer);
        if transfer.term == self.node.term() && is_present {
            self.stop_sending(peer);
            self.node.unreachable(peer);
        }
    }

    pub(super) fn end_transfers(&mut self, link: Link) {
        if link.lane == Lane::Bulk {
            self.stop_sending(link.peer);
            if self.transfers.incoming.as_ref().is_some_and(|incoming| incoming.link == link) {
                self.drop_incoming();
            }
        }
    }

    /// After any input: drops transfers of a leader that no longer leads, sent or received.
    pub(super) fn check_transfers(&mut self) {
        let term = self.node.term();
        let leads = self.node.is_leader();
        let is_over = |(_, outgoing): &(&u64, &Outgoing)| !leads || outgoing.transfer.term != term;
        let over: Vec<u64> = self.transfers.outgoing.iter().filter(is_over).map(|(&peer, _)| peer).collect();
        over.into_iter().for_each(|peer| self.stop_sending(peer));
        if self.transfers.incoming.as_ref().is_some_and(|incoming| incoming.transfer.term < term) {
            self.refuse_incoming();
        }
        self.tell_received();
    }

    fn tell_received(&mut self) {
        let safe = self.node.log().snapshot_parts().map_or(0, |(_, safe)| safe);
        let Some(incoming) = self.transfers.incoming.as_mut().filter(|incoming| safe > incoming.told) else { return };
        incoming.told = safe;
        let peer_message = OwnMessage::Received { transfer: incoming.transfer, parts: safe };
        self.links.queue(incoming.link.peer, Lane::Bulk, PeerMessage::Own(peer_message));
    }

    fn drop_incoming(&mut self) {
        if let Some(incoming) = self.transfers.incoming.take() {
            self.node.log_mut().drop_snapshot();
            incoming.thawing.discard(&mut self.state.store);
        }
    }

    pub(super) fn refuse_incoming(&mut self) {
        if let Some(Incoming { link, transfer, .. }) = self.transfers.incoming {
            self.refuse(link, transfer);
            self.drop_incoming();
        }
    }

    fn refuse(&mut self, link: Link, transfer: Transfer) {
        self.counters.transfers_refused += 1;
        self.links.queue(link.peer, Lane::Bulk, PeerMessage::Own(OwnMessage::Refused { transfer }));
    }

    pub(super) fn take_part(&mut self, now: Nanos, link: Link, transfer: Transfer, number: u64, content: Content) {
        let verdict = match (&self.transfers.incoming, content) {
            // A late part of an earlier attempt is harmless, and expects no answer.
            (Some(incoming), _) if incoming.transfer > transfer => Verdict::Fine,
            (Some(incoming), _) if incoming.transfer == transfer && number < incoming.next => Verdict::Fine,
            (_, Content::Message(message)) if number == 0 => self.begin_incoming(now, link, transfer, &message),
            (Some(incoming), content) if incoming.transfer == transfer && number == incoming.next => {
                self.go_on_incoming(now, content)
            }
            _ => Verdict::Refused,
        };
        if matches!(verdict, Verdict::Refused) {
            if self.transfers.incoming.as_ref().is_some_and(|incoming| incoming.transfer == transfer) {
                self.drop_incoming();
            }
            self.refuse(link, transfer);
        }
    }

    fn begin_incoming(&mut self, now: Nanos, link: Link, transfer: Transfer, message: &[u8]) -> Verdict {
        let Ok(message) = decode_message(message) else { return Verdict::Refused };
        let metadata = message.get_snapshot().get_metadata();
        let is_right = message.get_msg_type() == MessageType::MsgSnapshot
            && (message.from, message.to) == (link.peer, self.config.id)
            && message.term == transfer.term
            && transfer.term >= self.node.term();
        if is_right && metadata.index <= self.node.committed() {
            // An earlier attempt delivered the snapshot, but the leader does not know. Raft's answer tells it, and the remaining parts
            // are not needed.
            self.take_message(now, link.peer, message);
            return Verdict::Refused;
        }
        let is_new = self.transfers.begun.is_none_or(|begun| begun < transfer);
        let is_wanted = is_new && self.transfers.taken.is_none() && !self.is_full();
        if !is_right || !is_wanted || self.node.is_leader() && transfer.term == self.node.term() {
            return Verdict::Refused;
        }
        self.drop_incoming();
        self.drop_own_snapshot();
        self.node.log_mut().begin_snapshot(metadata);
        self.transfers.begun = Some(transfer);
        let thawing = Thawing::new(&self.config);
        self.transfers.incoming = Some(Incoming { link, transfer, message, thawing, next: 1, told: 0 });
        Verdict::Fine
    }

    fn go_on_incoming(&mut self, now: Nanos, content: Content) -> Verdict {
        let Some(incoming) = &mut self.transfers.incoming else { return Verdict::Refused };
        incoming.next += 1;
        match content {
            Content::Message(_) => Verdict::Refused,
            Content::Data(bytes) => match incoming.thawing.take(&self.config, &bytes) {
                Ok(()) => {
                    self.node.log_mut().write_snapshot(&bytes);
                    Verdict::Fine
                }
                Err(SnapshotError::Malformed) => Verdict::Refused,
                Err(error) => {
                    let peer = incoming.link.peer;
                    if self.transfers.refused.replace((peer, error)) != Some((peer, error)) {
                        self.events.push_back(Event::SnapshotRefused(peer, error));
                    }
                    Verdict::Refused
                }
            },
            Content::End => self.end_incoming(now),
        }
    }

    fn end_incoming(&mut self, now: Nanos) -> Verdict {
        let Some(Incoming { link, transfer, message, thawing, .. }) = self.transfers.incoming.take() else {
            return Verdict::Refused;
        };
        let index = message.get_snapshot().get_metadata().index;
        let Ok(state) = thawing.finish() else {
            self.node.log_mut().drop_snapshot();
            return Verdict::Refused;
        };
        self.take_message(now, link.peer, message);
        if self.node.has_taken(index) {
            self.transfers.taken = Some((index, state));
        } else {
            self.node.log_mut().drop_snapshot();
            self.state.store.replace(state.store);
            self.refuse(link, transfer);
        }
        Verdict::Fine
    }
}
