//! The model's steps: which are possible in a state, and what each does.

use super::applied::Applied;
use super::history::{Kind, Operation, Status, is_linearizable, returned};
use super::planted::Planted;
use super::scope::Scope;
use super::state::{Kgroup, Message, Replica, State, What};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A client's request, or a copy of it, passes a switch; a READ of a stable key group goes to this replica.
    Pass {
        operation: u8,
        switch: u8,
        replica: u8,
    },
    /// Planted: the first step of a READ at a switch that reads a key group in two.
    PassHalf {
        operation: u8,
        switch: u8,
    },
    Deliver(Message),
    /// A message arrives, and a copy of it stays in flight.
    DeliverCopy(Message),
    /// The leader closes the key group of a READ whose write has not come.
    Refresh(Message),
    Replicate {
        leader: u8,
        follower: u8,
        is_heard: bool,
    },
    Heartbeat {
        leader: u8,
        loses_chunk: bool,
    },
    /// A replica is elected with the votes of others, a bit each, and proposes a session at a switch.
    Elect {
        candidate: u8,
        voters: u8,
        switch: u8,
    },
    /// A leader proposes these voters, a bit each.
    Change {
        leader: u8,
        voters: u8,
    },
    Move {
        leader: u8,
        switch: u8,
    },
    Fence {
        leader: u8,
        place: u8,
    },
    Transfer {
        leader: u8,
        to: u8,
    },
    Abort {
        leader: u8,
    },
    /// FLUSHDB.
    Flush {
        leader: u8,
        operation: u8,
    },
    /// A copy of the message by which a client opens an id.
    Open {
        leader: u8,
    },
    Expire {
        leader: u8,
    },
    /// Planted: an accepted write is appended to the log.
    AppendOutside {
        leader: u8,
    },
    RestartSwitch {
        switch: u8,
    },
    RestartReplica {
        replica: u8,
    },
    Wipe {
        replica: u8,
    },
    /// Time passes for one clock (replicas first, then switches), or (`None`) for all.
    Tick(Option<u8>),
}

/// A state and the scope whose rules it follows.
pub(super) struct World<'a> {
    pub(super) scope: &'a Scope,
    pub(super) state: State,
}

