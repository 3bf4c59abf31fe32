//! How a slow disk of the leader affects the clients of a store.

use crate::bench::How;
use crate::median::median;
use crate::store::cluster::{Cluster, Ground, Size};
use anyhow::Result;
use midflight_host::store::StoreClient;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::Progress;
use midflight_terminal::usage::INTERRUPTED;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Added latency of each sync of the leader.
const SLOW: Duration = Duration::from_millis(100);
/// Interval in which writes are counted.
const WINDOW: Duration = Duration::from_secs(2);
const WRITERS: usize = 8;
const READERS: usize = 2;
const KEYS: usize = 64;

const SIZE: Size = Size { slow_disks: true, ..Size::USUAL };

/// Ends and durations of operations.
#[derive(Default)]
struct Log {
    writes: Mutex<Vec<Instant>>,
    reads: Mutex<Vec<(Instant, Duration)>>,
    stop: AtomicBool,
}

struct Run {
    before: f64,
    share: f64,
    share_later: f64,
    reads_before: f64,
    reads: f64,
    gap: f64,
    handed_over: bool,
}

pub(super) fn measure(how: &How, ground: Ground<'_>, interrupted: &AtomicBool) -> Result<ExitCode> {
    let runs = if how.quick { 2 } else { 10 };
    let store = Cluster::start(ground, SIZE)?;
    let client = store.client(0, |client| client.timeout(Duration::from_secs(5)))?;
    let progress = Progress::counted(Some(runs), "runs", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
    let mut all = Vec::new();
    for _ in 0..runs {
        if interrupted.load(Relaxed) {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        store.wait_until_well()?;
        all.push(run(&store, &client)?);
        progress.advance();
    }
    progress.finish();
    let median_of = |value: fn(&Run) -> f64| median(all.iter().map(value).collect());
    let count = |name: &str, count: usize| Measure::count(name, count as u64, "runs");
    let results = vec![
        Measure::quantity("slow_disk.writes_before_per_s", median_of(|run| run.before), "1/s"),
        Measure::quantity("slow_disk.writes_share", median_of(|run| run.share), "1"),
        Measure::quantity("slow_disk.writes_share_later", median_of(|run| run.share_later), "1"),
        Measure::quantity("slow_disk.reads_p99_before_ms", median_of(|run| run.reads_before), "ms"),
        Measure::quantity("slow_disk.reads_p99_ms", median_of(|run| run.reads), "ms"),
        Measure::quantity("slow_disk.longest_gap_ms", all.iter().map(|run| run.gap).fold(0.0, f64::max), "ms"),
        count("slow_disk.handed_over", all.iter().filter(|run| run.handed_over).count()),
        count("slow_disk.runs", all.len()),
    ];
    Envelope::new("failover", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn run(store: &Cluster<'_>, client: &StoreClient) -> Result<Run> {
    let (log, leader) = (Log::default(), store.leader()?);
    let (begun, end) = std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            let log = &log;
            scope.spawn(move || log.write(client, thread));
        }
        (0..READERS).for_each(|_| drop(scope.spawn(|| log.read(client))));
        std::thread::sleep(WINDOW);
        let begun = Instant::now();
        let slowed = store.slow_disk(leader, SLOW);
        std::thread::sleep(2 * WINDOW);
        let end = Instant::now();
        log.stop.store(true, Relaxed);
        slowed.map(|()| (begun, end))
    })?;
    let handed_over = store.leader()? != leader;
    store.slow_disk(leader, Duration::ZERO)?;
    let per_s = |from: Instant| log.writes_between(from, from + WINDOW) as f64 / WINDOW.as_secs_f64();
    let before = per_s(begun - WINDOW);
    Ok(Run {
        before,
        share: per_s(begun) / before,
        share_later: per_s(begun + WINDOW) / before,
        reads_before: log.reads_p99(begun - WINDOW, begun),
        reads: log.reads_p99(begun, end),
        gap: log.longest_gap(begun, end),
        handed_over,
    })
}

impl Log {
    fn write(&self, client: &StoreClient, thread: usize) {
        let mut number = thread;
        while !self.stop.load(Relaxed) {
            number += WRITERS;
            if client.put(format!("key-{}", number % KEYS), number.to_string()).is_ok() {
                push(&self.writes, Instant::now());
            }
        }
    }

    fn read(&self, client: &StoreClient) {
        let mut number = 0;
        while !self.stop.load(Relaxed) {
            number += 1;
            let begun = Instant::now();
            if client.get(format!("key-{}", number % KEYS)).is_ok() {
                push(&self.reads, (Instant::now(), begun.elapsed()));
            }
        }
    }

    fn writes_between(&self, from: Instant, to: Instant) -> usize {
        let writes = self.writes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writes.iter().filter(|at| (from..to).contains(at)).count()
    }

    /// In milliseconds.
    fn reads_p99(&self, from: Instant, to: Instant) -> f64 {
        let reads = self.reads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut took: Vec<_> = reads.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, took)| *took).collect();
        took.sort_unstable();
        took.get(took.len() * 99 / 100).map_or(f64::INFINITY, |took| took.as_secs_f64() * 1e3)
    }

    /// In milliseconds.
    fn longest_gap(&self, from: Instant, to: Instant) -> f64 {
        let mut writes = self.writes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writes.sort_unstable();
        let within = writes.iter().copied().filter(|at| (from..to).contains(at));
        let times: Vec<_> = std::iter::once(from).chain(within).chain([to]).collect();
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        longest.as_secs_f64() * 1e3
    }
}

fn push<T>(list: &Mutex<Vec<T>>, item: T) {
    list.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(item);
}
