//! A lossy world in miniature: whatever happens, each task gets exactly one final event.
//!
//! Packets are lost, repeated, delayed and so reordered; switches are full, die and come back empty; executors fail,
//! abandon, die, and complete tasks that are taken from them. Nothing here is shared with the real switch or executor.

use super::super::{Counters, LostWhy, Outcome};
use super::*;
use midflight_wire::{AckState, BlobRef};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use zerocopy::IntoBytes;

/// How bad the world is, in percent.
#[derive(Clone, Debug)]
struct Weather {
    seed: u64,
    lost: u32,
    repeated: u32,
    delay_max: Nanos,
    capacity: usize,
    switch_deaths: usize,
    failed: u32,
    abandoned: u32,
    by_reference: u32,
    fetch_fails: u32,
    executor_dies: u32,
    /// Switches keep no record of tasks: they cannot say what they have, take nothing out, and take a repeated SUBMIT twice.
    no_record: bool,
    cancelled: u32,
    timeout: Option<Nanos>,
    retry_failed: bool,
    tasks: usize,
}

#[derive(Default)]
struct FakeSwitch {
    epoch: u32,
    down_until: Nanos,
    /// Queued or assigned; the value says whether it is still queued.
    tasks: BTreeMap<(u32, u8), bool>,
    queue: Vec<((u32, u8), TaskInfo)>,
    answers: HashMap<u32, Vec<u8>>,
    highest: Option<u32>,
}

enum Happening {
    Arrives {
        to: SocketAddr,
        from: SocketAddr,
        datagram: Vec<u8>,
    },
    /// An executor ends an attempt, or tries again to tell that it has.
    Ends {
        switch: usize,
        epoch: u32,
        name: (u32, u8),
        datagram: Vec<u8>,
        tries: u32,
    },
    Fetched {
        key: TaskKey,
    },
    SwitchDies {
        switch: usize,
    },
    Cancel {
        key: TaskKey,
    },
    Submit {
        count: usize,
    },
}

struct World {
    weather: Weather,
    rng: Pcg32,
    now: Nanos,
    client: Client,
    switches: [FakeSwitch; 2],
    agenda: BinaryHeap<Reverse<(Nanos, u64)>>,
    happenings: HashMap<u64, Happening>,
    next: u64,
    acked: BTreeSet<(u32, u8)>,
    submitted: u64,
    /// Final events by task; a result by reference is one once it is fetched.
    ended: HashMap<TaskKey, u32>,
    fetching: BTreeSet<TaskKey>,
}