impl World<'_> {
    pub(super) fn send(&mut self, message: Message) {
        if let Err(place) = self.state.messages.binary_search(&message) {
            self.state.messages.insert(place, message);
        }
    }

    pub(super) fn begin(&mut self, operation: u8) {
        let before = returned(&self.state.operations);
        let client = self.own_id();
        let operation = &mut self.state.operations[usize::from(operation)];
        if operation.status == Status::Unsent {
            (operation.status, operation.before, operation.client) = (Status::Pending, before, client.unwrap_or(0));
        }
    }

    /// The writing client's id: of its first opening, once that is committed.
    fn own_id(&self) -> Option<u8> {
        if !self.scope.one_writer {
            return None;
        }
        let told = self.state.operations.iter().map(|operation| operation.client).find(|&client| client > 0);
        let committed =
            |replica: &Replica| Applied::of(&replica.log[..usize::from(replica.commit)], self.scope).first_client();
        told.or_else(|| self.state.replicas.iter().find_map(committed))
    }

    pub(super) fn answer(&mut self, operation: u8, value: u8) {
        let operation = &mut self.state.operations[usize::from(operation)];
        if operation.status == Status::Pending {
            operation.status = Status::Returned(value);
            self.state.broken |= !is_linearizable(&self.state.operations);
        }
    }

    pub(super) fn steps(&self, steps: &mut Vec<Step>) {
        self.client_steps(steps);
        let messages = &self.state.messages;
        let deliverable = messages.iter().filter(|message| !matches!(message, Message::TimeoutNow { .. }));
        steps.extend(deliverable.copied().map(Step::Deliver));
        if self.state.budget.copies > 0 {
            let once = messages.iter().filter(|message| !message.stays());
            steps.extend(once.copied().map(Step::DeliverCopy));
        }
        if self.state.budget.refreshes > 0 {
            let reads = messages.iter().filter(|message| matches!(message, Message::LeaderRead { seq: 1.., .. }));
            steps.extend(reads.copied().map(Step::Refresh));
        }
        for replica in self.places() {
            self.replica_steps(replica, steps);
        }
        self.election_steps(steps);
        self.fault_steps(steps);
        self.ticks(steps);
    }

    fn switches(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.state.switches.len() as u8
    }

    fn client_steps(&self, steps: &mut Vec<Step>) {
        for (operation, state) in (0..).zip(&self.state.operations) {
            let budget = &self.state.budget;
            let left = if state.kind == Kind::Read { budget.reads } else { budget.writes };
            let is_vain = state.kind == Kind::Read && (state.has_returned() || !self.may_matter(operation));
            if left == 0 || is_vain || state.kind == Kind::Flush || !self.may_begin(operation) {
                continue;
            }
            for switch in self.switches() {
                self.passes(operation, switch, steps);
            }
        }
    }

    /// A read that begins before any operation has returned breaks nothing, unless another read follows it.
    fn may_matter(&self, operation: u8) -> bool {
        let operations = &self.state.operations;
        let follows = |(number, other): (usize, &Operation)| {
            number != usize::from(operation) && other.kind == Kind::Read && other.status == Status::Unsent
        };
        operations[usize::from(operation)].status != Status::Unsent
            || returned(operations) != 0
            || operations.iter().enumerate().any(follows)
    }

    /// A single writer writes one after the other, and under an id.
    fn may_begin(&self, operation: u8) -> bool {
        let own = &self.state.operations[usize::from(operation)];
        if !self.scope.one_writer || own.kind == Kind::Read || own.status != Status::Unsent {
            return true;
        }
        let earlier = &self.state.operations[..usize::from(operation)];
        self.own_id().is_some() && earlier.iter().all(|earlier| earlier.kind == Kind::Read || earlier.has_returned())
    }

    fn passes(&self, operation: u8, switch: u8, steps: &mut Vec<Step>) {
        let Some(session) = self.active(switch) else { return };
        let half = self.state.switches[usize::from(switch)].half_read;
        let found = match (self.state.operations[usize::from(operation)].kind, half) {
            (Kind::Read, Some((of, read))) if of == operation => {
                Kgroup { stable: session.kgroup(0).stable, ..read } // the second step
            }
            (Kind::Read, _) if self.scope.has(Planted::TwoStepRead) => {
                return steps.extend(half.is_none().then_some(Step::PassHalf { operation, switch }));
            }
            (Kind::Read, _) => session.kgroup(0),
            _ => return steps.push(Step::Pass { operation, switch, replica: 0 }),
        };
        if found.stable {
            steps.extend(session.consistent(found).map(|replica| Step::Pass { operation, switch, replica }));
        } else {
            steps.push(Step::Pass { operation, switch, replica: 0 });
        }
    }

    fn replica_steps(&self, leader: u8, steps: &mut Vec<Step>) {
        let budget = &self.state.budget;
        let Some(memory) = &self.state.replicas[usize::from(leader)].leader else { return };
        for follower in self.places().filter(|&follower| self.may_replicate(leader, follower)) {
            steps.push(Step::Replicate { leader, follower, is_heard: true });
            if budget.lost_acks > 0 {
                steps.push(Step::Replicate { leader, follower, is_heard: false });
            }
        }
        if budget.heartbeats > 0 && self.may_send_heartbeat(leader) {
            steps.push(Step::Heartbeat { leader, loses_chunk: false });
            if self.scope.has(Planted::LostChunk) {
                steps.push(Step::Heartbeat { leader, loses_chunk: true });
            }
        }
        if budget.moves > 0 && memory.sid.is_some() && !memory.barred {
            steps.extend(self.switches().map(|switch| Step::Move { leader, switch }));
        }
        steps.extend((0..memory.doubtful.len() as u8).map(|place| Step::Fence { leader, place }));
        if budget.transfers > 0 && !memory.barred {
            let others = self.places().filter(|&to| to != leader);
            steps.extend(others.map(|to| Step::Transfer { leader, to }));
        }
        if budget.changes > 0 && !memory.barred {
            steps.extend(self.changes(leader).map(|voters| Step::Change { leader, voters }));
        }
        if memory.barred {
            steps.push(Step::Abort { leader });
        }
        if !memory.outside.is_empty() {
            steps.push(Step::AppendOutside { leader });
        }
        if budget.opens > 0 {
            steps.push(Step::Open { leader });
        }
        if budget.expiries > 0 && self.own_id().is_some() {
            steps.push(Step::Expire { leader });
        }
        for (operation, state) in (0..).zip(&self.state.operations) {
            if state.kind == Kind::Flush && state.status == Status::Unsent && memory.sid.is_some() {
                steps.push(Step::Flush { leader, operation });
            }
        }
    }

    fn election_steps(&self, steps: &mut Vec<Step>) {
        if self.state.budget.elections == 0 {
            return;
        }
        for candidate in self.places() {
            for voters in self.quorums(candidate) {
                steps.extend(self.switches().map(|switch| Step::Elect { candidate, voters, switch }));
            }
        }
    }

    fn fault_steps(&self, steps: &mut Vec<Step>) {
        let budget = &self.state.budget;
        if budget.switch_restarts > 0 {
            steps.extend(self.switches().map(|switch| Step::RestartSwitch { switch }));
        }
        if budget.replica_restarts > 0 {
            steps.extend(self.places().map(|replica| Step::RestartReplica { replica }));
        }
        if budget.wipes > 0 {
            let followers = self.places().filter(|&one| self.state.replicas[usize::from(one)].leader.is_none());
            steps.extend(followers.map(|replica| Step::Wipe { replica }));
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        let budget = &mut self.state.budget;
        match step {
            Step::Pass { operation, switch, replica } => self.pass(operation, switch, replica),
            Step::PassHalf { operation, switch } => {
                self.begin(operation);
                let read = self.active(switch).map(|session| (operation, session.kgroup(0)));
                self.state.switches[usize::from(switch)].half_read = read;
            }
            Step::Deliver(message) => {
                if !message.stays() {
                    self.state.messages.retain(|other| *other != message);
                }
                self.deliver(message);
            }
            Step::DeliverCopy(message) => {
                budget.copies -= 1;
                self.deliver(message);
            }
            Step::Refresh(message) => {
                budget.refreshes -= 1;
                self.refresh(message);
            }
            Step::Replicate { leader, follower, is_heard } => {
                budget.lost_acks -= u8::from(!is_heard);
                self.replicate(leader, follower, is_heard);
            }
            Step::Heartbeat { leader, loses_chunk } => {
                budget.heartbeats -= 1;
                self.send_heartbeat(leader, loses_chunk);
            }
            Step::Elect { candidate, voters, switch } => {
                budget.elections -= 1;
                self.elect(candidate, voters, switch);
            }
            Step::Change { leader, voters } => {
                budget.changes -= 1;
                self.change(leader, voters);
            }
            Step::Move { leader, switch } => {
                budget.moves -= 1;
                self.leave_session(leader);
                self.propose_session(leader, switch);
            }
            Step::Fence { leader, place } => self.fence(leader, usize::from(place)),
            Step::Transfer { leader, to } => {
                budget.transfers -= 1;
                self.begin_transfer(leader, to);
            }
            Step::Abort { leader } => self.abort_transfer(leader),
            Step::Flush { leader, operation } => self.flush(leader, operation),
            Step::Open { leader } => {
                budget.opens -= 1;
                self.append(leader, What::Open);
            }
            Step::Expire { leader } => {
                budget.expiries -= 1;
                let client = self.own_id().unwrap_or(0);
                self.append(leader, What::Expire { client });
            }
            Step::AppendOutside { leader } => self.append_outside(leader),
            Step::RestartSwitch { switch } => {
                budget.switch_restarts -= 1;
                self.restart_switch(switch);
            }
            Step::RestartReplica { replica } => {
                budget.replica_restarts -= 1;
                self.restart_replica(replica);
            }
            Step::Wipe { replica } => {
                budget.wipes -= 1;
                self.wipe(replica);
            }
            Step::Tick(party) => {
                budget.ticks -= 1;
                self.tick(party);
            }
        }
    }

    fn pass(&mut self, operation: u8, switch: u8, replica: u8) {
        let kind = self.state.operations[usize::from(operation)].kind;
        if kind == Kind::Read {
            self.state.budget.reads -= 1;
            let half = self.state.switches[usize::from(switch)].half_read.take();
            let Some(now) = self.active(switch).map(|session| session.kgroup(0)) else { return };
            let found = half.map_or(now, |(_, read)| Kgroup { stable: now.stable, ..read });
            self.pass_read(operation, switch, replica, found);
        } else {
            self.state.budget.writes -= 1;
            self.pass_write(operation, switch, u8::from(kind == Kind::WriteByWrongHash));
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Write { .. } => self.take_write(message),
            Message::LeaderRead { .. } => self.take_leader_read(message),
            Message::Read { .. } => self.take_read(message),
            Message::Close { .. } => self.pass_close(message),
            Message::Activate { .. } => self.activate(message),
            Message::TimeoutNow { .. } => {}
        }
    }

    fn fence(&mut self, leader: u8, place: usize) {
        let Some(session) = self.leader(leader).map(|memory| memory.doubtful[place]) else { return };
        self.neutralise(session.switch, session.sid);
        self.end_doubt(leader, place);
    }
}
