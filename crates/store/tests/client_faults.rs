//! The client against a linearizable store over a faulty network: every operation ends, and every write is applied once (R3).

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::packets::Asked;
use common::store::Store;
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_store::client::{Answer, Client, ClientConfig, Event, Operation, OperationKey, StoreError};
use midflight_wire::store::Status;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;

/// Faults, in percent.
#[derive(Clone, Debug)]
struct Faults {
    seed: u64,
    lost: u32,
    repeated: u32,
    /// Longest delay of a packet, so that packets are reordered.
    delay_max: Nanos,
    /// Requests refused by the store.
    refused: u32,
    /// How often the active switch changes.
    moves: u32,
    lanes: usize,
    operations: usize,
}

fn faults() -> impl Strategy<Value = Faults> {
    (any::<u64>(), 0..40_u32, 0..40_u32, 1..20_u64, 0..30_u32, 0..4_u32, 1..6_usize, 1..120_usize).prop_map(
        |(seed, lost, repeated, delay, refused, moves, lanes, operations)| Faults {
            seed,
            lost,
            repeated,
            delay_max: delay * MS,
            refused,
            moves,
            lanes,
            operations,
        },
    )
}

enum Happening {
    ToSwitch(usize, Vec<u8>),
    ToClient(usize, Vec<u8>),
    Submit(i64),
    Move,
}

/// Idle time after which an id expires; longer than any packet's delay.
const ID_KEPT: Nanos = 100 * MS;
/// Operations are submitted within this time.
const BUSY: Nanos = 3 * SECOND;
const SWITCHES: usize = 3;

struct World {
    faults: Faults,
    rng: Pcg32,
    now: Nanos,
    client: Client,
    store: Store,
    active: usize,
    agenda: BinaryHeap<Reverse<(Nanos, u64)>>,
    happenings: HashMap<u64, Happening>,
    next: u64,
    /// What each operation adds.
    adds: HashMap<OperationKey, i64>,
    outcomes: HashMap<OperationKey, Result<Answer, StoreError>>,
}

fn address(switch: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, switch as u8], 7700))
}

impl World {
    fn new(faults: Faults) -> Self {
        let mut config = ClientConfig::new((0..SWITCHES).map(address).collect(), 0, faults.seed);
        (config.lanes, config.id_kept, config.reads_max, config.timeout) = (faults.lanes, ID_KEPT, 8, 50 * SECOND);
        let client = Client::new(config, 0).unwrap();
        let rng = Pcg32::seed_from_u64(faults.seed);
        let (agenda, happenings) = (BinaryHeap::new(), HashMap::new());
        let (adds, outcomes, store) = (HashMap::new(), HashMap::new(), Store::default());
        Self { faults, rng, now: 0, client, store, active: 0, agenda, happenings, next: 0, adds, outcomes }
    }

    fn plan(&mut self, at: Nanos, happening: Happening) {
        self.agenda.push(Reverse((at, self.next)));
        self.happenings.insert(self.next, happening);
        self.next += 1;
    }

    fn run(&mut self) {
        for number in 1..=self.faults.operations as i64 {
            let at = self.rng.random_range(0..BUSY);
            self.plan(at, Happening::Submit(number));
        }
        for _ in 0..self.faults.moves {
            let at = self.rng.random_range(0..BUSY);
            self.plan(at, Happening::Move);
        }
        while self.step() {}
    }

