//! Every state of a small instance of the store program, with each step compared with the protocol's switch as its page describes it: one
//! set of two key groups, two replicas, two sessions, two WRITEs in each; all replies, in any order and number, including those that no
//! replica would send.

use midflight_rmt::store::{Answer, Config, Did, Kind, NewSession, Passing, REPLICAS, Store};
use midflight_rmt::{Machine, Target};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// Units of time after which a lease ends, and the last moment.
const LEASE: u32 = 1;
const END: u32 = 2;
const WRITES: u32 = 2;
const LEADER: u8 = 0;
const NOT_LEADER: u8 = 7;
const BEHIND: u8 = 16;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time passes.
    Wait,
    /// The session of this number begins, or is extended.
    Session(u32),
    /// The session ends.
    End,
    Passing(Passing),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Group {
    is_unstable: bool,
    seq: u32,
    index: u32,
    replicas: u8,
}

/// The protocol's switch: a session begins with an empty map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Reference {
    number: u32,
    lease_ends: u32,
    seq: u32,
    answered: u32,
    groups: BTreeMap<u32, Group>,
}

/// s
fn start(number: u32) -> u32 {
    10 * number
}

fn sid(number: u32) -> u64 {
    u64::from(number) << 32 | 5
}

impl Reference {
    fn group(&self, number: u32) -> Group {
        let untouched = Group { index: start(self.number), ..Group::default() };
        self.groups.get(&number).cloned().unwrap_or(untouched)
    }

    fn is_active(&self, now: u32) -> bool {
        now < self.lease_ends
    }

    fn session(&mut self, number: u32, now: u32) {
        if number != self.number {
            *self = Self { number, ..Self::default() };
        }
        self.lease_ends = now + LEASE;
    }

    /// A packet's outcome, destination, SEQ and index.
    fn take(&mut self, p: &Passing) -> (Did, Option<u8>, u32, u32) {
        let (number, is_own) = (p.hash >> 31, p.sid == sid(self.number));
        let is_present = is_own && self.is_active(p.now);
        let mut group = self.group(number);
        match p.kind {
            Kind::Read | Kind::Write if !self.is_active(p.now) => (Did::Refused, None, 0, 0),
            Kind::Read => self.read(&group, p.lot),
            Kind::Write => {
                self.seq += 1;
                group = Group { is_unstable: true, seq: self.seq, ..group };
                self.groups.insert(number, group.clone());
                (Did::Written, Some(LEADER), group.seq, group.index)
            }
            Kind::WriteReply => {
                let seq = p.seq as u32;
                if is_present && seq <= self.seq {
                    self.answered = self.answered.max(seq);
                }
                // SEQ 0 closes nothing here.
                let closes = is_present && p.status != NOT_LEADER && seq != 0 && seq == group.seq;
                if closes && p.index as u32 >= group.index {
                    let closed = Group { is_unstable: false, seq, index: p.index as u32, replicas: p.replicas };
                    self.groups.insert(number, closed);
                    return (Did::Closed, None, 0, 0);
                }
                (Did::Passed, None, 0, 0)
            }
            _ if p.flags & 1 != 0 => {
                let is_good = is_present && p.status != BEHIND;
                (if is_good { Did::Passed } else { Did::Outdated }, None, 0, 0)
            }
            _ if p.status != BEHIND
                && (p.is_relaxed || is_own && (p.slot == LEADER || p.seq == u64::from(group.seq))) =>
            {
                (Did::Passed, None, 0, 0)
            }
            _ if self.is_active(p.now) => (Did::TurnedBack, Some(LEADER), group.seq, group.index),
            _ => (Did::Outdated, None, 0, 0),
        }
    }

    /// The leader has everything, the other replica only entries that the session closes and that replies name.
    fn read(&self, group: &Group, lot: u32) -> (Did, Option<u8>, u32, u32) {
        if group.is_unstable {
            return (Did::LeaderOnly, Some(LEADER), group.seq, group.index);
        }
        let has =
            |slot: u8| group.replicas >> slot & 1 == 1 || matched(self.number)[usize::from(slot)] >= group.index.into();
        let mut who: Vec<u8> = (0..2).filter(|&slot| has(slot)).collect();
        if self.answered < self.seq && who.iter().any(|&slot| slot != LEADER) {
            who.retain(|&slot| slot != LEADER);
        }
        match who.get(((u64::from(lot) * who.len() as u64) >> 32) as usize) {
            Some(&slot) => (Did::Sent, Some(slot), group.seq, group.index),
            None => (Did::LeaderOnly, Some(LEADER), group.seq, group.index),
        }
    }
}

