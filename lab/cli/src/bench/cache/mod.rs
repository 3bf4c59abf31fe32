//! `midflight-lab bench cache`: what selection by the switch gains over selection by each client, live. One of a cache's three memcached
//! sometimes pauses. Independent clients and an operator, with the same selector, serve the same gets in turns.

mod pauses;
mod report;
mod running;
mod validation;

use super::How;
use crate::cache::gets::{Gets, Measured, Unwatched};
use crate::cache::keys::Keys;
use crate::cache::lab::{LabCache, Like};
use crate::engines::LabEngine;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_host::cache::{Algorithm, CacheClient};
use midflight_net::Lab;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::end_flag;
use midflight_terminal::usage;
use pauses::Pauses;
use report::{Pair, Sample};
use running::{Cache, Here};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use validation::Idle;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench cache                             three selectors, ten rounds each; five minutes
  midflight-lab bench cache --selectors c3 --rounds 3
  midflight-lab bench cache --selectors c3 --simulate   also simulates it, with costs measured live
  midflight-lab bench cache --pause 0s                  no backend stands still
  midflight-lab bench cache --lab --engine kernel       the same in a lab, as root
  midflight-lab bench cache --json > cache.json

Starts `midflight up --cache` (needs memcached), or (--lab) a small tree: a rack with clients,
one with three backends, a switch between, each of the three an operator. One of the backends stands
still for --pause, again and again, with 100 to 300 ms between. Clients get keys at a fixed rate,
at random times; a latency is counted from the time at which a get was to be sent. In each round
the clients first select by themselves and then the operator of their rack does, or the reverse.
With --engine kernel that is done in the kernel: by random, least-outstanding, power-of-two or c3.

RESULTS (a ratio is the switch's by the clients', of rounds; .low and .high end its 95 % interval)
  live.p99_ratio, live.p99_ratio_high, live.mean_ratio     of the first selector
  live.SELECTOR.p99_ratio, .mean_ratio  with .low and .high
  live.SELECTOR.WHO_p99_us, _mean_us    medians of the rounds; WHO is clients or switch
  live.SELECTOR.WHO_paused_share        gets of all that the backend got which stood still
  live.SELECTOR.WHO_failed              gets without an answer; if there are any, there is no
                                        ratio: latencies are those of answers
  validation.cache.SELECTOR.WHO.p99     with --simulate: live by simulated, where the same clients,
                                        selectors and operator run in the simulator with the costs
                                        of one get alone: .ratio, .low, .high
  validation.cache.SELECTOR.switch_over_clients.p99    the same of the ratio
  validation.cache.SELECTOR.service_us, .WHO.alone_us, .alone_p95_us     one get, at a backend and in all
  validation.cache.SELECTOR.WHO.way_us, .jitter_us     costs by them: of each packet, and at random

EXIT CODES
  0 measured, 1 failed (no memcached, no root, nothing answered), 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Selectors, one after the other
    #[arg(long, value_name = "SELECTORS", value_delimiter = ',', default_values = ["c3", "least-outstanding", "power-of-two"])]
    selectors: Vec<Algorithm>,
    /// Rounds of each; default: 10, with --quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: Option<u32>,
    /// Independent clients
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=512))]
    clients: u32,
    /// Gets a second, of all clients together
    #[arg(long, value_name = "PER_SECOND", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// How long each measurement takes, after a second to warm up; default: 3s, with --quick 1s
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    duration: Option<Duration>,
    /// How long a backend stands still each time; 0s: none does
    #[arg(long, value_name = "DURATION", value_parser = usage::duration_or_zero, default_value = "50ms")]
    pause: Duration,
    /// Also run the same in the simulator, with costs that are measured live
    #[arg(long)]
    simulate: bool,
    /// The parts of the cache on hosts of a lab
    #[arg(long)]
    lab: bool,
    /// The operators' engine, in a lab
    #[arg(long, value_enum, default_value_t = LabEngine::User, requires = "lab")]
    engine: LabEngine,
}

/// The clients' rack has its own RSNode from the start.
const CONTROL: &str = "[plan]\nstart = \"own-rack\"\n";

/// Few, because every backend has all keys.
const KEYS: u32 = 1_000;
const VALUE_BYTES: usize = 100;
/// YCSB's exponent.
const ZIPF: f64 = 0.99;
const WARM_UP: Duration = Duration::from_secs(1);

/// Where replicas are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// In each client.
    Clients,
    /// In the operator, for all clients.
    Switch,
}

struct Study<'a> {
    args: &'a Args,
    selector: Algorithm,
    lab: Option<&'a Lab>,
    interrupted: &'a AtomicBool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let interrupted = end_flag()?;
    if !args.lab {
        return measure(args, None, &interrupted);
    }
    if let Some(why) = args.engine.missing() {
        bail!("{why}");
    }
    let lab = Lab::up_unless(&like(args, args.selectors[0]).lab("cache"), &interrupted)?;
    let code = measure(args, Some(&lab), &interrupted);
    lab.down()?;
    code
}