    /// Handles the next event, if any.
    fn step(&mut self) -> bool {
        let planned = self.agenda.peek().map(|Reverse((at, _))| *at);
        let Some(at) = planned.into_iter().chain(self.client.poll_timeout()).min() else { return false };
        assert!(at < BUSY + 60 * SECOND, "operations do not end: {:?}", self.client.counters());
        self.now = self.now.max(at);
        if self.client.poll_timeout().is_some_and(|due| due <= self.now) {
            self.client.handle_timeout(self.now);
        } else if let Some(Reverse((_, number))) = self.agenda.pop()
            && let Some(happening) = self.happenings.remove(&number)
        {
            self.happens(happening);
        }
        self.settle();
        true
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::ToSwitch(switch, datagram) => {
                let answer = self.at_switch(switch, &Asked::read(&datagram));
                self.send(|datagram| Happening::ToClient(switch, datagram), &answer);
            }
            Happening::ToClient(switch, datagram) => self.client.handle(self.now, address(switch), &datagram),
            Happening::Submit(number) => self.submit(number),
            Happening::Move => self.active = self.rng.random_range(0..SWITCHES),
        }
    }

    fn submit(&mut self, by: i64) {
        let key = format!("key{}", by % 5).into_bytes();
        let operation = if by % 3 == 0 { Operation::Get { key } } else { Operation::Incr { key, by } };
        let is_write = operation.is_write();
        let key = self.client.submit(self.now, operation).unwrap();
        self.adds.insert(key, if is_write { by } else { 0 });
    }

    fn at_switch(&mut self, switch: usize, asked: &Asked) -> Vec<u8> {
        if switch != self.active {
            return asked.refuse(Status::Inactive);
        }
        let cookie = 77 + switch as u64;
        if asked.cookie() != cookie {
            return asked.want_cookie(cookie);
        }
        if self.rng.random_range(0..100) < self.faults.refused {
            let refusals = [Status::NotLeader, Status::Reordered, Status::Busy];
            return asked.answer(refusals[self.rng.random_range(0..3)], b"");
        }
        self.store.now = self.now;
        self.store.expire(ID_KEPT);
        self.store.handle(asked)
    }

    /// Sends a datagram once, twice or never.
    fn send(&mut self, arrives: impl Fn(Vec<u8>) -> Happening, datagram: &[u8]) {
        let copies = 1 + u32::from(self.rng.random_range(0..100) < self.faults.repeated);
        for _ in 0..copies {
            if self.rng.random_range(0..100) >= self.faults.lost {
                let at = self.now + self.rng.random_range(0..=self.faults.delay_max);
                self.plan(at, arrives(datagram.to_vec()));
            }
        }
    }

    fn settle(&mut self) {
        while let Some(event) = self.client.poll_event() {
            if let Event::Done { key, outcome } = event {
                assert_eq!(self.outcomes.insert(key, outcome), None, "each operation ends once");
            }
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.client.poll_transmit(self.now, &mut buffer) {
            let switch = (0..SWITCHES).find(|&switch| address(switch) == to).expect("a switch of the list");
            self.send(|datagram| Happening::ToSwitch(switch, datagram), &buffer);
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.outcomes.len(), self.faults.operations);
        for (key, by) in &self.adds {
            let times = self.store.applied.iter().filter(|applied| *applied == by).count();
            let outcome = &self.outcomes[key];
            match outcome {
                _ if *by == 0 => {
                    prop_assert!(matches!(outcome, Ok(Answer::Value(_) | Answer::NotFound)), "{:?}", outcome)
                }
                Ok(Answer::Number(_)) => prop_assert_eq!(times, 1, "INCR by {}", by),
                Err(StoreError::UnknownClient) => prop_assert!(times <= 1, "INCR by {}: {} times", by, times),
                other => prop_assert!(false, "{:?} by {}", other, by),
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn r3_every_operation_ends_and_every_write_is_applied_once(faults in faults()) {
        let mut world = World::new(faults);
        world.run();
        world.check()?;
    }
}

/// These faults do occur.
#[test]
fn r3_ids_expire_under_writes_in_that_world() {
    let (mut unknown, mut again) = (0, 0);
    for seed in 0..40 {
        let faults =
            Faults { seed, lost: 25, repeated: 20, delay_max: 10 * MS, refused: 5, moves: 2, lanes: 2, operations: 60 };
        let mut world = World::new(faults);
        world.run();
        let failed = world.outcomes.values().filter(|outcome| outcome.is_err()).count() as u64;
        unknown += failed;
        again += world.client.counters().ids_unknown - failed;
    }
    assert!(unknown > 0 && again > 0, "{unknown} failed, {again} were sent again");
}
