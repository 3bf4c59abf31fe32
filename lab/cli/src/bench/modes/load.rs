//! Clients in this process, with so many operations in flight that every replica always has work.

use super::store::Store;
use super::workload::{Keys, Mix, VALUE_BYTES};
use anyhow::{Context, Result, bail, ensure};
use midflight_host::Handle;
use midflight_host::store::{Answer, Operation, StoreClient};
use rand::RngExt;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A replica that used up its share is idle for most of a period. Its backlog must not starve the others, so enough is in flight for a
/// period of all.
const UNDER_WAY: usize = 512;
const CLIENTS: u64 = 2;
/// Writes in flight per client.
const LANES: usize = 64;
/// Writes in flight while the keys are first written.
const LOADED_AT_ONCE: usize = 256;
const PATIENCE: Duration = Duration::from_secs(20);

/// Successful operations and their time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) seconds: f64,
}

impl Done {
    pub(super) fn per_second(&self) -> f64 {
        (self.reads + self.writes) as f64 / self.seconds
    }
}

fn client(store: &Store<'_>) -> Result<StoreClient> {
    store.client(|builder| builder.lanes(LANES).timeout(PATIENCE))
}

pub(super) fn fill(store: &Store<'_>, keys: &Keys) -> Result<()> {
    let client = client(store)?;
    let mut under_way = VecDeque::new();
    for key in keys.all() {
        under_way.push_back(client.submit(Operation::Put { key, value: vec![b'v'; VALUE_BYTES] })?);
        if under_way.len() == LOADED_AT_ONCE {
            wait(&mut under_way)?;
        }
    }
    while !under_way.is_empty() {
        wait(&mut under_way)?;
    }
    Ok(())
}

fn wait(under_way: &mut VecDeque<Handle<Answer>>) -> Result<()> {
    let Some(oldest) = under_way.pop_front() else { return Ok(()) };
    oldest.wait().context("an operation failed")?;
    Ok(())
}

/// Counts operations that end while `counts` is set.
#[derive(Default)]
struct Shared {
    counts: AtomicBool,
    stop: AtomicBool,
    reads: AtomicU64,
    writes: AtomicU64,
}

/// Loads the store for `warm_up`, then for `time`. Returns the operations done and the CPU time that each replica used.
pub(super) fn run(
    store: &Store<'_>,
    keys: &Keys,
    mix: Mix,
    (warm_up, time): (Duration, Duration),
) -> Result<(Done, Vec<Duration>)> {
    let shared = &Shared::default();
    std::thread::scope(|scope| {
        let worker = |seed| scope.spawn(move || work(store, keys, mix, seed, shared));
        let workers: Vec<_> = (0..CLIENTS).map(worker).collect();
        std::thread::sleep(warm_up);
        let before = store.cpu_times();
        let started = Instant::now();
        shared.counts.store(true, Ordering::Relaxed);
        std::thread::sleep(time);
        shared.counts.store(false, Ordering::Relaxed);
        let seconds = started.elapsed().as_secs_f64();
        let after = store.cpu_times();
        shared.stop.store(true, Ordering::Relaxed);
        for worker in workers {
            match worker.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a client has panicked"),
            }
        }
        let (reads, writes) = (shared.reads.load(Ordering::Relaxed), shared.writes.load(Ordering::Relaxed));
        ensure!(reads + writes > 0, "no operation has ended in {seconds:.1} s");
        let used = before?.iter().zip(after?).map(|(before, after)| after.saturating_sub(*before)).collect();
        Ok((Done { reads, writes, seconds }, used))
    })
}

fn work(store: &Store<'_>, keys: &Keys, mix: Mix, seed: u64, shared: &Shared) -> Result<()> {
    let client = client(store)?;
    let mut random = Pcg64::seed_from_u64(seed);
    let mut under_way: VecDeque<(bool, Handle<Answer>)> = VecDeque::new();
    while !shared.stop.load(Ordering::Relaxed) {
        while under_way.len() < UNDER_WAY {
            let key = keys.draw(mix.skew, &mut random);
            let is_write = random.random_bool(mix.writes);
            let operation =
                if is_write { Operation::Put { key, value: vec![b'w'; VALUE_BYTES] } } else { Operation::Get { key } };
            under_way.push_back((is_write, client.submit(operation)?));
        }
        let Some((is_write, oldest)) = under_way.pop_front() else { continue };
        oldest.wait().context("an operation failed under load")?;
        if shared.counts.load(Ordering::Relaxed) {
            let count = if is_write { &shared.writes } else { &shared.reads };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
