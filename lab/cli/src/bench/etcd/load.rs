//! Clients in a closed loop: each sends its next request when the last one is answered.

use crate::bench::turns::{Sample, unless};
use crate::median;
use crate::store::cluster::{FIRST_CLIENT, Ground};
use anyhow::{Result, anyhow, ensure};
use futures_util::future::try_join_all;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Threads, each with a part of the 64 clients.
pub(super) const WORKERS: usize = 2;
pub(super) const CLIENTS_OF_WORKER: usize = 32;
const KEYS: usize = 10_000;
pub(super) const VALUE: &[u8] = &[b'v'; 1_000];
/// An operation that takes longer fails the run.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A client of a store. Operations fail unless the store did them.
pub(super) trait Client {
    /// Reads [`VALUE`].
    async fn get(&mut self, key: String) -> Result<()>;
    /// Writes [`VALUE`].
    async fn set(&mut self, key: String) -> Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Sets every key once.
    Fill,
    Gets,
    Sets,
}

#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) time: Duration,
    pub(super) interrupted: &'a AtomicBool,
}

impl Load<'_> {
    /// Sets all keys, then reads random ones. `connect` returns the clients of a worker, within its runtime.
    pub(super) fn reads<C: Client>(self, connect: impl Fn(usize) -> Result<Vec<C>> + Sync) -> Result<Sample> {
        self.run(&connect, Work::Fill)?;
        let latencies = self.run(&connect, Work::Gets)?;
        let rate = latencies.len() as f64 / self.time.as_secs_f64();
        let at = |share| median::at(latencies.clone(), share);
        let sample = [("reads_per_s", rate), ("p50_us", at(0.5)), ("p99_us", at(0.99))];
        Ok(sample.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Sets random keys.
    pub(super) fn writes<C: Client>(self, connect: impl Fn(usize) -> Result<Vec<C>> + Sync) -> Result<Sample> {
        let rate = self.run(&connect, Work::Sets)?.len() as f64 / self.time.as_secs_f64();
        Ok([("writes_per_s".to_owned(), rate)].into())
    }

    /// Returns the latencies of the operations that ended in the measured time, in microseconds.
    fn run<C: Client>(self, connect: &(impl Fn(usize) -> Result<Vec<C>> + Sync), work: Work) -> Result<Vec<f64>> {
        let from = Instant::now() + self.time / 2;
        let part = |worker| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let clients = (worker..).step_by(WORKERS).zip(connect(worker)?);
                let all = try_join_all(clients.map(|(number, client)| self.one(client, work, number, from))).await;
                anyhow::Ok(all?.concat())
            })
        };
        let part = &part;
        let latencies = std::thread::scope(|scope| {
            let start = |worker| scope.spawn(move || self.ground.within(FIRST_CLIENT, || part(worker))?);
            let threads: Vec<_> = (0..WORKERS).map(start).collect();
            let parts = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?);
            anyhow::Ok(parts.collect::<Result<Vec<_>>>()?.concat())
        })?;
        ensure!(work == Work::Fill || !latencies.is_empty(), "no operation ended in {:?}", self.time);
        Ok(latencies)
    }

    async fn one(self, mut client: impl Client, work: Work, number: usize, from: Instant) -> Result<Vec<f64>> {
        let (mut random, mut latencies) = (Pcg64::seed_from_u64(number as u64), Vec::new());
        let mut all = (number..KEYS).step_by(WORKERS * CLIENTS_OF_WORKER);
        let mut next = || if work == Work::Fill { all.next() } else { Some(random.random_range(0..KEYS)) };
        while let Some(key) = next() {
            unless(self.interrupted)?;
            let (key, began) = (format!("user{key:020}"), Instant::now());
            match work {
                Work::Gets => client.get(key).await?,
                Work::Fill | Work::Sets => client.set(key).await?,
            }
            let ended = Instant::now();
            if (from..from + self.time).contains(&ended) {
                latencies.push((ended - began).as_secs_f64() * 1e6);
            } else if ended > from && work != Work::Fill {
                break;
            }
        }
        Ok(latencies)
    }
}
