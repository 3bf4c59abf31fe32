//! A small simulated network with faults, for the property tests.
//!
//! It drops, repeats, delays and reorders packets. Switches are full, die, come back empty and swap addresses. Executors fail,
//! abandon, die, and complete tasks taken from them. The client is suspended and moves. Attackers on the path forge responses.

use super::super::{LostWhy, Outcome};
use super::forger::Forger;
use super::switch::{FakeSwitch, Named, Queued};
use super::*;
use midflight_wire::tasks::{AckState, BlobRef};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use zerocopy::IntoBytes;

/// Faults, in percent or as number of occurrences.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    pub(super) seed: u64,
    pub(super) lost: u32,
    pub(super) repeated: u32,
    pub(super) delay_max: Nanos,
    pub(super) capacity: usize,
    pub(super) switch_deaths: usize,
    pub(super) failed: u32,
    pub(super) abandoned: u32,
    pub(super) by_reference: u32,
    pub(super) fetch_fails: u32,
    pub(super) executor_dies: u32,
    pub(super) no_record: bool,
    pub(super) cancelled: u32,
    pub(super) timeout: Option<Nanos>,
    pub(super) retry_failed: bool,
    pub(super) tasks: usize,
    pub(super) attacks: Attacks,
    /// Time after which nothing is lost, repeated or forged, no party dies, and addresses do not change.
    pub(super) calm_from: Nanos,
    /// Deadline for all tasks to end.
    pub(super) end: Nanos,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Attacks {
    /// Switches require cookies, and forget a suspended client.
    pub(super) strict: bool,
    pub(super) alone: bool,
    /// Percentage of the client's packets to which attackers send a response too.
    pub(super) forged: u32,
    pub(super) swaps: usize,
    pub(super) moves: usize,
    /// Number of times that the client is suspended, for up to three seconds.
    pub(super) stops: usize,
}

enum Happening {
    Arrives {
        to: SocketAddr,
        from: SocketAddr,
        datagram: Vec<u8>,
    },
    /// An executor completes an attempt, or repeats the completion.
    Ends {
        epoch: u32,
        to: SocketAddr,
        name: Named,
        datagram: Vec<u8>,
        tries: u32,
    },
    /// Executors ask for the rest of the queue.
    Assign {
        epoch: u32,
    },
    Fetched {
        key: TaskKey,
    },
    SwitchDies {
        switch: usize,
    },
    Swap,
    Moves,
    Stops {
        time: Nanos,
    },
    Wakes,
    Cancel {
        key: TaskKey,
    },
    Submit {
        count: usize,
    },
}

pub(super) struct World {
    faults: Faults,
    rng: Pcg32,
    now: Nanos,
    pub(super) client: Client,
    home: SocketAddr,
    stopped_until: Nanos,
    switches: [FakeSwitch; 2],
    forger: Forger,
    agenda: BinaryHeap<Reverse<(Nanos, u64)>>,
    happenings: HashMap<u64, Happening>,
    next: u64,
    acked: BTreeSet<Named>,
    pub(super) submitted: u64,
    /// Number of final events by task; a result by reference counts once it is fetched.
    pub(super) ended: HashMap<TaskKey, u32>,
    fetching: BTreeSet<TaskKey>,
}

impl World {
    pub(super) fn new(faults: Faults) -> Self {
        let mut config = ClientConfig::new(IDENTITY, faults.seed, vec![switch_a(), switch_b()]);
        config.switches.truncate(if faults.attacks.alone { 1 } else { 2 });
        config.max_open = 1_000;
        config.secret = SECRET;
        let mut world = Self {
            rng: Pcg32::seed_from_u64(faults.seed),
            now: 0,
            client: Client::new(config, 0).unwrap(),
            home: address("10.0.9.9:1000"),
            stopped_until: 0,
            switches: [1, 2].map(|epoch| built(&faults, epoch)),
            forger: Forger::default(),
            agenda: BinaryHeap::new(),
            happenings: HashMap::new(),
            next: 0,
            acked: BTreeSet::new(),
            submitted: 0,
            ended: HashMap::new(),
            fetching: BTreeSet::new(),
            faults,
        };
        world.plan_all();
        world
    }