impl World {
    fn new(weather: Weather) -> Self {
        let mut config = ClientConfig::new(IDENTITY, weather.seed, vec![switch_a(), switch_b()]);
        config.max_open = 1_000;
        let mut world = Self {
            rng: Pcg32::seed_from_u64(weather.seed),
            now: 0,
            client: Client::new(config, 0).unwrap(),
            switches: [FakeSwitch { epoch: 1, ..Default::default() }, FakeSwitch { epoch: 2, ..Default::default() }],
            agenda: BinaryHeap::new(),
            happenings: HashMap::new(),
            next: 0,
            acked: BTreeSet::new(),
            submitted: 0,
            ended: HashMap::new(),
            fetching: BTreeSet::new(),
            weather,
        };
        let mut left = world.weather.tasks;
        while left > 0 {
            let count = world.rng.random_range(1..=left.min(50));
            left -= count;
            let at = world.rng.random_range(0..500 * MS);
            world.plan(at, Happening::Submit { count });
        }
        for _ in 0..world.weather.switch_deaths {
            let (at, switch) = (world.rng.random_range(0..2_000 * MS), world.rng.random_range(0..2));
            world.plan(at, Happening::SwitchDies { switch });
        }
        world
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn plan(&mut self, after: Nanos, happening: Happening) {
        self.agenda.push(Reverse((self.now + after, self.next)));
        self.happenings.insert(self.next, happening);
        self.next += 1;
    }

    /// Into the network, where it may be lost or repeated.
    fn send(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let copies = if self.chance(self.weather.lost) { 0 } else { 1 + u32::from(self.chance(self.weather.repeated)) };
        for _ in 0..copies {
            let delay = self.rng.random_range(0..=self.weather.delay_max);
            self.plan(delay, Happening::Arrives { to, from, datagram: datagram.to_vec() });
        }
    }

    fn run(&mut self) {
        let end = 300_000 * MS;
        loop {
            self.client_turn();
            let due = [self.client.poll_timeout(), self.agenda.peek().map(|Reverse((at, _))| *at)];
            let Some(next) = due.into_iter().flatten().min() else { break };
            assert!(next < end, "not all tasks end: {} open, {:?}", self.client.open(), self.client.counters());
            self.now = self.now.max(next);
            while let Some(&Reverse((at, id))) = self.agenda.peek()
                && at <= self.now
            {
                self.agenda.pop();
                let happening = self.happenings.remove(&id).unwrap();
                self.happen(happening);
            }
            if self.client.poll_timeout().is_some_and(|due| due <= self.now) {
                self.client.handle_timeout(self.now);
            }
        }
    }

    fn client_turn(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.observe(event);
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.client.poll_transmit(self.now, &mut buffer) {
            self.send(address("10.0.9.9:99"), to, &buffer);
        }
        assert!(self.client.poll_timeout().is_none_or(|due| due > self.now), "the client spins");
    }

    fn observe(&mut self, event: Event) {
        let key = match event {
            Event::Completed { key, result: Outcome::ByReference { .. }, .. } => {
                assert!(self.fetching.insert(key), "{key:?} is fetched already");
                let after = self.rng.random_range(0..20 * MS);
                self.plan(after, Happening::Fetched { key });
                return;
            }
            Event::Completed { key, .. } | Event::Cancelled { key } => key,
            Event::Lost { key, why } => {
                let possible = match why {
                    LostWhy::TimedOut => self.weather.timeout.is_some(),
                    LostWhy::Abandoned => self.weather.abandoned > 0,
                    LostWhy::FetchFailed => self.weather.fetch_fails > 0,
                };
                assert!(possible, "{key:?} lost: {why}");
                key
            }
            Event::NotCancelled { .. } | Event::SwitchChanged { .. } | Event::SeenAs(_) => return,
        };
        assert!(!self.fetching.contains(&key));
        *self.ended.entry(key).or_default() += 1;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives { to, from, datagram } => {
                if let Some(switch) = [switch_a(), switch_b()].iter().position(|&s| s == to) {
                    self.switch_hears(switch, &datagram);
                } else if to == executor() {
                    let Sent::CompleteAck { records, .. } = read(to, &datagram) else { panic!() };
                    let done = records.iter().filter(|r| r.2 == AckState::Done as u8);
                    self.acked.extend(done.map(|r| (r.0, r.1)));
                } else {
                    self.client.handle(self.now, from, &datagram);
                }
            }
            Happening::Ends { switch, epoch, name, datagram, tries } => {
                if self.switches[switch].epoch == epoch {
                    self.switches[switch].tasks.remove(&name);
                }
                if self.acked.contains(&name) || tries == 20 {
                    return;
                }
                self.send(executor(), address("10.0.9.9:99"), &datagram);
                self.plan(50 * MS, Happening::Ends { switch, epoch, name, datagram, tries: tries + 1 });
            }
            Happening::Fetched { key } => {
                let ok = !self.chance(self.weather.fetch_fails);
                self.fetching.remove(&key);
                if ok {
                    *self.ended.entry(key).or_default() += 1;
                }
                self.client.fetched(self.now, key, ok);
            }
            Happening::SwitchDies { switch } => {
                let epoch = self.rng.random_range(10..u32::MAX);
                let down_until = self.now + self.rng.random_range(0..1_500 * MS);
                self.switches[switch] = FakeSwitch { epoch, down_until, ..Default::default() };
            }
            Happening::Cancel { key } => self.client.cancel(self.now, &[key]),
            Happening::Submit { count } => {
                let task = Task { timeout: self.weather.timeout, retry_failed: self.weather.retry_failed, ..task() };
                let jid = self.rng.random_range(0..2);
                let keys = self.client.submit(self.now, jid, &vec![task; count]).unwrap();
                self.submitted += count as u64;
                for key in keys {
                    if self.chance(self.weather.cancelled) {
                        let after = self.rng.random_range(0..50 * MS);
                        self.plan(after, Happening::Cancel { key: TaskKey(key) });
                    }
                }
            }
        }
    }

