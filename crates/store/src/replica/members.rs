//! Member changes, one at a time. A new member starts as a learner, without a vote.

use super::config::{Member, Mode};
use super::{Event, Replica};
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{NO_SLOT, REPLICAS_MAX};
use protobuf::Message as _;
use raft::prelude::{ConfChangeSingle, ConfChangeType, ConfChangeV2, Entry, EntryType};

/// Why members cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Only the leader changes members.
    #[error("this replica does not lead: ask the leader{}", leader.map_or(String::new(), |id| format!(", id {id}")))]
    NotLeader {
        /// The leader, if known.
        leader: Option<u64>,
    },
    /// The replica leads already.
    #[error("replica {0} leads already")]
    Leads(u64),
    /// A leader cannot remove itself.
    #[error("replica {0} leads, and cannot remove itself: transfer leadership to another one first")]
    Itself(u64),
    /// 0 is not a valid id.
    #[error("0 is no id of a replica: take a number that was never used in this set")]
    NoId,
    /// No member has this id.
    #[error("no member has the id {0}: `midflight store members` lists them")]
    NoMember(u64),
    /// Another member has the same id, slot or address.
    #[error("a member has this {what} already: {which}")]
    Taken {
        /// Id, slot or address.
        what: &'static str,
        /// The repeated value.
        which: String,
    },
    /// The slot does not exist.
    #[error("{0} is no place: take one of 0 to 7")]
    NoPlace(u8),
    /// The last member must stay.
    #[error("the last member cannot be removed")]
    Last,
    /// The set would have no majority that is heard.
    #[error(
        "the set would have {members} replicas and need {needed} of them, but only {heard} are heard: start replica {}, or remove it \
         first",
        list(silent)
    )]
    TooFew {
        /// Members after the change.
        members: usize,
        /// Their majority.
        needed: usize,
        /// Members heard recently, including the leader.
        heard: usize,
        /// The other members.
        silent: Vec<u64>,
    },
    /// A learner cannot lead.
    #[error("replica {0} has not caught up, and has no vote yet: try again later")]
    Learns(u64),
    /// The new leader cannot be reached.
    #[error("replica {0} is not heard: start it, or choose another one")]
    Silent(u64),
    /// A hand-over is in progress.
    #[error("leadership is being handed over already: `midflight store members` shows who leads")]
    HandsOver,
    /// A hand-over failed.
    #[error(transparent)]
    NotHandedOver(#[from] HandOverError),
    /// The unreplicated mode allows one member.
    #[error(
        "`reads` is unreplicated, so the set has one replica: choose another mode, with all processes stopped, before you add one"
    )]
    Unreplicated,
    /// Another change is in progress.
    #[error(
        "another change of the members is under way: try again when it is done{}",
        learner.map_or(String::new(), |id| format!(", or remove replica {id}, which has not caught up"))
    )]
    Busy {
        /// The new member that has not caught up.
        learner: Option<u64>,
    },
}

/// Why the chosen replica does not lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandOverError {
    /// Another one was elected.
    #[error("replica {0} leads now: the wanted one did not have the whole log in time, or was not reached. Try again")]
    Other(u64),
    /// No leader is known.
    #[error(
        "the wanted replica did not take over, and this one has stepped down; it knows of no leader yet. `midflight store members` shows \
         who leads"
    )]
    NoLeader,
}

/// A learner gets its vote when it lacks no more entries than this. A follower always lacks some in flight.
const CAUGHT_UP: u64 = 1_000;

/// A leader's state of changes.
#[derive(Default)]
pub(super) struct Changes {
    /// The learner, and since when this leader waits for it.
    learner: Option<(u64, Nanos)>,
    /// Index of the last applied change; 0 if there was none since the start.
    applied: u64,
    /// An entry that this leader proposed afterwards. A replica with it on disk knows after a restart that the change is committed.
    seal: Option<u64>,
}

impl Changes {
    pub(super) fn begin_leading(&mut self) {
        (self.learner, self.seal) = (None, None);
    }

    fn is_sealed(&self, committed: u64) -> bool {
        self.applied == 0 || planted(185) || self.seal.is_some_and(|seal| seal <= committed)
    }
}

