//! No interleaving of recirculated packets loses or changes a task.

use crate::packets::{address, retrieve, slots, submit, switch, task};
use midflight_asic::{AsicTasks, Inside, Program, Turn};
use midflight_dataplane::Verdict;
use midflight_spec::tasks::interpret_asic;
use midflight_wire::tasks::{Packet, SlotName, Wait, parse};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::Rng;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
enum Step {
    Submit(Vec<(u8, u8)>),
    Poll { slot: usize, resources: u8 },
    Round(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let task = (1..=2u8, 0..4u8);
    prop_oneof![
        2 => prop::collection::vec(task, 1..6).prop_map(Step::Submit),
        3 => (0..4usize, 0..4u8).prop_map(|(slot, resources)| Step::Poll { slot, resources }),
        6 => (0..64usize).prop_map(Step::Round),
    ]
}

/// Submitted tasks and results, with recirculation in any order.
struct Crossing {
    switch: AsicTasks,
    names: Vec<SlotName>,
    round: Vec<Inside>,
    sequence: u32,
    /// By submission and index: mask, whether acknowledged, whether assigned.
    tasks: BTreeMap<(u32, u8), (u8, bool, bool)>,
    /// Unanswered waits, by sequence.
    waits: BTreeMap<u32, Wait>,
}

impl Crossing {
    fn new() -> Self {
        let mut switch = switch(Program::Safe, 2, 8);
        let names = slots(&mut switch, 4);
        Self { switch, names, round: Vec::new(), sequence: 0, tasks: BTreeMap::new(), waits: BTreeMap::new() }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let mut turn = Turn::default();
        match step {
            Step::Submit(tasks) => {
                self.sequence += 1;
                let infos: Vec<_> = (0..).zip(tasks).map(|(tid, &(level, mask))| task(tid, level, mask, &[])).collect();
                (0..).zip(tasks).for_each(|(index, &(_, mask))| {
                    self.tasks.insert((self.sequence, index), (mask, false, false));
                });
                self.switch.packet(0, address(1), &submit(self.sequence, &infos), &mut turn);
            }
            Step::Poll { slot, resources } => {
                self.sequence += 1;
                let wait = self.names[*slot].wait(self.sequence);
                self.waits.insert(self.sequence, wait);
                let asks = retrieve(self.sequence.into(), *resources, &[wait]);
                self.switch.packet(0, address(9), &asks, &mut turn);
            }
            Step::Round(which) if !self.round.is_empty() => {
                let inside = self.round.swap_remove(which % self.round.len());
                self.switch.again(inside, &mut turn);
            }
            Step::Round(_) => {}
        }
        self.round.append(&mut turn.round);
        turn.sent.iter().try_for_each(|(to, bytes)| self.hear(*to, bytes))
    }

    /// An answer to a wait names it, goes to its executor, and is the only one.
    fn answered(&mut self, to: SocketAddr, wait: Wait) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.waits.remove(&wait.sequence.get()), Some(wait));
        prop_assert_eq!(to, address(9));
        Ok(())
    }

    fn hear(&mut self, to: SocketAddr, bytes: &[u8]) -> Result<(), TestCaseError> {
        match parse(bytes) {
            Ok(Packet::SubmitAck(ack)) => {
                prop_assert_eq!(to, address(1));
                let sequence = ack.header.sequence.get();
                prop_assert_eq!(ack.taken.get() ^ ack.not_taken.get(), u32::MAX >> (32 - u32::from(ack.header.count)));
                for index in (0..32u8).filter(|index| ack.taken.get() >> index & 1 == 1) {
                    self.tasks.get_mut(&(sequence, index)).expect("submitted").1 = true;
                }
                for index in (0..32u8).filter(|index| ack.not_taken.get() >> index & 1 == 1) {
                    prop_assert!(
                        !self.tasks.remove(&(sequence, index)).expect("submitted").2,
                        "T7: refused and assigned"
                    );
                }
            }
            Ok(Packet::Assign(_, [a], _)) => {
                let key = (a.submission.get(), a.index);
                let (mask, _, assigned) = self.tasks.get_mut(&key).expect("submitted, and not refused");
                prop_assert!(!*assigned, "T2: {:?} is assigned twice", key);
                prop_assert_eq!((a.task.resources, a.task.tid.get()), (*mask, key.1.into()));
                *assigned = true;
                self.answered(to, Wait { slot: a.slot, generation: a.generation, sequence: a.sequence })?;
            }
            Ok(Packet::NoOp(_, [wait])) => self.answered(to, *wait)?,
            other => prop_assert!(false, "{:?}", other),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    /// T1, T2, T7 on the wire: whatever comes between a packet's passes, each acknowledged task is assigned once.
    #[test]
    fn t1_each_acknowledged_task_is_assigned_once(steps in prop::collection::vec(step(), 1..120)) {
        let mut crossing = Crossing::new();
        steps.iter().try_for_each(|step| crossing.take(step))?;
        while !crossing.round.is_empty() {
            crossing.take(&Step::Round(0))?;
        }
        crossing.switch.check_at_rest().map_err(TestCaseError::fail)?;
        for _ in 0..=16 {
            crossing.take(&Step::Poll { slot: 0, resources: 3 })?;
        }
        prop_assert!(crossing.round.is_empty(), "an executor that may run all searches nothing");
        for (name, (_, acknowledged, assigned)) in &crossing.tasks {
            prop_assert!(*acknowledged && *assigned, "T1: {:?} is acknowledged {}, assigned {}", name, acknowledged, assigned);
        }
        prop_assert!(crossing.waits.is_empty(), "each is answered: {:?}", crossing.waits);
        prop_assert_eq!(crossing.switch.counters().dropped, 0);
    }

    /// T1, T2, T11: repeated, late and forged packets, from polling executors: the invariants hold after each.
    #[test]
    fn t1_books_balance_whatever_is_sent(input in prop::collection::vec(any::<u8>(), 0..2000)) {
        let told = interpret_asic(&input);
        prop_assert!(told.is_ok(), "{}: b\"{}\"", told.unwrap_err(), input.escape_ascii());
    }
}

/// Such input is useful: tasks are taken, refused and assigned, and strangers are refused.
#[test]
fn random_input_reaches_the_queue() {
    use Verdict::{ForeignSlot, Full, NoCookie, Replayed, SlotsFull, SlotsShare, SpoofedSlot, StaleRegister};
    const MET: [Verdict; 8] =
        [Full, NoCookie, ForeignSlot, SpoofedSlot, Replayed, StaleRegister, SlotsFull, SlotsShare];
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    let (mut tasks, mut met) = ([0; 2], [0; MET.len()]);
    for _ in 0..80 {
        let bytes: Vec<u8> = (0..2000).map(|_| random.next_u32() as u8).collect();
        let stats = interpret_asic(&bytes).expect("the books balance");
        tasks.iter_mut().zip([stats.tasks.submitted, stats.tasks.assigned]).for_each(|(sum, times)| *sum += times);
        met.iter_mut().zip(MET).for_each(|(sum, verdict)| *sum += stats.reasons[verdict as usize]);
    }
    let counted: Vec<_> = MET.iter().zip(met).collect();
    assert!(tasks.iter().chain(&met).all(|&times| times >= 20), "{tasks:?}, {counted:?}");
}
