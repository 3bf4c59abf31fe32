//! After the last fault the store must recover within stated times; then the history of all operations must be
//! linearizable.

use super::rules::*;
use super::run::StoreSubject;
use super::trial::{Mode, Party};
use crate::Action;
use crate::check::{Checked, Subject, holds};
use crate::store::{Ask, nodes};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_spec::store::history::{BYTES_MAX, Verdict};
use midflight_store::client::Operation;
use midflight_store::replica::Role;
use std::collections::BTreeSet;

/// Limit for all operations to end after the last fault: elections, sessions, and repeats, one after the other.
const ALL_END: Nanos = 20 * SECOND;
/// Limit for a session at a switch; also for the intended membership with all replicas caught up.
const SESSION: Nanos = 3 * SECOND;
/// Reads show the leader which key groups are unstable; a while later it makes them stable, if that message is not
/// lost. At 5 % loss, this many consecutive losses do not occur. (The rounds also outlast the second in which a leader
/// sends no READs to a replica that faults had hidden from the switch.)
const REFRESHES: u32 = 13;
const REFRESH: Nanos = 100 * MS;
const CHECK_EVERY: Nanos = 20 * MS;
/// Reads per key that show which replicas serve it.
const SAMPLE: usize = 24;

impl StoreSubject {
    pub(super) fn all_heals(&mut self) -> Checked {
        self.within(SESSION, Self::has_session)?;
        for client in self.run.places.of(Party::Client).collect::<Vec<_>>() {
            self.run.act(Action::command(client, Ask::Stop));
        }
        self.within(ALL_END, Self::all_have_ended)?;
        self.within(SESSION, Self::all_have_caught_up)?;
        for _ in 0..REFRESHES {
            self.read_all(1);
            self.within(ALL_END, Self::all_have_ended)?;
            self.run_until(self.run.world.now() + REFRESH)?;
        }
        self.reads_spread()?;
        self.is_sound()?;
        self.is_linearizable()
    }

    fn within(&mut self, time: Nanos, is_so: impl Fn(&Self) -> Checked) -> Checked {
        let until = self.run.world.now() + time;
        while let Err(broken) = is_so(self) {
            if self.run.world.now() >= until {
                return Err(broken);
            }
            self.run_until(self.run.world.now() + CHECK_EVERY)?;
        }
        Ok(())
    }

    /// R5: a leader has a session at a switch.
    fn has_session(&self) -> Checked {
        let leader = self.leader().and_then(|leader| self.replica(leader));
        let session = leader.and_then(|leader| leader.status(0).session);
        holds!(R5, session.is_some(), "no session {} ms after the last fault", SESSION / MS);
        Ok(())
    }

    /// R5: no operation is open.
    fn all_have_ended(&self) -> Checked {
        let open = self.run.findings().open();
        holds!(R5, open == 0, "{open} operations have no end {} s after the last fault", ALL_END / SECOND);
        Ok(())
    }

    /// R6: every intended member is a voter and has applied what is committed.
    fn all_have_caught_up(&self) -> Checked {
        let leader = self.leader().and_then(|leader| self.replica(leader));
        let Some(leader) = leader.map(|leader| leader.status(0)) else { return self.has_session() };
        let members: BTreeSet<u64> = leader.members.iter().map(|(member, _)| member.id).collect();
        let wanted: BTreeSet<u64> =
            self.set.borrow().iter().filter(|place| place.is_wanted()).map(|p| p.member.id).collect();
        holds!(R6, members == wanted, "the set has the members {members:?}, not {wanted:?}: {leader:?}");
        for place in self.wanted() {
            let Some(status) = self.replica(place).map(|replica| replica.status(0)) else {
                holds!(R6, false, "replica {place} does not run");
                continue;
            };
            let is_in = !matches!(status.role, Role::Outside | Role::Learner);
            holds!(R6, is_in, "replica {place} has no vote: {status:?}; the leader {leader:?}");
            let (applied, committed) = (status.applied, leader.committed);
            holds!(
                R6,
                applied >= committed,
                "replica {place} has applied {applied}, and {committed} is committed: {status:?}"
            );
        }
        Ok(())
    }

    fn read_all(&mut self, times: usize) {
        let client = self.run.node(Party::Client(0));
        for key in self.load.keys.clone() {
            for _ in 0..times {
                let operation = Operation::Get { key: key.clone().into_bytes() };
                self.run.act(Action::command(client, Ask::Do(operation)));
            }
        }
    }

    /// R6: every key group that is read is stable, and followers serve its reads, unless the mode sends all to the
    /// leader.
    fn reads_spread(&mut self) -> Checked {
        let (served, leader_only) = (self.served(), self.leader_only());
        self.read_all(SAMPLE);
        self.within(ALL_END, Self::all_have_ended)?;
        let to_leader = self.leader_only() - leader_only;
        holds!(R6, to_leader == 0, "{to_leader} reads find an unstable key group, though nobody writes");
        let (after, members) = (self.served(), self.wanted());
        let idle: Vec<usize> = members.iter().copied().filter(|place| after[*place] == served[*place]).collect();
        let all_to_leader = matches!(self.run.trial.set.mode, Mode::Raft | Mode::LeaderLease | Mode::Unreplicated);
        // Network faults may hide a replica from its leader for a while, but not most of them.
        holds!(R6, all_to_leader || idle.len() <= members.len() / 2, "the replicas {idle:?} serve no reads");
        Ok(())
    }

    /// Reads that found an unstable key group, at all switches.
    fn leader_only(&self) -> u64 {
        let switches = self.run.places.of(Party::Switch).filter_map(|node| nodes::switch(&self.run.world, node));
        switches.flat_map(|switch| switch.stats().present().map(|set| set.leader_only).collect::<Vec<_>>()).sum()
    }

    fn served(&self) -> Vec<u64> {
        let served = |place| self.replica(place).map_or(0, |replica| replica.counters().reads_served);
        (0..self.run.trial.places()).map(served).collect()
    }

    fn wanted(&self) -> Vec<usize> {
        let set = self.set.borrow();
        (0..set.len()).filter(|place| set[*place].is_wanted()).collect()
    }

    fn is_sound(&self) -> Checked {
        for (place, node) in self.run.places.of(Party::Switch).enumerate() {
            let sound = nodes::switch(&self.run.world, node).map_or(Ok(()), super::super::SwitchActor::check);
            holds!(SOUND, sound.is_ok(), "switch {place}: {sound:?}");
        }
        Ok(())
    }

    /// R1, and with it R2 and R3: each acknowledged write is there, once.
    fn is_linearizable(&self) -> Checked {
        match self.run.findings().history.check(BYTES_MAX, &|| false) {
            Verdict::Linearizable => Ok(()),
            Verdict::Violation(violation) => {
                holds!(R1, false, "{violation}");
                Ok(())
            }
            Verdict::TooHard { key, operations, .. } => {
                holds!(R1, false, "the history of {key}, {operations} operations, is too long to be checked");
                Ok(())
            }
        }
    }
}