fn matched(number: u32) -> [u64; REPLICAS] {
    let start = u64::from(start(number));
    std::array::from_fn(|slot| if slot == usize::from(LEADER) { start + 1 } else { start })
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    machine: Machine,
    reference: Reference,
    now: u32,
}

fn steps(state: &State) -> Vec<Step> {
    let (now, present) = (state.now, state.reference.number);
    let mut steps = vec![Step::End];
    steps.extend((now < END).then_some(Step::Wait));
    steps.extend((present.max(1)..=2).map(Step::Session));
    let plain = Passing {
        kind: Kind::Read,
        place: 0,
        bits: 1,
        is_relaxed: false,
        avoids_leader: true,
        now,
        lot: 0,
        sid: 0,
        seq: 0,
        index: 0,
        hash: 0,
        client_port: 7000,
        replicas: 0,
        slot: LEADER,
        status: 0,
        flags: 0,
    };
    for hash in [0, u32::MAX] {
        let group = Passing { hash, ..plain };
        steps.extend([0, u32::MAX].map(|lot| Step::Passing(Passing { lot, ..group })));
        if state.reference.seq < WRITES {
            steps.push(Step::Passing(Passing { kind: Kind::Write, ..group }));
        }
        for (session, seq) in (1..=2).flat_map(|session| (0..=WRITES).map(move |seq| (session, seq))) {
            let reply = Passing { sid: sid(session), seq: seq.into(), ..group };
            let write = Passing { kind: Kind::WriteReply, replicas: 0b10, ..reply };
            for index in [start(session) - 1, start(session), start(session) + 2] {
                steps.push(Step::Passing(Passing { index: index.into(), ..write }));
            }
            steps.push(Step::Passing(Passing { index: start(session).into(), status: NOT_LEADER, ..write }));
            let read = Passing { kind: Kind::ReadReply, slot: 1, ..reply };
            let leaders = Passing { slot: LEADER, ..read };
            let relaxed = Passing { is_relaxed: true, ..read };
            let (only, behind) = (Passing { flags: 1, ..leaders }, Passing { status: BEHIND, ..read });
            steps.extend([read, leaders, relaxed, only, behind, Passing { status: BEHIND, ..only }].map(Step::Passing));
        }
    }
    steps
}

fn take(store: &Store, state: &State, step: Step) -> State {
    let State { mut machine, mut reference, now } = state.clone();
    match step {
        Step::Wait => return State { machine, reference, now: now + 1 },
        Step::Session(number) => {
            let begins = number != reference.number;
            reference.session(number, now);
            let session = NewSession {
                place: 0,
                begins,
                is_idle: false,
                until: reference.lease_ends,
                generation: number,
                sid: sid(number),
                start: start(number).into(),
                leader: LEADER,
                eligible: 0b11,
                matched: matched(number),
            };
            let sent = machine.pass(store.session(&session));
            assert_eq!(store.answer(&sent.packet), None);
        }
        Step::End => {
            reference.lease_ends = 0;
            _ = machine.pass(store.end(0, now));
        }
        Step::Passing(passing) => {
            let right = reference.take(&passing);
            let sent = machine.pass(store.passing(&passing)).packet;
            let told = store.answer(&sent).unwrap_or_else(|| panic!("{passing:?} is not answered"));
            let Answer { did, to, seq, index, .. } = told;
            assert_eq!(
                (did, to, seq, index),
                (right.0, right.1, right.2.into(), right.3.into()),
                "{passing:?}\n{reference:?}"
            );
            let to_replica = to.is_some();
            assert_eq!(told.sid, if to_replica { sid(reference.number) } else { 0 }, "{passing:?}");
            assert_eq!(told.flags & 1 == 1, matches!(did, Did::LeaderOnly | Did::TurnedBack), "{passing:?}");
        }
    }
    State { machine, reference, now }
}

/// R1, R4: any packets in any order.
#[test]
fn every_step_of_a_small_instance_is_the_protocols() {
    let store = Store::build(Config { sets: 1, kgroup_bits: 1 }, &Target::TOFINO_1).expect("it fits");
    let first = State { machine: store.machine(), reference: Reference::default(), now: 0 };
    let (mut seen, mut queue, mut taken) = (HashSet::from([first.clone()]), VecDeque::from([first]), 0u64);
    while let Some(state) = queue.pop_front() {
        for step in steps(&state) {
            let next = take(&store, &state, step);
            taken += 1;
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    println!("{} states, {taken} steps", seen.len());
    assert!(seen.len() > 1_000, "the instance is too small: {} states", seen.len());
}
