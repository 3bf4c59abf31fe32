//! Random inputs in any order: nothing panics, every accepted assignment runs once, every ended run is settled once, and a drain
//! ends.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SLOTS: u32 = 5;

#[derive(Clone, Debug)]
enum Input {
    /// The switch answers the last REGISTERs with room for `room` slots.
    Grant {
        room: u32,
        generation: u32,
        restart: bool,
        poll_us: u16,
    },
    Assign {
        slot: u32,
        generation: u32,
        sequence: u32,
        index: u8,
    },
    NoOp {
        slot: u32,
        generation: u32,
        sequence: u32,
    },
    Reset {
        slot: Option<u32>,
        generation: u32,
        sequence: u32,
    },
    Released {
        slot: u32,
        generation: u32,
    },
    Ack {
        index: u8,
        fetching: bool,
    },
    Finish {
        nth: usize,
    },
    Pass {
        ms: u64,
    },
    Drain,
    Noise(Vec<u8>),
}

fn input() -> impl Strategy<Value = Input> {
    let (slot, generation) = (0..SLOTS, 7u32..9);
    prop_oneof![
        4 => (0..=SLOTS, generation.clone(), prop::bool::weighted(0.1), prop::sample::select(vec![0, 50, 65_535]))
            .prop_map(|(room, generation, restart, poll_us)| Input::Grant { room, generation, restart, poll_us }),
        4 => (slot.clone(), generation.clone(), 1u32..6)
            .prop_map(|(slot, generation, sequence)| Input::NoOp { slot, generation, sequence }),
        8 => (slot.clone(), generation.clone(), 1u32..6, 0u8..32)
            .prop_map(|(slot, generation, sequence, index)| Input::Assign { slot, generation, sequence, index }),
        1 => (prop::option::of(slot.clone()), generation.clone(), 1u32..6)
            .prop_map(|(slot, generation, sequence)| Input::Reset { slot, generation, sequence }),
        1 => (slot, generation).prop_map(|(slot, generation)| Input::Released { slot, generation }),
        4 => (0u8..32, any::<bool>()).prop_map(|(index, fetching)| Input::Ack { index, fetching }),
        6 => (0usize..8).prop_map(|nth| Input::Finish { nth }),
        4 => (0u64..700).prop_map(|ms| Input::Pass { ms }),
        1 => prop::bool::weighted(0.1).prop_map(|drain| if drain { Input::Drain } else { Input::Pass { ms: 1 } }),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Input::Noise),
    ]
}

struct Model {
    world: World,
    epoch: u32,
    asked: Vec<(SocketAddr, Register)>,
    running: BTreeSet<RunKey>,
    ran: BTreeSet<RunKey>,
    finished: u64,
    drained: u32,
}

impl Model {
    fn observe(&mut self) {
        let asked = self.world.registers();
        if !asked.is_empty() {
            self.asked = asked;
        }
        for event in std::mem::take(&mut self.world.events) {
            match event {
                Event::Run(run) => {
                    assert!(self.ran.insert(run.key), "{:?} ran before", run.key);
                    self.running.insert(run.key);
                }
                Event::Drained => self.drained += 1,
                _ => {}
            }
        }
        assert_eq!(self.world.executor.running() as usize, self.running.len());
        assert!(self.running.iter().map(|key| key.slot).collect::<BTreeSet<_>>().len() == self.running.len());
        assert!(self.drained <= 1);
        let Counters { delivered, given_up, .. } = self.world.counters();
        assert_eq!(delivered + given_up + self.world.executor.unacknowledged() as u64, self.finished);
    }

