//! Gets at a fixed rate (open loop). Latency counts from a get's scheduled time, so a delay of one get also counts for those behind it.

use super::keys::Keys;
use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use midflight_cli::replay::pacer::Pacer;
use midflight_host::cache::{CacheClient, CacheError, GetOutcome};
use midflight_host::{Error, clock};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The largest recorded latency, one minute. Longer ones count as this.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct Gets {
    pub(crate) keys: Keys,
    /// Gets a second, of all clients together. Intervals are exponential, and each get uses a random client.
    pub(crate) rate: f64,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    /// Decides times, keys and clients.
    pub(crate) seed: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// From a get's scheduled time to its response; failed gets are excluded.
    pub(crate) latencies_ns: Histogram<u64>,
    /// Delay of each get's start after its scheduled time.
    pub(crate) late_ns: Histogram<u64>,
    /// The key does not exist.
    pub(crate) missing: u64,
    /// Values of other keys: a bug in the cache.
    pub(crate) wrong: u64,
    /// Failed gets, by the name of the failure.
    pub(crate) failed: BTreeMap<&'static str, u64>,
    pub(crate) first_error: Option<Error>,
    /// From the first to the last measured get.
    pub(crate) elapsed: Duration,
}

/// Every run reports all of these.
pub(crate) const FAILURES: [&str; 5] = ["busy", "closed", "refused", "timed_out", "unusable"];

fn name(error: &Error) -> &'static str {
    match error {
        Error::TooManyOpen { .. } => "busy",
        Error::Closed => "closed",
        Error::Cache(CacheError::Refused) => "refused",
        Error::Cache(CacheError::TimedOut) => "timed_out",
        _ => "unusable",
    }
}

impl Measured {
    fn new() -> Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).context("a histogram of latencies");
        Ok(Self {
            latencies_ns: histogram()?,
            late_ns: histogram()?,
            missing: 0,
            wrong: 0,
            failed: FAILURES.map(|name| (name, 0)).into(),
            first_error: None,
            elapsed: Duration::ZERO,
        })
    }

    fn fail(&mut self, error: Error) {
        *self.failed.entry(name(&error)).or_default() += 1;
        self.first_error.get_or_insert(error);
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// A get that has ended.
struct Completed {
    /// Scheduled time, in nanoseconds since the start.
    due: u64,
    key: u32,
    outcome: GetOutcome,
    at: Instant,
}

struct Run<'a> {
    gets: &'a Gets,
    clients: &'a [CacheClient],
    /// The clock's time at `origin`.
    origin_ns: u64,
    origin: Instant,
    /// Plus one while the generator runs.
    begun: AtomicU64,
    stop: &'a AtomicBool,
    watch: &'a dyn Watch,
}

/// Observes gets while they run.
pub(crate) trait Watch: Sync {
    /// A get scheduled at `due` took `latency`.
    fn answered(&self, _due: Instant, _latency: Duration) {}

    /// Called now and then with the time since the start.
    fn told(&self, _elapsed: Duration) {}
}

pub(crate) struct Unwatched;

impl Watch for Unwatched {}

impl Gets {
    /// Of each get: when it is sent, in nanoseconds since the start; its client, of `clients`; its key.
    pub(crate) fn drawn(&self, clients: usize) -> impl Iterator<Item = (u64, usize, u32)> + '_ {
        let mut random = Pcg64::seed_from_u64(self.seed);
        let end = (self.warm_up + self.measured).as_nanos() as u64;
        let mut at = 0.0;
        let next = move || {
            let gap: f64 = Exp1.sample(&mut random);
            at += gap * 1e9 / self.rate;
            (at as u64, random.random_range(0..clients), self.keys.draw(&mut random))
        };
        std::iter::repeat_with(next).take_while(move |(due, ..)| *due < end)
    }

    pub(crate) fn run(&self, clients: &[CacheClient], stop: &AtomicBool, watch: &dyn Watch) -> Result<Measured> {
        let run = Run {
            gets: self,
            clients,
            origin_ns: clock::now(),
            origin: Instant::now(),
            begun: AtomicU64::new(1),
            stop,
            watch,
        };
        let (sender, ended) = channel();
        std::thread::scope(|scope| {
            let generator = scope.spawn(|| run.generate(&sender));
            let collected = run.collect(&ended);
            let generated = generator.join().map_err(|_| anyhow!("the generator panicked"))?;
            let (mut collected, generated) = (collected?, generated?);
            collected.late_ns = generated.late_ns;
            collected.elapsed = generated.elapsed;
            for (name, count) in generated.failed {
                *collected.failed.entry(name).or_default() += count;
            }
            collected.first_error = collected.first_error.or(generated.first_error);
            Ok(collected)
        })
    }
}

/// Releases the generator's count on drop, so that the collector never waits forever.
struct Ended<'a>(&'a AtomicU64);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Run<'_> {
    fn generate(&self, sender: &Sender<Completed>) -> Result<Measured> {
        let _ended = Ended(&self.begun);
        let (mut measured, gets) = (Measured::new()?, self.gets);
        let pacer = Pacer::new(self.stop);
        let (begin, end) = (gets.warm_up.as_nanos() as u64, (gets.warm_up + gets.measured).as_nanos() as u64);
        let mut last = end;
        for (due, client, key) in gets.drawn(self.clients.len()) {
            let Some(late_ns) = pacer.wait(self.origin_ns + due) else {
                last = due;
                break;
            };
            let is_measured = due >= begin;
            if is_measured {
                measured.late_ns.saturating_record(late_ns.max(1));
            }
            // The call counts towards the client's latency, so take the time before.
            self.begun.fetch_add(1, Relaxed);
            let sender = sender.clone();
            let sink = move |outcome| {
                // The receiver is gone if the run has failed.
                drop(sender.send(Completed { due, key, outcome, at: Instant::now() }));
            };
            if let Err(error) = self.clients[client].submit_get_to(Keys::name(key), sink) {
                self.begun.fetch_sub(1, Relaxed);
                if is_measured {
                    measured.fail(error);
                }
            }
        }
        measured.elapsed = Duration::from_nanos(last.saturating_sub(begin));
        Ok(measured)
    }

    /// Collects until the generator and all its gets have ended.
    fn collect(&self, completions: &Receiver<Completed>) -> Result<Measured> {
        let mut measured = Measured::new()?;
        let mut ended = 0;
        while ended < self.begun.load(Relaxed) {
            if let Ok(completed) = completions.recv_timeout(LOOK_EVERY) {
                ended += 1;
                self.take(&mut measured, completed);
            }
            self.watch.told(self.origin.elapsed());
        }
        Ok(measured)
    }

    fn take(&self, measured: &mut Measured, completed: Completed) {
        let Completed { due, key, outcome, at } = completed;
        if due < self.gets.warm_up.as_nanos() as u64 {
            return;
        }
        let due = self.origin + Duration::from_nanos(due);
        let latency = at.saturating_duration_since(due);
        match outcome {
            Err(error) => return measured.fail(error),
            Ok(None) => measured.missing += 1,
            Ok(Some(value)) => measured.wrong += u64::from(!self.gets.keys.is_value(key, &value)),
        }
        self.watch.answered(due, latency);
        measured.latencies_ns.saturating_record((latency.as_nanos() as u64).max(1));
    }
}
