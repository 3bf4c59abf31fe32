//! Clients of a store in a closed loop: each begins its next operation when the last has ended.

use super::store::Store;
use super::workload::{Draw, KEYS, Mix, put};
use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use midflight_host::Handle;
use midflight_host::store::{Answer, StoreClient};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Threads, each with a connection and a part of the clients. A connection has at most 256 lanes.
pub(super) const WORKERS: u32 = 4;
/// Writes in flight while the keys are first written.
const LOADED_AT_ONCE: usize = 256;
const PATIENCE: Duration = Duration::from_secs(20);

/// Operations that succeeded, and their time.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) seconds: f64,
    /// Latencies of reads in seconds, in rising order.
    pub(super) latencies: Vec<f32>,
}

impl Done {
    pub(super) fn per_second(&self) -> f64 {
        (self.reads + self.writes) as f64 / self.seconds
    }

    /// Quantile of the latency of reads, in seconds.
    pub(super) fn latency(&self, quantile: f64) -> f64 {
        let place = (quantile * self.latencies.len() as f64) as usize;
        self.latencies.get(place).map_or(f64::NAN, |seconds| f64::from(*seconds))
    }
}

fn client(store: &Store<'_>, clients: u32) -> Result<StoreClient> {
    store.client(|builder| builder.lanes(clients as usize).timeout(PATIENCE))
}

pub(super) fn fill(store: &Store<'_>) -> Result<()> {
    let client = client(store, 64)?;
    let mut under_way = VecDeque::new();
    for key in 0..KEYS {
        under_way.push_back(client.submit(put(key))?);
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

/// Loads the store for `warm_up`, then for `time`. Returns the operations done and the CPU time that each replica used.
pub(super) fn run(
    store: &Store<'_>,
    mix: &Mix,
    (warm_up, time): (Duration, Duration),
) -> Result<(Done, Vec<Duration>)> {
    let from = Instant::now() + warm_up;
    let until = from + time;
    let sleep_until = |at: Instant| std::thread::sleep(at.saturating_duration_since(Instant::now()));
    std::thread::scope(|scope| {
        let threads = WORKERS.min(mix.clients);
        let of = |worker: u32| mix.clients * (worker + 1) / threads - mix.clients * worker / threads;
        let work = |worker| {
            let clients = of(worker);
            scope.spawn(move || work(store, mix, u64::from(worker), clients, (from, until)))
        };
        let workers: Vec<_> = (0..threads).map(work).collect();
        sleep_until(from);
        let before = store.cpu_times();
        sleep_until(until);
        let after = store.cpu_times();
        let mut done = Done { seconds: time.as_secs_f64(), ..Done::default() };
        for worker in workers {
            let Ok(outcome) = worker.join() else { bail!("a client has panicked") };
            let part = outcome?;
            (done.reads, done.writes) = (done.reads + part.reads, done.writes + part.writes);
            done.latencies.extend(part.latencies);
        }
        ensure!(done.reads + done.writes > 0 || mix.clients == 0, "no operation has ended in {:.1} s", done.seconds);
        done.latencies.sort_by(f32::total_cmp);
        let used = before?.iter().zip(after?).map(|(before, after)| after.saturating_sub(*before)).collect();
        Ok((done, used))
    })
}

fn work(store: &Store<'_>, mix: &Mix, seed: u64, clients: u32, (from, until): (Instant, Instant)) -> Result<Done> {
    let (client, draw) = (&client(store, clients)?, &Draw::of(mix)?);
    let (random, done) = (&RefCell::new(Pcg64::seed_from_u64(seed)), &RefCell::new(Done::default()));
    let is_over = &Cell::new(false);
    let user = || async move {
        while !is_over.get() {
            let (is_write, operation) = draw.draw(&mut random.borrow_mut());
            let began = Instant::now();
            client.submit(operation)?.await.context("an operation failed under load")?;
            let now = Instant::now();
            if now >= until {
                is_over.set(true);
            } else if now >= from {
                let done = &mut *done.borrow_mut();
                if is_write {
                    done.writes += 1;
                } else {
                    done.reads += 1;
                    done.latencies.push((now - began).as_secs_f32());
                }
            }
        }
        anyhow::Ok(())
    };
    let mut users: FuturesUnordered<_> = (0..clients).map(|_| user()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        while let Some(ended) = users.next().await {
            ended?;
        }
        anyhow::Ok(())
    })?;
    drop(users);
    Ok(done.take())
}