    fn apply(&mut self, input: Input) {
        let switch = self.world.executor.switch();
        match input {
            Input::Grant { room, generation, restart, poll_us } => {
                self.epoch += u32::from(restart);
                for (to, request) in std::mem::take(&mut self.asked) {
                    let count = room.min(u32::from(request.header.count));
                    self.world.deliver(to, &answer_to(&request, self.epoch, count, generation, poll_us));
                    self.observe();
                }
            }
            Input::Assign { slot, generation, sequence, index } => {
                self.world.deliver(switch, &assign(self.epoch, &[assignment(slot, generation, sequence, index)]));
            }
            Input::NoOp { slot, generation, sequence } => {
                self.world.deliver(switch, &no_op(self.epoch, &[(100 + slot, generation, sequence)]));
            }
            Input::Reset { slot, generation, sequence } => {
                let waits: Vec<_> = slot.map(|slot| (100 + slot, generation, sequence)).into_iter().collect();
                self.world.reset(switch, self.epoch, &waits);
            }
            Input::Released { slot, generation } => {
                let released = released(self.epoch, self.world.counter, &[(100 + slot, generation)]);
                self.world.deliver(switch, &released);
            }
            Input::Ack { index, fetching } => {
                let state = if fetching { AckState::Fetching } else { AckState::Done };
                self.world.deliver(client(1), &ack(index, state));
            }
            Input::Finish { nth } => {
                if let Some(&key) = self.running.iter().nth(nth) {
                    self.running.remove(&key);
                    self.finished += 1;
                    let end = End { status: Status::Ok, result: Output::Inline(vec![nth as u8]), started: 0, ended: 0 };
                    self.world.executor.finish(self.world.now, key, end);
                    self.world.turn();
                }
            }
            Input::Pass { ms } => self.world.pass(self.world.now + ms * MS),
            Input::Drain => {
                self.world.executor.drain(self.world.now);
                self.world.turn();
            }
            Input::Noise(bytes) => self.world.deliver(switch, &bytes),
        }
        self.observe();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn t2_any_order_of_inputs_runs_each_assignment_once(inputs in prop::collection::vec(input(), 1..120)) {
        let world = World::new(SLOTS);
        let (running, ran) = (BTreeSet::new(), BTreeSet::new());
        let mut model = Model { world, epoch: EPOCH, asked: Vec::new(), running, ran, finished: 0, drained: 0 };
        model.observe();
        inputs.into_iter().for_each(|input| model.apply(input));
        model.apply(Input::Drain);
        while !model.running.is_empty() {
            model.apply(Input::Finish { nth: 0 });
        }
        model.apply(Input::Pass { ms: 20_000 });
        prop_assert!(model.world.executor.is_drained());
        prop_assert_eq!(model.drained, 1);
        prop_assert_eq!(model.world.executor.poll_timeout(), None);
    }
}

/// Inputs for one slot of a polled switch without records.
#[derive(Clone, Copy, Debug)]
enum PolledInput {
    /// A new task for the slot's current wait, or the one before.
    Fresh {
        late: bool,
    },
    /// Repeats one of the last eight ASSIGNs.
    Again {
        nth: usize,
    },
    NoOp,
    Finish,
    Pass {
        us: u64,
    },
}

fn polled_input() -> impl Strategy<Value = PolledInput> {
    prop_oneof![
        5 => prop::bool::weighted(0.3).prop_map(|late| PolledInput::Fresh { late }),
        3 => (0usize..8).prop_map(|nth| PolledInput::Again { nth }),
        2 => Just(PolledInput::NoOp),
        5 => Just(PolledInput::Finish),
        1 => (0u64..1_500).prop_map(|us| PolledInput::Pass { us }),
    ]
}

struct Polled {
    world: World,
    sequence: u32,
    running: Option<Run>,
    /// Number of new tasks; then those to run in order, the waits they answered, and how many have begun.
    next: u8,
    expected: Vec<u8>,
    answered: Vec<u32>,
    begun: usize,
}

impl Polled {
    fn is_taken(&self, late: bool) -> bool {
        let (is_running, kept) = (self.running.is_some(), self.expected.len() - self.begun);
        let was_asked = !late || self.sequence > 1;
        was_asked && (!is_running || kept < 7)
    }

    fn apply(&mut self, input: PolledInput) {
        let pass = self.world.now + if let PolledInput::Pass { us } = input { us * 1_000 } else { 0 };
        match input {
            PolledInput::Fresh { late } => {
                let sequence = self.sequence - u32::from(late);
                if self.is_taken(late) {
                    self.expected.push(self.next);
                    self.answered.push(sequence);
                }
                self.world.assign(&[assignment(0, 7, sequence, self.next)]);
                self.next += 1;
            }
            PolledInput::Again { nth } => {
                if let Some(at) = self.expected.len().checked_sub(nth + 1) {
                    self.world.assign(&[assignment(0, 7, self.answered[at], self.expected[at])]);
                }
            }
            PolledInput::NoOp => self.world.deliver(switch(1), &no_op(EPOCH, &[(100, 7, self.sequence)])),
            PolledInput::Finish => {
                if let Some(run) = self.running.take() {
                    self.world.finish(&run, b"");
                    self.sequence += u32::from(self.expected.len() == self.begun);
                }
            }
            PolledInput::Pass { .. } => self.world.pass(pass),
        }
        let runs = self.world.runs();
        self.world.events.clear();
        for run in runs {
            assert!(self.running.replace(run.clone()).is_none(), "two at once");
            assert_eq!(run.task.tid.get(), u32::from(self.expected[self.begun]));
            self.begun += 1;
        }
        assert!(self.running.is_some() || self.begun == self.expected.len(), "{input:?}: what was kept runs");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn t1_t2_a_slot_that_polls_runs_what_it_is_given_once_and_in_order(story in prop::collection::vec(polled_input(), 1..150)) {
        let world = World::polling(1, 50);
        let (expected, answered) = (Vec::new(), Vec::new());
        let mut polled = Polled { world, sequence: 1, running: None, next: 0, expected, answered, begun: 0 };
        story.into_iter().for_each(|input| polled.apply(input));
        while polled.running.is_some() {
            polled.apply(PolledInput::Finish);
        }
        prop_assert_eq!(polled.begun, polled.expected.len());
        prop_assert_eq!(polled.world.counters().runs, polled.begun as u64);
    }
}
