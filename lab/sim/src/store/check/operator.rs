//! The set's operator: the intended membership, and the requests to the leader for it. A place is a node; its replica
//! gets a new id after it lost its disk.

use super::run::StoreSubject;
use super::trial::Party;
use crate::Action;
use crate::store::Order;
use midflight_endpoint::{MS, Nanos};
use midflight_store::replica::{Member, Replica, Role};

pub(super) const OPERATOR: Nanos = 20 * MS;
const SECOND_IDS: u64 = 100;

#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) member: Member,
    /// Lives of the place: each has its own id.
    pub(super) lives: u64,
    pub(super) goal: Goal,
    /// Started without its data under its old id by mistake; `true`: as one that joins.
    pub(super) mistake: Option<bool>,
    /// The former replica, which may still be a member.
    former: Option<u64>,
    has_joined: bool,
}

/// The operator's goal for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    In,
    Join,
    Leave,
    /// Leave, and return with an empty disk.
    Renew,
    Out,
}

impl Place {
    pub(super) fn new(member: Member, is_first: bool) -> Self {
        let goal = if is_first { Goal::In } else { Goal::Out };
        Self { member, lives: 0, goal, mistake: None, former: None, has_joined: is_first }
    }

    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.goal, Goal::In | Goal::Join | Goal::Renew)
    }

    fn is_settled(&self) -> bool {
        matches!(self.goal, Goal::In | Goal::Out)
    }

    /// After a lost disk, the place gets a new replica id.
    fn begin_life(&mut self, place: usize) {
        self.former = Some(self.member.id);
        self.lives += 1;
        self.member.id = SECOND_IDS * (place as u64 + 1) + self.lives;
        (self.goal, self.has_joined, self.mistake) = (Goal::Join, false, None);
    }
}

impl StoreSubject {
    fn place(&self, place: usize) -> Place {
        self.set.borrow()[place].clone()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.set.borrow().iter().all(Place::is_settled)
    }

    /// For a current member this is a mistake, which the leader must refuse.
    pub(super) fn join(&mut self, place: usize) {
        let Place { goal, member, .. } = self.place(place);
        match goal {
            Goal::Out if self.set.borrow()[place].has_joined => self.begin_again(place),
            Goal::Out => self.set.borrow_mut()[place].goal = Goal::Join,
            _ => self.ask_leader(Order::Add(member)),
        }
    }

    /// `false` if it is the last member, which stays.
    pub(super) fn leave(&mut self, place: usize) -> bool {
        let others =
            (0..self.run.trial.places()).filter(|other| *other != place && self.place(*other).is_wanted()).count();
        let goal = self.place(place).goal;
        if goal == Goal::In && others > 0 {
            self.set.borrow_mut()[place].goal = Goal::Leave;
        } else if goal == Goal::Out {
            // A mistake: the leader must refuse it.
            self.ask_leader(Order::Remove(self.place(place).member.id));
        }
        goal == Goal::In && others > 0
    }

    /// Revokes [`leave`](Self::leave).
    pub(super) fn come_back(&mut self, place: usize) {
        let goal = &mut self.set.borrow_mut()[place].goal;
        if matches!(goal, Goal::Leave | Goal::Out) {
            *goal = Goal::Renew;
        }
    }

    /// One replica at a time may lose its disk, and only while no other leaves: otherwise more than a minority could be
    /// lost (R2).
    pub(super) fn wipe(&mut self, place: usize) -> bool {
        if !self.may_wipe(place) {
            return false;
        }
        let node = self.run.node(Party::Replica(place));
        self.set.borrow_mut()[place].begin_life(place);
        self.run.crash(node);
        self.run.act(Action::Wipe(node));
        true
    }

    fn may_wipe(&self, place: usize) -> bool {
        let voters = (0..self.run.trial.places()).filter(|place| self.place(*place).goal == Goal::In).count();
        let has_mistake = self.set.borrow().iter().any(|place| place.mistake.is_some());
        self.is_settled() && voters >= 3 && self.place(place).goal == Goal::In && !has_mistake
    }

    /// A first replica that lost its disk starts under its old id.
    pub(super) fn begin_mistake(&mut self, place: usize, joins: bool) -> bool {
        if !self.may_wipe(place) || place >= self.run.trial.replicas || self.place(place).lives > 0 {
            return false;
        }
        let node = self.run.node(Party::Replica(place));
        self.set.borrow_mut()[place].mistake = Some(joins);
        self.run.crash(node);
        self.run.act(Action::Wipe(node));
        self.run.restart(node);
        true
    }

    /// The operator notices, and starts a replacement.
    pub(super) fn end_mistake(&mut self, place: usize) {
        if self.place(place).mistake.is_some() {
            self.begin_again(place);
        }
    }

    /// Restarts a non-member's place with an empty disk, under a new id.
    fn begin_again(&mut self, place: usize) {
        let node = self.run.node(Party::Replica(place));
        self.set.borrow_mut()[place].begin_life(place);
        self.run.crash(node);
        self.run.act(Action::Wipe(node));
        self.run.restart(node);
    }

    /// Requests all missing changes of the leader, several at once, and repeats them until each is made. Only a leader
    /// with a session knows the members: it has applied all that was committed before its election.
    pub(super) fn operate(&mut self) {
        let Some(leader) = self.leader().filter(|leader| self.has_session_at(*leader)) else { return };
        let known: Vec<u64> = self.replica(leader).into_iter().flat_map(Replica::members).map(|m| m.id).collect();
        let is_changing = self.replica(leader).is_none_or(|leader| leader.status(0).is_changing);
        for place in 0..self.run.trial.places() {
            let Place { member, goal, former, has_joined, .. } = self.place(place);
            let is_member = known.contains(&member.id);
            match (goal, former.filter(|former| known.contains(former))) {
                (Goal::In | Goal::Out, _) => {}
                (_, Some(former)) => self.ask_leader(Order::Remove(former)),
                (Goal::Leave | Goal::Renew, _) if is_member => self.remove(place, leader),
                (Goal::Join, _) if is_member => self.settle(place, leader),
                (Goal::Join, _) if !has_joined => self.ask_leader(Order::Add(member)),
                // A replica that leaves, or is removed because it has not caught up, is needed until that is done.
                _ if is_changing => {}
                (Goal::Leave, _) => self.set.borrow_mut()[place].goal = Goal::Out,
                (Goal::Renew | Goal::Join, _) => self.begin_again(place),
            }
        }
    }

    fn has_session_at(&self, place: usize) -> bool {
        self.replica(place).is_some_and(|replica| replica.status(0).session.is_some())
    }

    /// A leader does not remove itself: it hands over first.
    fn remove(&mut self, place: usize, leader: usize) {
        let next = (0..self.run.trial.places()).find(|other| *other != place && self.place(*other).goal == Goal::In);
        match next {
            Some(next) if place == leader => self.ask_leader(Order::Transfer(self.place(next).member.id)),
            _ => self.ask_leader(Order::Remove(self.place(place).member.id)),
        }
    }

    /// Marks a new member as joined once it is a voter and has applied what is committed.
    fn settle(&mut self, place: usize, leader: usize) {
        let status = |place| self.replica(place).map(|replica| replica.status(0));
        let is_in = status(place).zip(status(leader)).is_some_and(|(new, leader)| {
            matches!(new.role, Role::Follower | Role::Leader) && new.applied >= leader.committed && !leader.is_changing
        });
        let place = &mut self.set.borrow_mut()[place];
        place.has_joined = true;
        if is_in {
            (place.goal, place.former) = (Goal::In, None);
        }
    }
}
