//! Time. A party's times are what is left on its own clock, so a clock step takes one from each. With drift, no clock
//! is more than one step ahead of another: two of them may measure one interval with a difference of up to two steps,
//! which ρ bounds.

use super::state::{Leader, Message, Replica, Switch};
use super::world::{Step, World};
use std::mem;

impl World<'_> {
    fn parties(&self) -> u8 {
        self.scope.members.places() + self.state.switches.len() as u8
    }

    pub(super) fn ticks(&self, steps: &mut Vec<Step>) {
        if self.state.budget.ticks == 0 || !self.something_runs() {
            return;
        }
        if self.scope.timing.drift {
            let behind = (0..self.parties()).filter(|party| self.state.ahead >> party & 1 == 0);
            steps.extend(behind.map(|party| Step::Tick(Some(party))));
        } else {
            steps.push(Step::Tick(None));
        }
    }

    /// Whether any time is left on any clock; otherwise a tick changes nothing.
    fn something_runs(&self) -> bool {
        let lease = |switch: &Switch| switch.session.as_ref().is_some_and(|session| session.lease > 0);
        let of_replica = |replica: &Replica| {
            let waits = |leader: &Leader| {
                leader.lease > 0 || leader.since_answer > 0 || leader.doubtful.iter().any(|session| session.wait > 0)
            };
            replica.promise > 0 || replica.leader.as_ref().is_some_and(waits)
        };
        let on_its_way = |message: &Message| matches!(message, Message::Activate { left: Some(_), .. });
        let state = &self.state;
        state.switches.iter().any(lease)
            || state.replicas.iter().any(of_replica)
            || state.messages.iter().any(on_its_way)
    }

    pub(super) fn tick(&mut self, party: Option<u8>) {
        let Some(party) = party else {
            (0..self.parties()).for_each(|party| self.tick_one(party));
            return;
        };
        self.tick_one(party);
        self.state.ahead |= 1 << party;
        if self.state.ahead == (1 << self.parties()) - 1 {
            self.state.ahead = 0;
        }
    }

    fn tick_one(&mut self, party: u8) {
        match party.checked_sub(self.scope.members.places()) {
            None => self.tick_replica(party),
            Some(switch) => self.tick_switch(switch),
        }
    }

    fn tick_replica(&mut self, replica: u8) {
        let state = &mut self.state.replicas[usize::from(replica)];
        state.promise = state.promise.saturating_sub(1);
        let Some(leader) = &mut state.leader else { return };
        leader.lease = leader.lease.saturating_sub(1);
        leader.heard = leader.heard.map(|left| left.saturating_sub(1));
        leader.since_answer = leader.since_answer.saturating_sub(1);
        for session in &mut leader.doubtful {
            session.wait = session.wait.saturating_sub(1);
        }
        self.end_waits(replica);
    }

    /// The switch's lease and its timestamps in flight: an ACTIVATE whose echo has expired is never accepted.
    fn tick_switch(&mut self, number: u8) {
        if let Some(session) = &mut self.state.switches[usize::from(number)].session {
            session.lease = session.lease.saturating_sub(1);
        }
        let messages = mem::take(&mut self.state.messages);
        let older = messages.into_iter().filter_map(|message| {
            let is_stamped_here = matches!(message, Message::Activate { switch, .. } if switch == number);
            match message.left().filter(|_| is_stamped_here) {
                Some(left) => (left > 1).then(|| message.with_left(Some(left - 1))),
                None => Some(message),
            }
        });
        self.state.messages = older.collect();
        self.state.messages.sort_unstable();
        self.state.messages.dedup();
    }
}