/// The change in an entry, and the members after it; `None` if it cannot be decoded.
pub(super) fn change_of(entry: &Entry) -> Option<(ConfChangeV2, Option<Vec<Member>>)> {
    let mut change = ConfChangeV2::default();
    let is_change = entry.get_entry_type() == EntryType::EntryConfChangeV2;
    let is_read = is_change && change.merge_from_bytes(entry.get_data()).is_ok();
    // raft-rs proposes an empty change to leave a joint configuration.
    let members: Option<Vec<Member>> = match entry.get_context() {
        [] if change.get_changes().is_empty() => None,
        context => Some(postcard::from_bytes(context).ok().filter(|members: &Vec<Member>| are_possible(members))?),
    };
    is_read.then_some((change, members))
}

/// Whether a member list is valid: not too long, and without duplicate ids or slots.
pub(super) fn are_possible(members: &[Member]) -> bool {
    let is_alone = |member: &Member| {
        members.iter().filter(|other| other.id == member.id || other.slot == member.slot).count() == 1
    };
    let is_placed = |member: &Member| member.id != 0 && usize::from(member.slot) < REPLICAS_MAX;
    members.iter().all(|member| is_placed(member) && is_alone(member))
}

pub(super) fn list_of(members: &[Member]) -> String {
    let all = members
        .iter()
        .map(|Member { id, slot, address, links }| format!("{id} in place {slot} on {address} and {links}"));
    all.collect::<Vec<_>>().join("; ")
}

fn list(ids: &[u64]) -> String {
    ids.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ")
}

pub(super) fn slot_of(members: &[Member], id: u64) -> u8 {
    members.iter().find(|member| member.id == id).map_or(NO_SLOT, |member| member.slot)
}

