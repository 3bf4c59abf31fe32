//! How long gets wait when the operator that selects for all racks dies, and when plans change.

use super::Args;
use super::watched::Watched;
use crate::cache::gets::Gets;
use crate::cache::keys::Keys;
use crate::cache::lab::{LabCache, Like, label_of};
use crate::median::median;
use anyhow::{Context, Result, anyhow};
use midflight_cache::select::Algorithm;
use midflight_control::cache::{ControllerSnapshot, RsNodeLine};
use midflight_net::Lab;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::Progress;
use midflight_terminal::usage::INTERRUPTED;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const RACKS: usize = 2;
/// Clients per rack, in one process.
const CLIENTS: u32 = 4;
/// Gets in flight per client.
const UNDER_WAY: usize = 4_096;
const KEYS: u32 = 1_000;
const VALUE_BYTES: usize = 100;
/// Lead of the load before the first plan.
const BEGIN: Duration = Duration::from_secs(1);
/// Interval after a death or a new plan in which outcomes are examined.
const WATCHED: Duration = Duration::from_millis(500);
/// Longest load; enough for all failures.
const LONGEST: Duration = Duration::from_secs(1_100);

/// Notices a death within 60 ms, and plans at once. An operator that died is in plans again after five seconds.
const CONTROL: &str = "\
[plan]
start = \"own-rack\"
every = \"1s\"
hysteresis = 0
[times]
ask_every = \"10ms\"
dead_after = \"60ms\"
repeat_after = \"50ms\"
barred_for = \"3s\"
takeover_after = \"1s\"
longest_response = \"1s\"
";

pub(super) fn run(args: &Args, interrupted: &AtomicBool) -> Result<ExitCode> {
    let like = Like {
        engine: args.engine,
        selector: Algorithm::LeastOutstanding,
        client_racks: RACKS,
        core_selects: true,
        control: CONTROL,
    };
    let lab = Lab::up_unless(&like.lab("failover"), interrupted)?;
    let measured = LabCache::start(like, &lab).and_then(|cache| measure(args, cache, interrupted));
    lab.down()?;
    let Some(results) = measured? else { return Ok(ExitCode::from(INTERRUPTED)) };
    Envelope::new("failover", results).print(args.how.json)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Events {
    deaths: Vec<Instant>,
    /// Changes from one plan to another, under load.
    plans: Vec<Range<Instant>>,
}

fn measure(args: &Args, mut cache: LabCache<'_>, interrupted: &AtomicBool) -> Result<Option<Vec<Measure>>> {
    let failures = if args.how.quick { 2 } else { 10 };
    let keys = Keys::new(KEYS, 0.0, VALUE_BYTES)?;
    let clients = (0..RACKS)
        .map(|rack| cache.clients(rack, CLIENTS, |builder, operator| builder.operator(operator).in_flight(UNDER_WAY)))
        .collect::<Result<Vec<_>>>()?;
    cache.within(0, || keys.set_all(&clients[0][0], interrupted, &|| ()))??;
    let watched = Watched::new();
    let stop = AtomicBool::new(false);
    let gets = |rack| Gets {
        keys: keys.clone(),
        rate: f64::from(args.rate) / RACKS as f64,
        warm_up: Duration::ZERO,
        measured: LONGEST,
        seed: rack as u64,
    };
    let (events, measured) = std::thread::scope(|scope| {
        let load = |rack: usize| {
            let (gets, clients, stop, watched) = (gets(rack), &clients[rack], &stop, &watched);
            scope.spawn(move || gets.run(clients, stop, watched))
        };
        let loads: Vec<_> = (0..RACKS).map(load).collect();
        let events = fail(&mut cache, failures, interrupted);
        stop.store(true, Relaxed);
        let of_racks = loads.into_iter().map(|load| load.join().map_err(|_| anyhow!("a load has panicked"))?);
        let measured = of_racks.collect::<Result<Vec<_>>>();
        Ok::<_, anyhow::Error>((events?, measured?))
    })?;
    if interrupted.load(Relaxed) {
        return Ok(None);
    }
    let outages: Vec<f64> =
        events.deaths.iter().map(|death| watched.outage(*death, WATCHED).as_secs_f64() * 1e3).collect();
    let late_of_deaths: u64 = events.deaths.iter().map(|death| watched.late(&(*death..*death + WATCHED))).sum();
    let late_of_plans: u64 = events.plans.iter().map(|plan| watched.late(plan)).sum();
    let lost = measured.iter().map(|of_rack| of_rack.failures()).sum();
    let wrong = measured.iter().map(|of_rack| of_rack.wrong + of_rack.missing).sum();
    if let Some(error) = measured.iter().find_map(|of_rack| of_rack.first_error.as_ref()) {
        eprintln!("{lost} gets were not answered: {error}");
    }
    let gets_per_s: f64 =
        measured.iter().map(|of_rack| of_rack.latencies_ns.len() as f64 / of_rack.elapsed.as_secs_f64()).sum();
    let longest = outages.iter().copied().fold(0.0, f64::max);
    let else_late = watched.all_late().saturating_sub(late_of_deaths + late_of_plans);
    Ok(Some(vec![
        Measure::quantity("live.failover_ms", median(outages), "ms"),
        Measure::quantity("live.failover_max_ms", longest, "ms"),
        Measure::count("live.lost", lost, "gets"),
        Measure::count("live.wrong", wrong, "gets"),
        Measure::count("live.late_of_deaths", late_of_deaths, "gets"),
        Measure::count("live.late_of_plans", late_of_plans, "gets"),
        Measure::count("live.late_else", else_late, "gets"),
        Measure::count("live.plans", events.plans.len() as u64, "changes"),
        Measure::quantity("live.gets_per_s", gets_per_s, "gets/s"),
    ]))
}

/// The operator in the middle, `failures` times.
fn fail(cache: &mut LabCache<'_>, failures: u64, interrupted: &AtomicBool) -> Result<Events> {
    let core = cache.core();
    let mut events = Events::default();
    let progress = Progress::counted(Some(failures), "deaths", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
    std::thread::sleep(BEGIN);
    for _ in 0..failures {
        // Wait for a plan in which it selects for both racks, computed under load.
        let before = Instant::now();
        let is_planned = |seen: &ControllerSnapshot| (0..RACKS).all(|rack| selects(seen, "core-0", rack));
        cache.wait_until("the operator in the middle selects for all", is_planned)?;
        events.plans.push(before..Instant::now() + WATCHED);
        std::thread::sleep(2 * WATCHED);
        if interrupted.load(Relaxed) {
            break;
        }
        events.deaths.push(Instant::now());
        cache.kill_operator(core);
        std::thread::sleep(WATCHED);
        let moved = |seen: &ControllerSnapshot| (0..RACKS).all(|rack| selects(seen, &format!("tor-{rack}"), rack));
        let before = Instant::now();
        cache.wait_until("the operators of the racks select", moved)?;
        events.plans.push(before..Instant::now() + WATCHED);
        std::thread::sleep(WATCHED);
        cache.start_operator(core).context("the operator does not start again")?;
        progress.advance();
    }
    progress.finish();
    Ok(events)
}

fn selects(seen: &ControllerSnapshot, switch: &str, rack: usize) -> bool {
    let of_switch = |label| {
        let is_it = |node: &&RsNodeLine| node.id == label && node.switch.as_deref() == Some(switch);
        seen.rsnodes.iter().any(|node| is_it(&node) && node.used == "serving")
    };
    label_of(seen, rack).is_some_and(of_switch)
}
