//! Concurrent loads of a soak: jobs of all sizes, levels and masks, single tasks, cancelled tasks, commands with short and long arguments.

use super::ledger::{Entry, Expected, Ledger};
use anyhow::Result;
use hdrhistogram::Histogram;
use midflight_host::{Client, Job};
use midflight_tasks::functions::{EXEC, NOOP, SLEEP, SPIN};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// None, r0, r1, both, r2. Each has executors.
const MASKS: [u8; 5] = [0b000, 0b001, 0b010, 0b011, 0b100];
/// Jobs in flight per kind.
const JOBS: usize = 6;
/// The largest recorded round trip, one minute. Longer ones count as this.
const ROUND_TRIP_MAX_US: u64 = 60_000_000;
const PAUSED_NAP: Duration = Duration::from_millis(5);

/// Pauses and stops all loads.
#[derive(Debug, Default)]
pub(super) struct Gate {
    stopped: AtomicBool,
    paused: AtomicBool,
}

impl Gate {
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Relaxed);
    }

    /// Permanently.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Waits while paused; `false` once stopped.
    fn pass(&self) -> bool {
        while self.paused.load(Relaxed) && !self.stopped.load(Relaxed) {
            std::thread::sleep(PAUSED_NAP);
        }
        !self.stopped.load(Relaxed)
    }
}

#[derive(Debug)]
pub(super) struct Loads {
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<Result<()>>>,
    singles: JoinHandle<Result<Histogram<u64>>>,
}

struct Load {
    client: Arc<Client>,
    ledger: Arc<Ledger>,
    gate: Arc<Gate>,
    random: Pcg32,
}

impl Loads {
    /// Spreads the loads over the clients.
    pub(super) fn start(clients: &[Arc<Client>], ledger: &Arc<Ledger>, seed: u64) -> Self {
        let gate = Arc::new(Gate::default());
        let load = |number: u64| Load {
            client: Arc::clone(&clients[number as usize % clients.len()]),
            ledger: Arc::clone(ledger),
            gate: Arc::clone(&gate),
            random: Pcg32::seed_from_u64(seed.wrapping_add(number)),
        };
        let of_jobs: [fn(Load) -> Result<()>; 4] = [Load::batches, Load::batches, Load::cancels, Load::commands];
        let threads = (1..).zip(of_jobs).map(|(number, run)| {
            let load = load(number);
            std::thread::spawn(move || run(load))
        });
        let threads = threads.collect();
        let load = load(0);
        let singles = std::thread::spawn(move || load.singles());
        Self { gate, threads, singles }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the round trips of single tasks in microseconds.
    pub(super) fn end(self) -> Result<Histogram<u64>> {
        self.gate.stop();
        let panicked = |_| anyhow::anyhow!("a load panicked");
        for thread in self.threads {
            thread.join().map_err(panicked)??;
        }
        self.singles.join().map_err(panicked)?
    }
}

impl Load {
    /// Jobs of one function and mask, some in flight at a time.
    fn batches(mut self) -> Result<()> {
        let mut jobs = VecDeque::new();
        while self.gate.pass() {
            let (job, expected) = self.batch();
            jobs.push_back(self.ledger.submit(&self.client, job, expected)?);
            self.make_room(&mut jobs);
            self.nap(10_000);
        }
        Ok(())
    }

    fn batch(&mut self) -> (Job, Expected) {
        let random = &mut self.random;
        let mask = MASKS[random.random_range(0..MASKS.len())];
        let priority = random.random_range(1..=8);
        let job = |function| Job::builder(function).priority(priority).resources(mask);
        match random.random_range(0..20) {
            0..12 => (job(NOOP).repeat(random.random_range(1..=512), Vec::new()).build(), Expected::Nothing),
            12..17 => {
                let time: u64 = random.random_range(50_000..=5_000_000);
                (job(SLEEP).repeat(random.random_range(1..=64), time.to_be_bytes()).build(), Expected::Took(time))
            }
            _ => {
                let time: u64 = random.random_range(5_000..=100_000);
                (job(SPIN).repeat(random.random_range(1..=64), time.to_be_bytes()).build(), Expected::Took(time))
            }
        }
    }

    /// One task at a time.
    fn singles(mut self) -> Result<Histogram<u64>> {
        let mut round_trips = Histogram::new_with_max(ROUND_TRIP_MAX_US, 3)?;
        while self.gate.pass() {
            let started = Instant::now();
            let job = Job::builder(NOOP).priority(1).task(Vec::new()).build();
            let entry = self.ledger.submit(&self.client, job, Expected::Nothing)?;
            while !entry.handle.wait_timeout(Duration::from_secs(1)) && self.gate.pass() {}
            round_trips.saturating_record(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
            self.nap(2_000);
        }
        Ok(round_trips)
    }

    /// A part of each job is cancelled while the rest runs.
    fn cancels(mut self) -> Result<()> {
        const TIME: u64 = 2_000_000;
        let mut jobs = VecDeque::new();
        while self.gate.pass() {
            let count = self.random.random_range(1..=256);
            let job = Job::builder(SLEEP).priority(self.random.random_range(2..=8)).repeat(count, TIME.to_be_bytes());
            let entry = self.ledger.submit(&self.client, job.build(), Expected::Took(TIME))?;
            self.nap(5_000);
            entry.cancel();
            jobs.push_back(entry);
            self.make_room(&mut jobs);
            self.nap(100_000);
        }
        Ok(())
    }

    /// Submits commands that each print a different text. Half are padded, so that their arguments do not fit into a packet.
    fn commands(mut self) -> Result<()> {
        let mut jobs = VecDeque::new();
        let mut number = 0_u64;
        while self.gate.pass() {
            let texts: Vec<String> =
                (0..self.random.random_range(1..=4_u64)).map(|i| (number + i).to_string()).collect();
            number += texts.len() as u64;
            let padding = if self.random.random_bool(0.5) { "                        # padded to be long" } else { "" };
            let job = Job::builder(EXEC).tasks(texts.iter().map(|text| format!("echo {text}{padding}"))).build();
            let prints = texts.iter().map(|text| format!("{text}\n").into_bytes()).collect();
            jobs.push_back(self.ledger.submit(&self.client, job, Expected::Prints(prints))?);
            self.make_room(&mut jobs);
            self.nap(500_000);
        }
        Ok(())
    }

    /// Waits for the oldest job if there are too many.
    fn make_room(&self, jobs: &mut VecDeque<Entry>) {
        while jobs.len() >= JOBS && self.gate.pass() {
            let oldest = &jobs[0];
            if oldest.is_done() || oldest.handle.wait_timeout(Duration::from_millis(100)) {
                jobs.pop_front();
            }
        }
    }

    fn nap(&mut self, most_us: u64) {
        std::thread::sleep(Duration::from_micros(self.random.random_range(0..=most_us)));
    }
}
