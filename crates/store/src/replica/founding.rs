//! How a set begins: its first members found it together, or not at all. `docs/internals/founding.md`.

use super::config::Member;
use super::peer_messages::{OwnMessage, PeerMessage};
use super::{Event, Replica, members, snapshots};
use crate::log::Log;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Lane, Nanos};
use midflight_wire::store::NO_SLOT;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Index and term of the founding state. A log beyond it belongs to a store that has begun.
pub(super) const FIRST: u64 = 1;

/// Identity of the store: the disk numbers of its first members, by id.
pub(super) type Founders = BTreeMap<u64, u64>;

/// A replica's statement about its data, sent when a link comes up and when it changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Origin {
    /// No data; waits to be added.
    Nothing,
    /// A founder whose disk has this number and names no founders yet.
    Offers { disk: u64, first: Vec<Member> },
    /// Its disk has the founding state of these founders, and nothing later.
    Accepts(Founders),
    /// The store has begun. Members after the entry `applied`; one may be a learner.
    Began { founders: Founders, applied: u64, members: Vec<u64>, learner: Option<u64> },
}

/// A founder's state until its store has begun.
pub(super) struct Founding {
    /// The first members, from the configuration, later from the disk.
    first: Vec<Member>,
    offers: Founders,
    /// The founders in the peers' founding states.
    accepted: BTreeMap<u64, Founders>,
    /// The last origin sent to peers.
    said: Option<Origin>,
    /// The missing members last reported to the operator.
    told: Vec<u64>,
}

/// Why a replica ignores a peer. Settings that differ are reported separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The peer's data belongs to a store founded by other disks.
    OtherStore,
    /// The peer is a member of this store, and its disk has lost all data.
    NoData,
}

impl Founding {
    /// `None` if the log's store has begun, or the replica is not a founder.
    pub(super) fn of(log: &Log, id: u64, first: &[Member], founders: &Founders) -> Option<Self> {
        let is_blank = log.is_blank();
        let has_begun = log.hard_state().term > FIRST || log.last_index() > FIRST || founders.is_empty();
        if first.is_empty() || !is_blank && has_begun {
            return None;
        }
        let own = is_blank.then(|| (id, log.number()));
        Some(Self {
            first: first.to_vec(),
            offers: own.into_iter().collect(),
            accepted: BTreeMap::new(),
            said: None,
            told: Vec::new(),
        })
    }

    fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.first.iter().map(|member| member.id)
    }
}

impl Replica {
    /// Whether the store has not begun. Until then the replica does not vote, and accepts only origins from peers.
    pub(super) fn is_founding(&self) -> bool {
        self.founding.is_some()
    }

    /// Whether it lacks even the founding state. It may have a term and a vote: a new member hears heartbeats before its first snapshot.
    pub(super) fn knows_no_store(&self) -> bool {
        self.applied < FIRST
    }

    pub(super) fn origin(&self) -> Option<Origin> {
        let Some(founding) = &self.founding else {
            return Some(if self.knows_no_store() {
                Origin::Nothing
            } else {
                Origin::Began {
                    founders: self.state.founders.clone(),
                    applied: self.applied,
                    members: self.state.members.iter().map(|member| member.id).collect(),
                    learner: self.node.learner(),
                }
            });
        };
        if !self.node.log().is_safe() {
            return None;
        }
        if self.applied >= FIRST {
            return Some(Origin::Accepts(self.state.founders.clone()));
        }
        let disk = *founding.offers.get(&self.config.id)?;
        Some(Origin::Offers { disk, first: founding.first.clone() })
    }

    /// Sends the origin to a peer whose link has come up. If it is not durable yet, sends it to all peers once it is.
    pub(super) fn tell_origin(&mut self, peer: u64) {
        match (self.origin(), &mut self.founding) {
            (Some(origin), _) => {
                self.links.queue(peer, Lane::Prompt, PeerMessage::Own(OwnMessage::Origin(origin)));
            }
            (None, Some(founding)) => founding.said = None,
            (None, None) => {}
        }
    }

    pub(super) fn announce(&mut self) {
        let Some(origin) = self.origin() else { return };
        for peer in self.links.peers() {
            self.links.queue(peer, Lane::Prompt, PeerMessage::Own(OwnMessage::Origin(origin.clone())));
        }
        if let Some(founding) = &mut self.founding {
            founding.said = Some(origin);
        }
    }

    /// A founder's next step, after any input.
    pub(super) fn go_on_founding(&mut self, now: Nanos) {
        let Some(founding) = &self.founding else { return };
        if let Some(origin) = self.origin().filter(|origin| founding.said.as_ref() != Some(origin)) {
            self.announce();
            if matches!(origin, Origin::Offers { .. }) {
                self.accept_if_all_offer();
            }
        }
        self.begin_if_all_accept(now);
        self.tell_whom_it_waits_for();
    }

    fn accept_if_all_offer(&mut self) {
        let Some(founding) = &self.founding else { return };
        let has_offered = matches!(founding.said, Some(Origin::Offers { .. }));
        let all_offer = founding.ids().all(|id| founding.offers.contains_key(&id)) || planted(188);
        if has_offered && all_offer {
            self.accept(founding.offers.clone());
        }
    }

