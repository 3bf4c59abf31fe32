//! `midflight-lab bench foreign`: what operators in the kernel cost other traffic (N9). It passes the switches of a lab with and without
//! operators, in turns.

use super::How;
use super::ratio::Ratio;
use super::redis::{self, Redis};
use crate::cache::lab::{LabCache, Like};
use crate::engines::LabEngine;
use crate::median::median;
use crate::store::cluster::Ground;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_cache::select::Algorithm;
use midflight_net::{Lab, Place};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::end_flag;
use midflight_terminal::usage::INTERRUPTED;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench foreign               as root; four minutes
  midflight-lab bench foreign --quick --json

A lab with two racks, in which three switches are between the two ends. In each round the same
traffic passes them with an operator in the kernel of each, and without: redis-benchmark against
redis-server (Debian's packages redis-server and redis-tools; left out where they are missing), and
one stream of bytes over TCP, of which each byte is compared.

RESULTS (a ratio is that with operators by that without; .low and .high end its 95 % interval)
  foreign.redis_ratio, foreign.stream_ratio
  foreign.redis_WAY_per_s               medians of the rounds: GETs of 50 connections; WAY is
                                        through or around
  foreign.stream_WAY_gbit_per_s
  foreign.wrong                         bytes of streams that were not those sent

EXIT CODES
  0 measured, 1 failed (no root, no kernel engine), 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Rounds; default: 10, with --quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: Option<u32>,
}

/// A client of the first rack, and a host of the other.
const FROM: usize = 2;
const TO: usize = 5;
const BLOCK: usize = 64 << 10;
const STREAM: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(10);

const LIKE: Like = Like {
    engine: LabEngine::Kernel,
    selector: Algorithm::LeastOutstanding,
    client_racks: 1,
    core_selects: true,
    control: "[plan]\nstart = \"own-rack\"\n",
};

