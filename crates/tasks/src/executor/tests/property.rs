//! Any order of inputs, sensible or not: nothing panics, every accepted assignment runs once, every run that ends is
//! settled once, and a drain ends.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SLOTS: u32 = 5;

#[derive(Clone, Debug)]
enum Input {
    /// The switch answers the last REGISTERs with room for so many slots.
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
        1 => (prop::option::of(slot.clone()), generation.clone()).prop_map(|(slot, generation)| Input::Reset { slot, generation }),
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
            Input::Reset { slot, generation } => {
                let slots: Vec<_> = slot.map(|slot| (slot, generation)).into_iter().collect();
                self.world.deliver(switch, &named(Operation::Reset, self.epoch, &slots));
            }
            Input::Released { slot, generation } => {
                self.world.deliver(switch, &named(Operation::Released, self.epoch, &[(slot, generation)]));
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