    fn plan_all(&mut self) {
        let mut left = self.faults.tasks;
        while left > 0 {
            let count = self.rng.random_range(1..=left.min(50));
            left -= count;
            let at = self.rng.random_range(0..500 * MS);
            self.plan(at, Happening::Submit { count });
        }
        for _ in 0..self.faults.switch_deaths {
            let (at, switch) = (self.rng.random_range(0..2_000 * MS), self.rng.random_range(0..2));
            self.plan(at, Happening::SwitchDies { switch });
        }
        let Attacks { swaps, moves, stops, .. } = self.faults.attacks;
        for _ in 0..swaps {
            let at = self.rng.random_range(0..2_000 * MS);
            self.plan(at, Happening::Swap);
        }
        for _ in 0..moves {
            let at = self.rng.random_range(0..2_000 * MS);
            self.plan(at, Happening::Moves);
        }
        for _ in 0..stops {
            let (at, time) = (self.rng.random_range(0..1_000 * MS), self.rng.random_range(0..3_000 * MS));
            self.plan(at, Happening::Stops { time });
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn mischance(&mut self, percent: u32) -> bool {
        self.chance(percent) && self.now < self.faults.calm_from
    }

    fn plan(&mut self, after: Nanos, happening: Happening) {
        self.agenda.push(Reverse((self.now + after, self.next)));
        self.happenings.insert(self.next, happening);
        self.next += 1;
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let lost = self.mischance(self.faults.lost);
        let copies = if lost { 0 } else { 1 + u32::from(self.mischance(self.faults.repeated)) };
        for _ in 0..copies {
            let delay = self.rng.random_range(0..=self.faults.delay_max);
            self.plan(delay, Happening::Arrives { to, from, datagram: datagram.to_vec() });
        }
    }

    pub(super) fn run(&mut self) {
        loop {
            self.client_turn();
            let due = self.client.poll_timeout().map(|due| due.max(self.stopped_until));
            let happens = self.agenda.peek().map(|Reverse((at, _))| *at);
            let Some(next) = [due, happens].into_iter().flatten().min() else { break };
            let late = || format!("{} open, {:?}", self.client.open(), self.client.counters());
            assert!(next < self.faults.end, "something is left to do: {}", late());
            self.now = self.now.max(next);
            while let Some(&Reverse((at, id))) = self.agenda.peek()
                && at <= self.now
            {
                self.agenda.pop();
                let happening = self.happenings.remove(&id).unwrap();
                self.happen(happening);
            }
        }
    }

    fn client_turn(&mut self) {
        if self.now < self.stopped_until {
            return;
        }
        if self.client.poll_timeout().is_some_and(|due| due <= self.now) {
            self.client.handle_timeout(self.now);
        }
        while let Some(event) = self.client.poll_event() {
            self.observe(event);
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.client.poll_transmit(self.now, &mut buffer) {
            self.send(self.home, to, &buffer);
            self.forge(to, &buffer);
        }
        assert!(self.client.poll_timeout().is_none_or(|due| due > self.now), "the client spins");
    }

    fn forge(&mut self, to: SocketAddr, datagram: &[u8]) {
        if let packet @ (Sent::Submit { .. } | Sent::Cancel { .. } | Sent::Probe { .. }) = read(to, datagram) {
            let epochs = [self.switches[0].epoch, self.switches[1].epoch];
            if self.mischance(self.faults.attacks.forged) && self.chance(10) {
                let forged = self.forger.query(&mut self.rng, &packet);
                self.plan(0, Happening::Arrives { to, from: self.home, datagram: forged });
            }
            while self.mischance(self.faults.attacks.forged) {
                let forged = self.forger.answer(&mut self.rng, epochs, &packet);
                let delay = self.rng.random_range(0..=2 * self.faults.delay_max);
                self.plan(delay, Happening::Arrives { to: self.home, from: to, datagram: forged });
            }
        }
    }

    fn observe(&mut self, event: Event) {
        let key = match event {
            Event::Completed { key, result: Outcome::ByReference { .. }, .. } => {
                assert!(self.fetching.insert(key), "{key:?} is fetched already");
                let after = self.rng.random_range(0..20 * MS);
                self.plan(after, Happening::Fetched { key });
                return;
            }
            Event::Completed { key, result: Outcome::Inline(result), .. } => {
                assert_ne!(result, forger::RESULT, "an attacker's result");
                key
            }
            Event::Cancelled { key, .. } => key,
            Event::Lost { key, why } => {
                let possible = match why {
                    LostWhy::TimedOut => self.faults.timeout.is_some(),
                    LostWhy::Abandoned => self.faults.abandoned > 0,
                    LostWhy::FetchFailed => self.faults.fetch_fails > 0,
                    LostWhy::Forgotten => false,
                };
                assert!(possible, "{key:?} lost: {why}");
                key
            }
            Event::NotCancelled { .. }
            | Event::SwitchChanged { .. }
            | Event::OtherVersion { .. }
            | Event::Save(_)
            | Event::Part { .. }
            | Event::NeedsReference { .. }
            | Event::SeenAs(_) => return,
        };
        assert!(!self.fetching.contains(&key));
        *self.ended.entry(key).or_default() += 1;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            // The caller is suspended too.
            Happening::Submit { .. } | Happening::Cancel { .. } | Happening::Fetched { .. }
                if self.now < self.stopped_until =>
            {
                self.plan(self.stopped_until - self.now, happening);
            }
            Happening::Arrives { to, from, datagram } => self.arrive(to, from, &datagram),
            Happening::Ends { epoch, to, name, datagram, tries } => {
                if let Some(switch) = self.switch_of(epoch) {
                    switch.done(name);
                }
                if self.acked.contains(&name) || tries == 20 {
                    return;
                }
                self.send(executor(), to, &datagram);
                self.plan(50 * MS, Happening::Ends { epoch, to, name, datagram, tries: tries + 1 });
            }
            Happening::Assign { epoch } => self.assign(epoch),
            Happening::Fetched { key } => {
                let ok = !self.chance(self.faults.fetch_fails);
                self.fetching.remove(&key);
                if ok {
                    *self.ended.entry(key).or_default() += 1;
                }
                self.client.fetched(self.now, key, ok);
            }
            Happening::SwitchDies { switch } => {
                let epoch = self.rng.random_range(10..u32::MAX);
                let down_until = self.now + self.rng.random_range(0..1_500 * MS);
                self.switches[switch] = built(&self.faults, epoch);
                self.switches[switch].down_until = down_until;
            }
            Happening::Swap => self.switches.swap(0, 1),
            Happening::Moves => self.home.set_port(self.home.port() + 1),
            Happening::Stops { time } => {
                self.stopped_until = self.stopped_until.max(self.now + time);
                self.plan(time, Happening::Wakes);
            }
            Happening::Wakes => {}
            Happening::Cancel { key } => self.client.cancel(self.now, &[key]),
            Happening::Submit { count } => self.submit(count),
        }
    }

    fn submit(&mut self, count: usize) {
        let task = Task { timeout: self.faults.timeout, retry_failed: self.faults.retry_failed, ..task() };
        let jid = self.rng.random_range(0..2);
        let keys = self.client.submit(self.now, jid, &vec![task; count]).unwrap();
        self.submitted += count as u64;
        for key in keys {
            if self.chance(self.faults.cancelled) {
                let after = self.rng.random_range(0..50 * MS);
                self.plan(after, Happening::Cancel { key: TaskKey(key) });
            }
        }
    }

    fn switch_of(&mut self, epoch: u32) -> Option<&mut FakeSwitch> {
        self.switches.iter_mut().find(|switch| switch.epoch == epoch)
    }

    fn arrive(&mut self, to: SocketAddr, from: SocketAddr, datagram: &[u8]) {
        if let Some(number) = [switch_a(), switch_b()].iter().position(|&switch| switch == to) {
            let switch = &mut self.switches[number];
            let epoch = switch.epoch;
            if let Some(answer) = switch.hear(self.now, from, &read(to, datagram)) {
                self.forger.has_seen(&answer);
                self.send(to, from, &answer);
                self.assign(epoch);
            }
        } else if to == executor() {
            let records = match read(to, datagram) {
                Sent::CompleteAck { records, .. } => records,
                Sent::Stop { names, .. } => return self.stop(&names),
                other => panic!("no executor gets {other:?}"),
            };
            let done = records.iter().filter(|r| r.2 == AckState::Done as u8);
            self.acked.extend(done.map(|r| (r.0, r.1)));
        } else if to == self.home && self.now >= self.stopped_until {
            self.client.handle(self.now, from, datagram);
        }
    }

    /// Executors stop these runs; some ignore the request.
    fn stop(&mut self, names: &[(u32, u8)]) {
        for &stopped in names {
            let run = self.happenings.values_mut().find_map(|happening| match happening {
                Happening::Ends { name, datagram, tries: 0, .. } if *name == stopped => Some(datagram),
                _ => None,
            });
            let listens = self.rng.random_range(0..4) > 0;
            if let Some(datagram) = run.filter(|_| listens) {
                *datagram = complete(stopped, 1, Status::Cancelled, false, b"");
            }
        }
    }

    fn assign(&mut self, epoch: u32) {
        let queued = self.switch_of(epoch).map_or(0, |switch| switch.queued());
        let count = self.rng.random_range(0..=queued);
        let Some(switch) = self.switch_of(epoch) else { return };
        let to = switch.submitter;
        for Queued { name, token, attempt } in switch.assign(count) {
            if self.mischance(self.faults.executor_dies) {
                // With or without a completion: the switch frees the record either way.
                self.plan(0, Happening::Ends { epoch, to, name, datagram: Vec::new(), tries: 20 });
                continue;
            }
            let blob = BlobRef { id: 1.into(), length: 9.into(), port: 9.into(), reserved: 0.into() };
            let datagram = if self.chance(self.faults.failed) {
                complete_with(Token::new(token), name, attempt, Status::Failed, false, b"failed")
            } else if self.chance(self.faults.abandoned) {
                complete_with(Token::new(token), name, attempt, Status::Abandoned, false, b"")
            } else if self.chance(self.faults.by_reference) {
                complete_with(Token::new(token), name, attempt, Status::Ok, true, blob.as_bytes())
            } else {
                complete_with(Token::new(token), name, attempt, Status::Ok, false, b"value")
            };
            let after = self.rng.random_range(0..30 * MS);
            self.plan(after, Happening::Ends { epoch, to, name, datagram, tries: 0 });
        }
        if queued > count {
            // Executors ask for the rest even if no packet arrives.
            self.plan(5 * MS, Happening::Assign { epoch });
        }
    }
}

fn built(faults: &Faults, epoch: u32) -> FakeSwitch {
    let mut switch = FakeSwitch::new(epoch);
    (switch.capacity, switch.no_record) = (faults.capacity, faults.no_record);
    if faults.attacks.strict {
        (switch.cookies, switch.client_idle) = (true, 1_000 * MS);
    }
    switch
}