#[derive(Clone, Copy, Debug)]
struct Sample {
    redis_per_s: Option<f64>,
    stream_bytes_per_s: f64,
    wrong: u64,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    midflight_net::available()?;
    if let Some(why) = LIKE.engine.missing() {
        bail!("{why}");
    }
    let interrupted = end_flag()?;
    let rounds = args.rounds.unwrap_or(if args.how.quick { 2 } else { 10 });
    let lab = Lab::up_unless(&LIKE.lab("foreign"), &interrupted)?;
    let samples = measure(&lab, rounds, args.how.quick, &interrupted);
    lab.down()?;
    let Some(samples) = samples? else { return Ok(ExitCode::from(INTERRUPTED)) };
    Envelope::new("foreign", measures(&samples)).print(args.how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// For each round: with operators, without.
fn measure(lab: &Lab, rounds: u32, is_quick: bool, interrupted: &AtomicBool) -> Result<Option<Vec<[Sample; 2]>>> {
    let ground = Ground::Lab(lab, LIKE.engine);
    let is_installed = redis::is_installed("redis-server") && redis::is_installed("redis-benchmark");
    let redis = is_installed.then(|| Redis::start(ground, TO, redis::IN_MEMORY, interrupted)).transpose()?;
    if !is_installed {
        eprintln!("SKIPPED: redis-benchmark, which needs the packages redis-server and redis-tools");
    }
    let requests = if is_quick { 20_000 } else { 100_000 };
    let progress =
        Progress::counted(Some(rounds.into()), "rounds", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
    let mut samples = Vec::new();
    for round in 0..rounds {
        let sample = || {
            let redis_per_s =
                redis.as_ref().map(|redis| gets_per_s(ground, redis, requests, interrupted)).transpose()?;
            let (stream_bytes_per_s, wrong) = stream(lab)?;
            Ok::<_, anyhow::Error>(Sample { redis_per_s, stream_bytes_per_s, wrong })
        };
        let through = || {
            let cache = LabCache::start(LIKE, lab)?;
            cache.wait_until_selected()?;
            sample()
        };
        // Alternate the order, so that drift affects both alike.
        let pair = if round % 2 == 0 {
            let through = through()?;
            [through, sample()?]
        } else {
            let around = sample()?;
            [through()?, around]
        };
        samples.push(pair);
        if interrupted.load(Relaxed) {
            return Ok(None);
        }
        progress.advance();
    }
    progress.finish();
    Ok(Some(samples))
}

fn measures(samples: &[[Sample; 2]]) -> Vec<Measure> {
    let mut all = Vec::new();
    let mut compare = |name: &str, unit: &'static str, of: &dyn Fn(&Sample) -> Option<f64>| {
        let way = |way: usize| samples.iter().filter_map(|pair| of(&pair[way])).collect::<Vec<f64>>();
        let (through, around) = (way(0), way(1));
        if let Some(Ratio { value, low, high }) = Ratio::of(&through, &around) {
            for (end, value) in [("", value), (".low", low), (".high", high)] {
                all.push(Measure::quantity(&format!("foreign.{name}_ratio{end}"), value, ""));
            }
            for (way, values) in [("through", through), ("around", around)] {
                let unit_name = unit.replace("GETs/s", "per_s").replace("Gbit/s", "gbit_per_s");
                all.push(Measure::quantity(&format!("foreign.{name}_{way}_{unit_name}"), median(values), unit));
            }
        }
    };
    compare("redis", "GETs/s", &|sample| sample.redis_per_s);
    compare("stream", "Gbit/s", &|sample| Some(sample.stream_bytes_per_s * 8.0 / 1e9));
    let wrong = samples.iter().flatten().map(|sample| sample.wrong).sum();
    all.push(Measure::count("foreign.wrong", wrong, "bytes"));
    all
}

fn address(lab: &Lab) -> Result<Ipv4Addr> {
    Ok(lab.at(Place::Host(TO))?.context("a host has an address")?.ipv4)
}

fn gets_per_s(ground: Ground<'_>, redis: &Redis, requests: u32, interrupted: &AtomicBool) -> Result<f64> {
    let options = ["-t", "get", "-d", "100", "-c", "50", "-n", &requests.to_string()];
    let results = redis::benchmark((ground, FROM), redis.address, &options, interrupted)?;
    results.into_iter().find(|(test, _)| test == "GET").map(|(_, rate)| rate).context("redis-benchmark ran no GET")
}

fn pattern(block: u64) -> Vec<u8> {
    (0..BLOCK as u64).map(|at| (block.wrapping_mul(0x9e37) ^ at.wrapping_mul(0x85eb_ca6b) >> 7) as u8).collect()
}

/// Bytes a second, and wrong bytes.
fn stream(lab: &Lab) -> Result<(f64, u64)> {
    // A few blocks, generated in advance, so that neither end spends time on them.
    let blocks: Vec<Vec<u8>> = (0..16).map(pattern).collect();
    let at = address(lab)?;
    let listener = lab.within(Place::Host(TO), || TcpListener::bind((at, 0)))??;
    let port = listener.local_addr()?.port();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&listener, &blocks));
        let mut sender = lab.within(Place::Host(FROM), || TcpStream::connect((at, port)))??;
        let began = Instant::now();
        for block in blocks.iter().cycle() {
            sender.write_all(block)?;
            if began.elapsed() >= STREAM {
                break;
            }
        }
        drop(sender);
        let (bytes, wrong) = receiver.join().map_err(|_| anyhow::anyhow!("the receiver panicked"))??;
        Ok((bytes as f64 / began.elapsed().as_secs_f64(), wrong))
    })
}

/// Bytes received, and wrong bytes.
fn receive(listener: &TcpListener, blocks: &[Vec<u8>]) -> Result<(u64, u64)> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut total, mut wrong, mut buffer) = (0u64, 0, vec![0; BLOCK]);
    loop {
        let place = total as usize % BLOCK;
        let expected = &blocks[total as usize / BLOCK % blocks.len()][place..];
        let got = stream.read(&mut buffer[..expected.len()])?;
        if got == 0 {
            return Ok((total, wrong));
        }
        if buffer[..got] != expected[..got] {
            wrong += buffer.iter().zip(&expected[..got]).filter(|(got, expected)| got != expected).count() as u64;
        }
        total += got as u64;
    }
}