fn like(args: &Args, selector: Algorithm) -> Like {
    Like { engine: args.engine, selector, client_racks: 1, core_selects: false, control: CONTROL }
}

fn measure(args: &Args, lab: Option<&Lab>, interrupted: &AtomicBool) -> Result<ExitCode> {
    let rounds = args.rounds.unwrap_or(if args.how.quick { 2 } else { 10 });
    let total = u64::from(rounds) * args.selectors.len() as u64;
    let progress = Progress::counted(Some(total), "rounds", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
    let keys = Keys::new(KEYS, ZIPF, VALUE_BYTES)?;
    let (mut measures, mut outcome) = (Vec::new(), Ok(()));
    for (place, &selector) in args.selectors.iter().enumerate() {
        let study = Study { args, selector, lab, interrupted };
        let measured = study.rounds(rounds, &keys, &|| progress.advance());
        if interrupted.load(Relaxed) {
            return Ok(usage::INTERRUPTED.into());
        }
        let (pairs, idle) = measured.with_context(|| selector.name())?;
        measures.extend(report::measures(selector, &pairs, place == 0));
        if args.simulate {
            let gets = |seed| study.gets(keys.clone(), seed);
            let validated = validation::measures(args, selector, &pairs, &idle, gets);
            outcome = outcome.and(validated.map(|validated| measures.extend(validated)));
        }
    }
    progress.finish();
    Envelope::new("cache", measures).print(args.how.json)?;
    // What was measured is not lost if the simulation fails.
    outcome.context("the cache cannot be simulated")?;
    Ok(ExitCode::SUCCESS)
}

impl Study<'_> {
    /// The rounds, and with `--simulate` what one get takes in each.
    fn rounds(&self, rounds: u32, keys: &Keys, advance: &dyn Fn()) -> Result<(Vec<Pair>, Vec<Idle>)> {
        let cache = self.cache()?;
        cache.fill(keys, self.selector, self.interrupted)?;
        let (mut pairs, mut idle) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let gets = self.gets(keys.clone(), u64::from(round));
            if self.args.simulate {
                idle.push(Idle::measure(&cache, &gets, self.selector, self.interrupted)?);
            }
            // Alternate the order, so that drift affects both alike.
            let order = if round % 2 == 0 { [Who::Clients, Who::Switch] } else { [Who::Switch, Who::Clients] };
            let [first, second] = order.map(|who| self.measure(&cache, who, &gets));
            let (first, second) = (first?, second?);
            pairs.push(if order[0] == Who::Clients {
                Pair { clients: first, switch: second }
            } else {
                Pair { clients: second, switch: first }
            });
            advance();
        }
        Ok((pairs, idle))
    }

    fn cache(&self) -> Result<Cache<'_>> {
        Ok(match self.lab {
            None => Cache::Here(Here::start(self.selector)?),
            Some(lab) => {
                let cache = LabCache::start(like(self.args, self.selector), lab)?;
                cache.wait_until_selected()?;
                Cache::Lab(cache)
            }
        })
    }

    fn gets(&self, keys: Keys, seed: u64) -> Gets {
        let usual = Duration::from_secs(if self.args.how.quick { 1 } else { 3 });
        let measured = self.args.duration.unwrap_or(usual);
        Gets { keys, rate: f64::from(self.args.rate), warm_up: WARM_UP, measured, seed }
    }

    /// Both of a round get the same gets and pauses.
    fn measure(&self, cache: &Cache<'_>, who: Who, gets: &Gets) -> Result<Sample> {
        let clients = cache.clients(who, self.args.clients, self.selector)?;
        let before = cache.served()?;
        let pauses = Pauses::start(cache.first_backend()?, self.args.pause, gets.seed)?;
        let measured = gets.run(&clients, self.interrupted, &Unwatched)?;
        drop(pauses);
        let after = cache.served()?;
        if self.interrupted.load(Relaxed) {
            bail!("interrupted");
        }
        sample(&measured, &clients, &before, &after)
    }
}

/// `before` and `after` are the backends' read calls.
fn sample(measured: &Measured, clients: &[CacheClient], before: &[u64], after: &[u64]) -> Result<Sample> {
    let latencies = &measured.latencies_ns;
    if latencies.is_empty() || measured.wrong > 0 {
        let counts = clients.first().map(CacheClient::counts);
        bail!("{} gets were answered, {} with a wrong value: {counts:?}", latencies.len(), measured.wrong);
    }
    let served: Vec<u64> = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before)).collect();
    Ok(Sample {
        p99_us: latencies.value_at_quantile(0.99) as f64 / 1e3,
        mean_us: latencies.mean() / 1e3,
        paused_share: served[0] as f64 / served.iter().sum::<u64>().max(1) as f64,
        failed: measured.failures(),
    })
}