    fn switch_hears(&mut self, number: usize, datagram: &[u8]) {
        let to = [switch_a(), switch_b()][number];
        if self.now < self.switches[number].down_until {
            return;
        }
        let epoch = self.switches[number].epoch;
        let answer = match read(to, datagram) {
            Sent::Probe { sequence, names, .. } => {
                let open = (0..).zip(&names).filter(|(_, n)| self.switches[number].tasks.contains_key(n));
                let open = open.fold(0, |bits, (i, _)| bits | 1 << i);
                let (known, open) = if self.weather.no_record { (Known::NoRecord, !open) } else { (Known::Yes, open) };
                probe_ack_of(known, epoch, sequence, names.len(), open)
            }
            Sent::Submit { sequence, tasks, .. } => self.in_window(number, sequence, |world| {
                let switch = &mut world.switches[number];
                let mut taken = 0;
                for (index, task) in (0_u8..).zip(&tasks) {
                    if switch.tasks.len() < world.weather.capacity {
                        switch.tasks.insert((sequence, index), true);
                        switch.queue.push(((sequence, index), *task));
                        taken |= 1 << index;
                    }
                }
                submit_ack(epoch, sequence, tasks.len(), taken, Reason::Full)
            }),
            Sent::Cancel { sequence, names } => self.in_window(number, sequence, |world| {
                let switch = &mut world.switches[number];
                let mut taken_out = 0;
                for (i, name) in names.iter().enumerate() {
                    if switch.tasks.get(name) == Some(&true) && !world.weather.no_record {
                        switch.tasks.remove(name);
                        switch.queue.retain(|(queued, _)| queued != name);
                        taken_out |= 1 << i;
                    }
                }
                cancel_ack(epoch, sequence, names.len(), taken_out)
            }),
            Sent::CompleteAck { .. } => panic!("not for a switch"),
        };
        self.send(to, address("10.0.9.9:99"), &answer);
        self.assign(number);
    }

    /// T8: a sequence is carried out once, and answered the same again.
    fn in_window(&mut self, number: usize, sequence: u32, carry_out: impl FnOnce(&mut Self) -> Vec<u8>) -> Vec<u8> {
        let switch = &mut self.switches[number];
        let highest = *switch.highest.get_or_insert(sequence);
        assert!((highest.wrapping_sub(sequence) as i32) < 64, "below the window of the switch");
        if sequence.wrapping_sub(highest) as i32 > 0 {
            switch.highest = Some(sequence);
        }
        if let Some(answer) = switch.answers.get(&sequence).filter(|_| !self.weather.no_record) {
            return answer.clone();
        }
        let answer = carry_out(self);
        self.switches[number].answers.insert(sequence, answer.clone());
        answer
    }

    /// Some of what is queued goes to executors, which will end it in one way or another.
    fn assign(&mut self, number: usize) {
        let count = self.rng.random_range(0..=self.switches[number].queue.len());
        let epoch = self.switches[number].epoch;
        for (name, task) in self.switches[number].queue.drain(..count).collect::<Vec<_>>() {
            self.switches[number].tasks.insert(name, false);
            if self.chance(self.weather.executor_dies) {
                // With the completion, or before it was written: the switch has freed the record all the same.
                self.switches[number].tasks.remove(&name);
                continue;
            }
            let attempt = task.attempt.saturating_add(1);
            let blob = BlobRef { id: 1.into(), length: 9.into(), port: 9.into(), reserved: 0.into() };
            let datagram = if self.chance(self.weather.failed) {
                complete(name, attempt, Status::Failed, false, b"failed")
            } else if self.chance(self.weather.abandoned) {
                complete(name, attempt, Status::Abandoned, false, b"")
            } else if self.chance(self.weather.by_reference) {
                complete(name, attempt, Status::Ok, true, blob.as_bytes())
            } else {
                complete(name, attempt, Status::Ok, false, b"value")
            };
            let after = self.rng.random_range(0..30 * MS);
            self.plan(after, Happening::Ends { switch: number, epoch, name, datagram, tries: 0 });
        }
        if !self.switches[number].queue.is_empty() {
            // Executors come back for the rest even if nobody sends anything.
            let poke = probe_of_an_executor();
            self.plan(
                5 * MS,
                Happening::Arrives { to: [switch_a(), switch_b()][number], from: executor(), datagram: poke },
            );
        }
    }
}