    /// Writes the founding state to disk, as if a leader had sent its snapshot. This is final: the replica founds no other store.
    fn accept(&mut self, founders: Founders) {
        if self.applied >= FIRST || self.transfers.is_receiving() {
            return;
        }
        let (snapshot, state) = snapshots::founding(&self.config, founders, self.node.log_mut());
        self.transfers.take_founding(FIRST, state);
        self.node.take_founding(snapshot);
    }

    fn begin_if_all_accept(&mut self, now: Nanos) {
        let Some(founding) = &mut self.founding else { return };
        let has_accepted = matches!(founding.said, Some(Origin::Accepts(_)));
        if has_accepted {
            founding.accepted.insert(self.config.id, self.state.founders.clone());
        }
        let all_accept = founding.ids().all(|id| founding.accepted.get(&id) == Some(&self.state.founders));
        if has_accepted && (all_accept || planted(188)) {
            self.begin_store(now);
        }
    }

    fn begin_store(&mut self, now: Nanos) {
        self.founding = None;
        self.node.stay_silent(now);
        self.events.push_back(Event::Founded);
        self.announce();
    }

    fn tell_whom_it_waits_for(&mut self) {
        let Some(founding) = &mut self.founding else { return };
        let has_come = |id: &u64| match founding.said {
            Some(Origin::Accepts(_)) => founding.accepted.get(id) == Some(&self.state.founders),
            _ => founding.offers.contains_key(id),
        };
        let missing: Vec<u64> = founding.ids().filter(|id| !has_come(id)).collect();
        if missing != founding.told {
            founding.told.clone_from(&missing);
            self.events.push_back(Event::Founding(missing));
        }
    }

    fn end_without_data(&mut self, why: String) {
        self.events.push_back(Event::NotFounded(why));
    }

    pub(super) fn take_origin(&mut self, now: Nanos, peer: u64, origin: Origin) {
        match &self.founding {
            Some(_) if self.knows_no_store() => self.take_origin_as_founder(peer, origin),
            _ => self.take_origin_with_data(now, peer, origin),
        }
        self.go_on_founding(now);
    }

    fn take_origin_as_founder(&mut self, peer: u64, origin: Origin) {
        let (id, Some(founding)) = (self.config.id, &mut self.founding) else { return };
        let own = founding.offers.get(&id).copied();
        match origin {
            Origin::Offers { first, .. } if first != founding.first => {
                let (ours, theirs) = (members::list_of(&founding.first), members::list_of(&first));
                if self.links.unlike.insert(peer) {
                    self.events.push_back(Event::UnlikePeer { peer, name: "replicas", ours, theirs });
                }
            }
            Origin::Offers { disk, .. } => {
                if founding.ids().any(|id| id == peer) {
                    founding.offers.insert(peer, disk);
                }
                self.accept_if_all_offer();
            }
            Origin::Accepts(founders) if own.is_some() && founders.get(&id).copied() == own => {
                if founding.ids().eq(founders.keys().copied()) {
                    founding.accepted.insert(peer, founders.clone());
                    self.accept(founders);
                }
            }
            _ if planted(188) => {}
            Origin::Accepts(_) | Origin::Began { .. } => self.end_without_data(format!(
                "replica {peer} has data of this store, and this replica has none: no store is founded beside it (--new). If this \
                 replica's data is elsewhere, start it with that. If it is lost, have a member remove this id, and let another id join \
                 (--join). If all of the store is to begin again, start each replica with --new and without data, under another `cluster`"
            )),
            Origin::Nothing => {}
        }
    }

    fn take_origin_with_data(&mut self, now: Nanos, peer: u64, origin: Origin) {
        let (id, ours) = (self.config.id, &self.state.founders);
        let knows_none = self.knows_no_store();
        let refusal = match &origin {
            _ if knows_none => None,
            Origin::Accepts(theirs) | Origin::Began { founders: theirs, .. } => {
                (theirs != ours && !planted(188)).then_some(Refusal::OtherStore)
            }
            // Accepting peers tell it so, and it ends.
            Origin::Offers { disk, .. } => (ours.get(&peer) != Some(disk)).then_some(Refusal::NoData),
            Origin::Nothing => {
                let is_voter = self.state.members.iter().any(|member| member.id == peer);
                (is_voter && self.node.learner() != Some(peer) && !planted(189)).then_some(Refusal::NoData)
            }
        };
        match refusal {
            Some(refusal) if self.links.refused.insert(peer, refusal) != Some(refusal) => {
                return self.events.push_back(Event::Refused { peer, refusal });
            }
            Some(_) => return,
            None => drop(self.links.refused.remove(&peer)),
        }
        match origin {
            Origin::Accepts(founders) => {
                if let Some(founding) = &mut self.founding {
                    founding.accepted.insert(peer, founders);
                }
            }
            // All have accepted; otherwise no store could have begun.
            Origin::Began { .. } if self.is_founding() => self.begin_store(now),
            Origin::Began { members, learner, .. }
                if knows_none && members.contains(&id) && learner != Some(id) && !planted(189) =>
            {
                self.end_without_data(format!(
                    "replica {peer} knows this id as a member that has had data, and there is none here: who has lost its data must \
                     not come back under its id. Have a member remove it, and let another id join (--join)"
                ));
            }
            // The later committed list counts: ids are never reused.
            Origin::Began { applied, members, .. } => {
                let is_member = self.slot() != NO_SLOT;
                if is_member && applied >= self.applied && !members.contains(&id) {
                    self.note_removal(Some(peer));
                }
            }
            Origin::Nothing | Origin::Offers { .. } => {}
        }
    }
}
