//! Merges states with equal futures: drops messages without effect and times that no rule needs, and normalises
//! replicas that differ only in number.

use super::history::{Kind, Operation, Status};
use super::planted::Planted;
use super::state::{Entry, Message, REPLICAS, Replica, State, What};
use super::world::World;
use std::cmp::Ordering;

impl World<'_> {
    /// Whether a read may still return; only that can break a history.
    pub(super) fn is_open(&self) -> bool {
        let asks = |message: &Message| matches!(message, Message::Read { .. } | Message::LeaderRead { .. });
        !self.state.broken && (self.state.budget.reads > 0 || self.state.messages.iter().any(asks))
    }

    pub(super) fn reduced(mut self) -> State {
        let messages = std::mem::take(&mut self.state.messages);
        self.state.messages = messages.iter().filter(|message| self.has_effect(message, &messages)).copied().collect();
        self.forget_times();
        let [_, one, two, _] = self.state.replicas.each_ref().map(rank);
        match one.cmp(&two) {
            Ordering::Less => self.state,
            Ordering::Greater => mirror(self.state),
            Ordering::Equal => mirror(self.state.clone()).min(self.state),
        }
    }

    fn has_effect(&self, message: &Message, all: &[Message]) -> bool {
        let state = &self.state;
        let is_over = |operation: u8| state.operations[usize::from(operation)].has_returned();
        let leads = |replica: u8, sid| {
            let memory = state.replicas[usize::from(replica)].leader.as_ref();
            let takes_old = self.scope.has(Planted::OldSessionWrite);
            memory.is_some_and(|memory| memory.sid == Some(sid) || takes_old && memory.sid > Some(sid))
        };
        match *message {
            Message::Write { leader, sid, .. } => leads(leader, sid) || self.scope.has(Planted::RestartedLeaderCloses),
            Message::LeaderRead { operation, leader, sid, seq, .. } => {
                leads(leader, sid) && (!is_over(operation) || seq > 0 && state.budget.refreshes > 0)
            }
            Message::Read { operation, .. } => !is_over(operation),
            Message::Close { operation, sid, seq, kgroup, switch, .. } => {
                let session = state.switches[usize::from(switch)].session.as_ref();
                let closes = session.is_some_and(|session| session.sid == sid && session.kgroup(kgroup).seq <= seq);
                closes || operation.is_some_and(|operation| !is_over(operation))
            }
            Message::Activate { sid, switch, incarnation, left, .. } => {
                let ended = self.has_ended(switch, sid);
                let switch = &state.switches[usize::from(switch)];
                let session = switch.session.as_ref().map(|session| session.sid);
                let is_present = switch.incarnation == incarnation || self.scope.has(Planted::SeqReused);
                let is_longer = |other: &Message| other.with_left(left) == *message && other.left() > left;
                is_present && !ended && session <= Some(sid) && !all.iter().any(is_longer)
            }
            Message::TimeoutNow { replica, term } => {
                state.budget.elections > 0 && state.replicas[usize::from(replica)].term <= term
            }
        }
    }

    /// Without further elections no rule needs a promise; without moves, none needs a switch's last answer.
    fn forget_times(&mut self) {
        let no_election = self.state.budget.elections == 0;
        let no_move = self.state.budget.moves == 0 && !self.may_flush();
        for replica in &mut self.state.replicas {
            if no_election {
                replica.promise = 0;
            }
            if let Some(leader) = replica.leader.as_mut().filter(|_| no_move) {
                leader.since_answer = 0;
            }
        }
    }

    fn may_flush(&self) -> bool {
        let waits = |operation: &Operation| operation.kind == Kind::Flush && operation.status == Status::Unsent;
        self.state.operations.iter().any(waits)
    }
}

/// Exchanges replicas 1 and 2: no rule or property distinguishes them.
fn mirror(mut state: State) -> State {
    let swap = |replica: u8| if (1..=2).contains(&replica) { 3 - replica } else { replica };
    let swap_bits = |bits: u8| bits & !0b110 | (bits & 0b010) << 1 | (bits & 0b100) >> 1;
    let swap_matched = |[zero, one, two, three]: [u8; REPLICAS]| [zero, two, one, three];
    state.replicas.swap(1, 2);
    for entry in state.replicas.iter_mut().flat_map(|replica| &mut replica.log) {
        if let What::Members { voters } = &mut entry.what {
            *voters = swap_bits(*voters);
        }
    }
    state.ahead = swap_bits(state.ahead);
    for leader in state.replicas.iter_mut().filter_map(|replica| replica.leader.as_mut()) {
        (leader.matched, leader.heard) = (swap_matched(leader.matched), swap_matched(leader.heard));
    }
    for session in state.switches.iter_mut().filter_map(|switch| switch.session.as_mut()) {
        (session.leader, session.matched) = (swap(session.leader), swap_matched(session.matched));
        let kgroups = session.kgroups.iter_mut().flatten();
        kgroups.for_each(|kgroup| kgroup.consistent = swap_bits(kgroup.consistent));
    }
    for message in &mut state.messages {
        match message {
            Message::Write { leader, .. } | Message::LeaderRead { leader, .. } => *leader = swap(*leader),
            Message::Read { replica, .. } | Message::TimeoutNow { replica, .. } => *replica = swap(*replica),
            Message::Close { consistent, .. } => *consistent = swap_bits(*consistent),
            Message::Activate { leader, matched, .. } => (*leader, *matched) = (swap(*leader), swap_matched(*matched)),
        }
    }
    state.messages.sort_unstable();
    for switch in &mut state.switches {
        if let Some((_, read)) = &mut switch.half_read {
            read.consistent = swap_bits(read.consistent);
        }
    }
    state
}

fn rank(replica: &Replica) -> (u8, u8, u8, bool, &[Entry]) {
    (replica.term, replica.commit, replica.promise, replica.leader.is_some(), &replica.log)
}
