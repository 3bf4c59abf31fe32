//! `midflight-lab load store`: clients that read and write as fast as a store answers.

use super::worker::{Done, Plan, Shared, Worker};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args as ClapArgs;
use hdrhistogram::Histogram;
use midflight_host::clock;
use midflight_spec::store::history::History;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::files;
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::store::WhichStore;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Ids of one client of the store.
const LANES_MAX: usize = 256;
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab load store --seconds 10 --clients 16
  midflight-lab load store --keys 10 --history h.jsonl    then: midflight-lab check history h.jsonl
  midflight-lab load store --config store.toml --json | jq .results

Each client does one operation after the other on random keys: reads are GET and one EXISTS in ten;
of ten writes six are PUT, and one each CAS, CREATE, INCR and DELETE. --history writes what each client
did and saw as lines of JSON (docs/histories.md), for the checker here or another one; its keys have
a random number in their names, because a history begins with an empty store.

RESULTS
  load.reads_per_s, .writes_per_s    those that were answered
  load.read_p50_us, _p99_us, _max_us; the same of writes
  load.failed, .unknown              without an answer; .unknown ones may have taken place
  load.gap_max_ms                    the longest time in which no client had an answer

EXIT CODES
  0 done, 1 nothing was answered, or the history cannot be written, 2 wrong usage";

/// What the command line says.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    store: WhichStore,
    /// How long
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Clients at one time, each with one operation
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Different keys
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    keys: u32,
    /// The share of reads, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    reads: f64,
    /// Bytes of each value: 19 to 1000. Above 500 there is no CAS: its two values would not fit into a packet
    #[arg(long, value_name = "N", default_value_t = 19, value_parser = clap::value_parser!(u16).range(19..=1000))]
    value_bytes: u16,
    /// File for the history
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "write it like 0.9".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("must be 0 to 1".into()) }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(file) = &args.history {
        files::check_output("--history", file)?;
    }
    let keeps_history = args.history.is_some();
    // A history starts with keys that do not exist.
    let prefix = if keeps_history { format!("load-{:016x}-", rand::random::<u64>()) } else { "load-".into() };
    let plan = Plan { keys: args.keys, prefix, reads: args.reads, value_bytes: args.value_bytes.into(), keeps_history };
    let lanes = usize::from(args.clients).min(LANES_MAX);
    let client = args.store.client()?.lanes(lanes).connect_lazy()?;
    let workers = (0..args.clients).map(|process| Worker::new(process.into(), &client, &plan));
    let workers = workers.collect::<Result<Vec<_>>>()?;
    let shared = Shared::default();
    let (all, elapsed) = run_all(workers, &shared, Duration::from_secs(args.seconds))?;
    let (reads, writes) = (merged(&all, |done| &done.reads_ns)?, merged(&all, |done| &done.writes_ns)?);
    let gap_ms = shared.longest_gap_ns(clock::now()) as f64 / 1e6;
    if let Some(file) = &args.history {
        write_history(file, &all)?;
    }
    if reads.is_empty() && writes.is_empty() {
        bail!(
            "the store answered nothing: see whether its switch and a majority of its replicas run (midflight store status)"
        );
    }
    if let Some(error) = all.iter().find_map(|done| done.first_error.as_ref()) {
        eprintln!("not all was answered: {error}");
    }
    let mut measures = of_kind("read", &reads, elapsed);
    measures.extend(of_kind("write", &writes, elapsed));
    measures.extend([
        Measure::count("load.failed", all.iter().map(|done| done.failed).sum(), "operations"),
        Measure::count("load.unknown", all.iter().map(|done| done.unknown).sum(), "operations"),
        Measure::quantity("load.gap_max_ms", gap_ms, "ms"),
    ]);
    Envelope::new("load store", measures).print(args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs all workers until the time is over, or a signal.
fn run_all(workers: Vec<Worker<'_>>, shared: &Shared, time: Duration) -> Result<(Vec<Done>, Duration)> {
    let interrupted = interrupted_flag()?;
    let started = Instant::now();
    let done: Result<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(|| worker.run(shared))).collect();
        while started.elapsed() < time && !interrupted.load(Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        shared.stop.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))).collect()
    });
    Ok((done?, started.elapsed()))
}

fn merged(all: &[Done], of: impl Fn(&Done) -> &Histogram<u64>) -> Result<Histogram<u64>> {
    let mut sum = all.first().map(&of).context("there is no client")?.clone();
    for done in &all[1..] {
        sum.add(of(done)).context("latencies of two clients")?;
    }
    Ok(sum)
}

fn of_kind(kind: &str, latencies: &Histogram<u64>, elapsed: Duration) -> Vec<Measure> {
    let us = |ns: u64| ns as f64 / 1e3;
    let per_second = latencies.len() as f64 / elapsed.as_secs_f64();
    vec![
        Measure::quantity(&format!("load.{kind}s_per_s"), per_second, "operations/s"),
        Measure::quantity(&format!("load.{kind}_p50_us"), us(latencies.value_at_quantile(0.5)), "us"),
        Measure::quantity(&format!("load.{kind}_p99_us"), us(latencies.value_at_quantile(0.99)), "us"),
        Measure::quantity(&format!("load.{kind}_max_us"), us(latencies.max()), "us"),
    ]
}

fn write_history(file: &Path, all: &[Done]) -> Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    let mut to = BufWriter::new(File::create(file).with_context(cannot)?);
    let operations = all.iter().flat_map(|done| done.history.iter().cloned()).collect();
    History { operations }.write(&mut to).with_context(cannot)?;
    to.flush().with_context(cannot)
}
