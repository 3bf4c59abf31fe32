//! An executor, some switches, and a faulty network.

use super::switch::Switch;
use super::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const TICK: Nanos = 50 * MS;
const REMEMBERED: usize = 2_000;
/// Bound of packets per second from an executor of a few slots, to detect a flood of repeats.
const STORM: u64 = 20_000;

#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// Loss in percent, and the largest delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetworkFaults {
    pub(super) loss: u32,
    pub(super) delay_max: Nanos,
}

pub(super) const NO_FAULTS: NetworkFaults = NetworkFaults { loss: 0, delay_max: 2 * MS };

pub(super) struct Network {
    pub(super) executor: Executor,
    pub(super) here: SocketAddr,
    pub(super) switches: Vec<Switch>,
    pub(super) at: BTreeMap<SocketAddr, usize>,
    pub(super) network_faults: NetworkFaults,
    /// Run time of a function. If it is less than a round trip, the executor prefetches.
    pub(super) run_time: Nanos,
    pub(super) functions_end: bool,
    pub(super) now: Nanos,
    flying: BTreeMap<(Nanos, u64), Datagram>,
    ends: VecDeque<(Nanos, RunKey)>,
    tick: Nanos,
    random: Pcg64Mcg,
    pub(super) remembered: VecDeque<Datagram>,
    pub(super) sent: u64,
    /// Percentage of long runs.
    pub(super) long: u32,
    held: BTreeMap<RunKey, (u64, u32)>,
    /// Tasks that have run, as in `Switch::done`.
    pub(super) ran: BTreeSet<(u64, u32)>,
}

impl Network {
    pub(super) fn new(slots: u32, seed: u64, addresses: u8, switches: Vec<Switch>) -> Self {
        let config = ExecutorConfig::new(seed, seed, (1..=addresses).map(switch).collect(), slots, 0);
        let mut network = Self {
            executor: Executor::new(config, 0).unwrap(),
            here: client(1),
            switches,
            at: BTreeMap::from([(switch(1), 0), (switch(2), 1)]),
            network_faults: NO_FAULTS,
            run_time: 10 * MS,
            functions_end: true,
            now: 0,
            flying: BTreeMap::new(),
            ends: VecDeque::new(),
            tick: 0,
            random: Pcg64Mcg::seed_from_u64(seed),
            remembered: VecDeque::new(),
            sent: 0,
            long: 0,
            held: BTreeMap::new(),
            ran: BTreeSet::new(),
        };
        network.turn();
        network
    }

    pub(super) fn run(&mut self, time: Nanos) {
        let (until, sent) = (self.now + time, self.sent);
        while let Some(next) = self.next().filter(|&next| next <= until) {
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let datagram = entry.remove();
                self.arrive(&datagram);
            }
            if self.tick <= self.now {
                self.tick = self.now + TICK;
                for index in 0..self.switches.len() {
                    let out = self.switches[index].tick(self.now);
                    self.spread(index, out);
                }
            }
            while let Some((_, key)) = self.ends.pop_front_if(|(end, _)| self.functions_end && *end <= self.now) {
                let end = End { status: Status::Ok, result: Output::Inline(Vec::new()), started: 0, ended: 0 };
                self.ran.extend(self.held.remove(&key));
                self.executor.finish(self.now, key, end);
            }
            if self.executor.poll_timeout().is_some_and(|due| due <= self.now) {
                self.executor.handle_timeout(self.now);
            }
            self.turn();
            let next = self.executor.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "a timeout that was handled is due again");
        }
        self.now = until;
        assert!(self.sent - sent < STORM * (1 + time / 1_000 / MS), "{} packets in {time} ns", self.sent - sent);
    }

    fn next(&self) -> Option<Nanos> {
        let flying = self.flying.keys().next().map(|key| key.0);
        let end = self.ends.front().filter(|_| self.functions_end).map(|end| end.0);
        [flying, end, Some(self.tick), self.executor.poll_timeout()].into_iter().flatten().min()
    }

    fn turn(&mut self) {
        while let Some(event) = self.executor.poll_event() {
            if let Event::Run(run) = event {
                let is_long = self.random.random_range(0..100) < self.long;
                let end = self.now + if is_long { 15 * MS } else { self.run_time };
                let place = self.ends.iter().position(|(other, _)| *other > end).unwrap_or(self.ends.len());
                self.ends.insert(place, (end, run.key));
                self.held.insert(run.key, (run.token.number(), run.task.tid.get()));
            }
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.executor.poll_transmit(self.now, &mut buffer) {
            self.sent += 1;
            if to.port() == switch(1).port() {
                self.send(Datagram { from: self.here, to, bytes: buffer.clone() });
            }
        }
    }

    fn send(&mut self, datagram: Datagram) {
        self.remembered.push_back(datagram.clone());
        if self.remembered.len() > REMEMBERED {
            self.remembered.pop_front();
        }
        if self.random.random_range(0..100) >= self.network_faults.loss {
            let arrival = self.now + self.random.random_range(0..=self.network_faults.delay_max);
            self.flying.insert((arrival, self.random.random()), datagram);
        }
    }

    /// Delivers a packet to its destination; also for replays and forgeries.
    pub(super) fn arrive(&mut self, Datagram { from, to, bytes }: &Datagram) {
        if *to == self.here {
            self.executor.handle(self.now, *from, bytes);
            self.turn();
        } else if let Some(&index) = self.at.get(to) {
            let out = self.switches[index].handle(self.now, *from, bytes);
            for (back, bytes) in out {
                self.send(Datagram { from: *to, to: back, bytes });
            }
        }
    }

    /// Sends a switch's own packets from its current address.
    fn spread(&mut self, index: usize, out: Vec<(SocketAddr, Vec<u8>)>) {
        let Some(from) = self.at.iter().find(|&(_, &at)| at == index).map(|(&address, _)| address) else { return };
        for (to, bytes) in out {
            self.send(Datagram { from, to, bytes });
        }
    }
}
