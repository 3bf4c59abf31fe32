//! `midflight-lab load cache`: gets at a fixed rate.

use super::gets::{FAILURES, Gets, Measured, Watch};
use super::keys::{KEYS_MAX, Keys};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use hdrhistogram::Histogram;
use midflight_host::cache::{CacheClient, VALUE_MAX};
use midflight_terminal::cache::WhichCache;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::units::thousands;
use midflight_terminal::usage;
use std::process::ExitCode;
use std::time::Duration;

/// Shorter runs show no progress.
const QUIET: Duration = Duration::from_secs(2);

pub(crate) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab load cache --cache cache.toml --rate 5000 --duration 10s
  midflight-lab load cache --cache cache.toml --clients 20
  midflight-lab load cache --direct c3 --server a:7800,b:7800,c:7800 --clients 20 --json

Sets the keys (their names begin with `bench:`), then gets them at a fixed rate, at random times, by
independent clients on this machine, whatever becomes of the gets before. A latency is counted from
the time at which a get was to be sent. With --direct each of the clients selects by itself.

RESULTS
  cache.gets_per_s                   those that were answered
  cache.mean_us, .p50_us, .p99_us, .p999_us, .max_us
  cache.missing                      answers that there is no such key: the cache has forgotten it
  cache.wrong                        values of other keys: more than 0 is a bug
  cache.failed, .failed_NAME         gets without an answer; busy ones were not begun
  cache.repeated, .long              requests that were sent again; values that came over TCP
  cache.late_p99_us                  how late this program began gets: a machine that is too slow

EXIT CODES
  0 done, 1 nothing was answered, or a value was wrong, 2 wrong usage";

/// What the command line says.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    cache: WhichCache,
    /// Gets a second, of all clients together
    #[arg(long, value_name = "PER_SECOND", default_value_t = 1000.0)]
    rate: f64,
    /// How long it measures
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = usage::duration)]
    duration: Duration,
    /// How long it runs before it measures
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = usage::duration)]
    warm_up: Duration,
    /// Different keys
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(KEYS_MAX)))]
    keys: u32,
    /// How unlike the keys are: the exponent of Zipf's law; 0: all alike
    #[arg(long, value_name = "EXPONENT", default_value_t = 0.99)]
    zipf: f64,
    /// Bytes of each value
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=VALUE_MAX as i64))]
    value_bytes: u32,
    /// Independent clients
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Decides times and keys
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Do not set the keys: they are there
    #[arg(long)]
    no_fill: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check(args)?;
    let interrupted = interrupted_flag()?;
    let builder = args.cache.client(args.clients.into())?;
    let clients =
        (0..args.clients).map(|_| builder.clone().connect_lazy().context("cannot start a client of the cache"));
    let clients = clients.collect::<Result<Vec<CacheClient>>>()?;
    let keys = Keys::new(args.keys, args.zipf, args.value_bytes as usize)?;
    if !args.no_fill {
        let progress = Progress::counted(Some(args.keys.into()), "keys", "{bar:40} {human_pos}/{human_len} keys set");
        keys.set_all(&clients[0], &interrupted, &|| progress.advance())?;
        progress.finish();
    }
    let gets = Gets { keys, rate: args.rate, warm_up: args.warm_up, measured: args.duration, seed: args.seed };
    let total = args.warm_up + args.duration;
    let shown = Shown { progress: (total > QUIET).then(|| Progress::spinner(QUIET)), total };
    let measured = gets.run(&clients, &interrupted, &shown)?;
    if let Some(progress) = shown.progress {
        progress.finish();
    }
    if let Some(error) = &measured.first_error {
        eprintln!("{} gets failed: {error}", thousands(measured.failures()));
    }
    if measured.latencies_ns.is_empty() {
        bail!(
            "nothing was answered: see whether the operator, the agents and their backends run (midflight cache get)"
        );
    }
    Envelope::new("load cache", measures("cache", &measured, &clients)).print(args.json)?;
    if measured.wrong > 0 {
        bail!(
            "{} values were those of other keys: this is a bug, or somebody else sets keys of this load",
            measured.wrong
        );
    }
    Ok(ExitCode::SUCCESS)
}

struct Shown {
    progress: Option<Progress>,
    total: Duration,
}

impl Watch for Shown {
    fn told(&self, elapsed: Duration) {
        if let Some(progress) = &self.progress {
            progress.tell(|| format!("{:.0} of {:.0} s", elapsed.as_secs_f64(), self.total.as_secs_f64()));
        }
    }
}

fn check(args: &Args) -> Result<()> {
    if !(args.rate > 0.0 && args.rate <= 10_000_000.0) {
        return Err(usage::error(format!("--rate {}: must be more than 0, and at most 10000000", args.rate)));
    }
    if !(0.0..=10.0).contains(&args.zipf) {
        return Err(usage::error(format!("--zipf {}: must be 0 to 10", args.zipf)));
    }
    let longest = Duration::from_secs(3_600);
    if args.duration > longest || args.warm_up > longest {
        return Err(usage::error("--duration and --warm-up: at most 1h"));
    }
    Ok(())
}

pub(crate) fn measures(name: &str, measured: &Measured, clients: &[CacheClient]) -> Vec<Measure> {
    let latencies = &measured.latencies_ns;
    let quantity =
        |what: &str, value: f64, unit: &'static str| Measure::quantity(&format!("{name}.{what}"), value, unit);
    let count = |what: &str, value: u64, unit: &'static str| Measure::count(&format!("{name}.{what}"), value, unit);
    let at = |histogram: &Histogram<u64>, share: f64| us(histogram.value_at_quantile(share) as f64);
    let seconds = measured.elapsed.as_secs_f64();
    let counts: Vec<_> = clients.iter().map(CacheClient::counts).collect();
    let mut all = vec![
        quantity("gets_per_s", latencies.len() as f64 / seconds, "gets/s"),
        quantity("mean_us", us(latencies.mean()), "us"),
        quantity("p50_us", at(latencies, 0.5), "us"),
        quantity("p99_us", at(latencies, 0.99), "us"),
        quantity("p999_us", at(latencies, 0.999), "us"),
        quantity("max_us", us(latencies.max() as f64), "us"),
        count("missing", measured.missing, "gets"),
        count("wrong", measured.wrong, "gets"),
        count("failed", measured.failures(), "gets"),
    ];
    let failed = FAILURES.map(|failure| (format!("failed_{failure}"), measured.failed.get(failure)));
    all.extend(failed.iter().map(|(what, value)| count(what, value.copied().unwrap_or_default(), "gets")));
    all.extend([
        count("repeated", counts.iter().map(|counts| counts.protocol.repeated).sum(), "requests"),
        count("long", counts.iter().map(|counts| counts.cache.long).sum(), "gets"),
        quantity("late_p99_us", at(&measured.late_ns, 0.99), "us"),
    ]);
    all
}

fn us(ns: f64) -> f64 {
    ns / 1e3
}