impl Replica {
    /// The members as of the last applied entry.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.state.members
    }

    /// Adds a member once a quorum has agreed. It gets its vote when it has caught up. A replica that lost its disk must join as a new
    /// member.
    ///
    /// # Errors
    /// Why the change is invalid, or not possible now.
    pub fn add_member(&mut self, now: Nanos, new: Member) -> Result<(), ChangeError> {
        if usize::from(new.slot) >= REPLICAS_MAX {
            return Err(ChangeError::NoPlace(new.slot));
        }
        if new.id == 0 {
            return Err(ChangeError::NoId);
        }
        if self.config.mode == Mode::Unreplicated {
            return Err(ChangeError::Unreplicated);
        }
        for member in &self.state.members {
            let taken = |what, which: String| Err(ChangeError::Taken { what, which });
            if member.id == new.id {
                return taken("id", new.id.to_string());
            }
            if member.slot == new.slot {
                return taken("place", new.slot.to_string());
            }
            if member.address == new.address {
                return taken("address", new.address.to_string());
            }
            if member.links == new.links {
                return taken("address for links", new.links.to_string());
            }
        }
        let mut members = self.state.members.clone();
        let id = new.id;
        members.push(new);
        self.change(now, id, ConfChangeType::AddLearnerNode, &members)
    }

    /// Removes a member once a quorum has agreed.
    ///
    /// # Errors
    /// Why the change is invalid, or not possible now.
    pub fn remove_member(&mut self, now: Nanos, id: u64) -> Result<(), ChangeError> {
        let mut members = self.state.members.clone();
        members.retain(|member| member.id != id);
        if members.len() == self.state.members.len() {
            return Err(ChangeError::NoMember(id));
        }
        if members.is_empty() {
            return Err(ChangeError::Last);
        }
        if id == self.config.id {
            return Err(ChangeError::Itself(id));
        }
        self.change(now, id, ConfChangeType::RemoveNode, &members)
    }

    /// Whether a replica was heard within an election timeout.
    pub(super) fn is_heard(&self, now: Nanos, id: u64) -> bool {
        let lately = |at: &Nanos| now < at + self.config.timing.promise;
        // A replica that is not a member yet sends only its greeting.
        let is_new = self.state.members.iter().all(|member| member.id != id);
        id == self.config.id || self.heard.get(&id).is_some_and(lately) || is_new && self.links.is_greeted(id)
    }

    /// Without a majority that is heard, the change could not be reversed.
    fn check_majority(&self, now: Nanos, members: &[Member]) -> Result<(), ChangeError> {
        if planted(168) {
            return Ok(());
        }
        let needed = members.len() / 2 + 1;
        let (heard, silent): (Vec<_>, Vec<_>) =
            members.iter().map(|member| member.id).partition(|&id| self.is_heard(now, id));
        let (members, heard) = (members.len(), heard.len());
        if heard >= needed { Ok(()) } else { Err(ChangeError::TooFew { members, needed, heard, silent }) }
    }

    fn change(&mut self, now: Nanos, id: u64, what: ConfChangeType, members: &[Member]) -> Result<(), ChangeError> {
        self.check_leads()?;
        let learner = self.node.learner();
        if learner.is_some_and(|learner| learner != id) {
            return Err(ChangeError::Busy { learner });
        }
        self.check_majority(now, members)?;
        self.propose_members(id, what, members).ok_or(ChangeError::Busy { learner: None })?;
        self.go_on(now);
        Ok(())
    }

    fn propose_members(&mut self, id: u64, what: ConfChangeType, members: &[Member]) -> Option<u64> {
        let mut single = ConfChangeSingle::default();
        single.set_change_type(what);
        single.node_id = id;
        let mut change = ConfChangeV2::default();
        change.set_changes(vec![single].into());
        let context = postcard::to_allocvec(members).expect("members are plain data, and memory grows as needed");
        self.node.propose_change(context, change)
    }

    /// Whether a change is in progress: not applied, not yet sure to survive a loss of the leader, or with a learner.
    pub(super) fn is_changing(&self) -> bool {
        let is_safe = self.changes.is_sealed(self.node.committed());
        self.node.is_leader() && (!is_safe || self.node.has_pending_change() || self.node.learner().is_some())
    }

    pub(super) fn attend_members(&mut self, now: Nanos) {
        if !self.changes.is_sealed(u64::MAX) && self.node.has_applied_former_terms() {
            self.changes.seal = self.node.propose(Vec::new());
        }
        match self.node.learner() {
            Some(id) => self.attend_learner(now, id),
            None => self.changes.learner = None,
        }
    }

    /// Gives a learner its vote when it has caught up. One that takes too long is removed and reported.
    fn attend_learner(&mut self, now: Nanos, id: u64) {
        let known = self.changes.learner.filter(|(learner, _)| *learner == id);
        let (_, since) = *self.changes.learner.insert(known.unwrap_or((id, now)));
        let mut members = self.state.members.clone();
        if self.has_caught_up(id) && self.is_heard(now, id) {
            self.propose_members(id, ConfChangeType::AddNode, &members);
        } else if now >= since + self.config.learn_within {
            members.retain(|member| member.id != id);
            if self.propose_members(id, ConfChangeType::RemoveNode, &members).is_some() {
                self.events.push_back(Event::LeftBehind(id));
            }
        }
    }

    fn has_caught_up(&self, id: u64) -> bool {
        let matched = self.node.matched(id);
        matched > 0 && matched + CAUGHT_UP >= self.node.committed()
    }

    pub(super) fn apply_change(&mut self, entry: &Entry) {
        let Some((change, members)) = change_of(entry) else {
            self.counters.unknown_entries += 1;
            return self
                .fail("the log has a change of the members that cannot be read: use a newer program for this replica");
        };
        (self.changes.applied, self.changes.seal) = (entry.index, None);
        // An entry that one replica cannot apply, no replica can. All ignore it.
        let Ok(conf_state) = self.node.apply_change(&change) else {
            self.counters.unknown_entries += 1;
            return;
        };
        self.node.log_mut().set_conf_state(conf_state);
        let Some(members) = members else { return };
        self.wants_snapshot |= members.len() > self.state.members.len() && !planted(184);
        let was_member = self.slot() != NO_SLOT;
        self.state.members = members;
        self.node.set_position(self.slot());
        // It may have been elected since the proposal.
        if self.node.is_leader() && self.slot() == NO_SLOT && !planted(182) {
            self.node.step_down(self.now);
        }
        self.heard.retain(|id, _| self.state.members.iter().any(|member| member.id == *id));
        if was_member && self.slot() == NO_SLOT {
            self.note_removal(None);
        }
        self.wants_announcement = true;
    }

    pub(super) fn note_removal(&mut self, peer: Option<u64>) {
        if !std::mem::replace(&mut self.has_left, true) {
            self.events.push_back(Event::Removed(peer));
        }
    }
}