fn probe_of_an_executor() -> Vec<u8> {
    let header = Header::new(Operation::Probe, 0, u32::MAX);
    let mut datagram = Vec::new();
    Builder::new(&mut datagram, &midflight_wire::Probe { header, client: 0.into() });
    datagram
}

fn weather() -> impl Strategy<Value = Weather> {
    let network = (any::<u64>(), 0..30_u32, 0..20_u32, 1..50_u64, 1..200_usize, 0..4_usize);
    let executors = (0..20_u32, 0..20_u32, 0..50_u32, 0..30_u32, 0..10_u32, any::<bool>());
    let caller = (0..30_u32, prop::option::of(20..500_u64), any::<bool>(), 1..300_usize);
    (network, executors, caller).prop_map(|(network, executors, caller)| Weather {
        seed: network.0,
        lost: network.1,
        repeated: network.2,
        delay_max: network.3 * MS,
        capacity: network.4,
        switch_deaths: network.5,
        failed: executors.0,
        abandoned: executors.1,
        by_reference: executors.2,
        fetch_fails: executors.3,
        executor_dies: executors.4,
        no_record: executors.5,
        cancelled: caller.0,
        timeout: caller.1.map(|ms| ms * MS),
        retry_failed: caller.2,
        tasks: caller.3,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t7_t8_t9_each_task_gets_exactly_one_final_event(weather in weather()) {
        let mut world = World::new(weather);
        world.run();
        prop_assert_eq!(world.client.open(), 0);
        prop_assert_eq!(world.ended.len() as u64, world.submitted);
        prop_assert!(world.ended.values().all(|&times| times == 1));
        let counters = world.client.counters();
        prop_assert_eq!(counters.completed + counters.lost + counters.cancelled, world.submitted);
        prop_assert_eq!((counters.malformed, counters.bad_answers, counters.too_old), (0, 0, 0));
    }
}

/// Nothing goes wrong.
fn fair() -> Weather {
    Weather {
        seed: 1,
        lost: 0,
        repeated: 0,
        delay_max: MS,
        capacity: 1_000,
        switch_deaths: 0,
        failed: 0,
        abandoned: 0,
        by_reference: 0,
        fetch_fails: 0,
        executor_dies: 0,
        no_record: false,
        cancelled: 0,
        timeout: None,
        retry_failed: false,
        tasks: 500,
    }
}

#[test]
fn t8_in_fair_weather_nothing_is_sent_twice() {
    let mut world = World::new(fair());
    world.run();
    let counters = world.client.counters();
    assert_eq!(counters.completed, 500);
    assert_eq!((counters.retransmitted, counters.completions_ignored, counters.full), (0, 0, 0));
}

#[test]
fn t9_in_foul_weather_each_remedy_is_needed_and_all_tasks_complete() {
    let foul = Weather { lost: 20, repeated: 20, delay_max: 40 * MS, capacity: 40, executor_dies: 5, ..fair() };
    let mut seen = Counters::default();
    for seed in 0..6 {
        let mut world =
            World::new(Weather { seed, switch_deaths: 5, by_reference: 20, fetch_fails: 2, ..foul.clone() });
        world.run();
        let counters = world.client.counters();
        assert_eq!(counters.completed + counters.lost, 500);
        seen.retransmitted += counters.retransmitted;
        seen.resubmitted += counters.resubmitted;
        seen.gone += counters.gone;
        seen.full += counters.full;
        seen.retried += counters.retried;
        seen.failovers += counters.failovers;
        seen.completions_ignored += counters.completions_ignored;
    }
    let Counters { retransmitted, resubmitted, gone, full, retried, failovers, completions_ignored, .. } = seen;
    let remedies = [retransmitted, resubmitted, gone, full, retried, failovers, completions_ignored];
    assert!(remedies.iter().all(|&times| times > 0), "{remedies:?}");
}

#[test]
fn t10_without_a_record_tasks_that_died_are_submitted_again_and_all_complete() {
    let foul = Weather { lost: 10, repeated: 10, capacity: 400, executor_dies: 10, no_record: true, ..fair() };
    for seed in 0..4 {
        let mut world = World::new(Weather { seed, ..foul.clone() });
        world.run();
        let counters = world.client.counters();
        assert_eq!((counters.completed, counters.resubmitted), (500, 0));
        assert!(counters.gone > 25, "{}", counters.gone);
    }
}
