//! The same stores in the simulator, with costs measured live: is the simulator to be believed?

use super::costs::Costs;
use super::plan::Part;
use super::report::pairs;
use super::samples::Samples;
use super::workload::{KEYS, Mix};
use crate::bench::ratio;
use anyhow::Result;
use midflight_control::store::ReadMode;
use midflight_papers::cell::Percentiles;
use midflight_papers::flair::{self, Cell, CellResult, System};
use midflight_terminal::envelope::Measure;
use midflight_terminal::progress::Progress;
use std::collections::BTreeMap;

/// `validation.WORKLOAD.…`: live by simulated, over the rounds.
pub(super) fn measures(samples: &Samples, parts: &[Part], costs: &Costs, share: f64) -> Result<Vec<Measure>> {
    let simulated = simulate(parts, costs, share)?;
    let mut measures = Vec::new();
    let of = |workload: &str, store: &str| simulated.get(&(workload.to_owned(), store.to_owned()));
    for (workload, store, _) in samples.all() {
        let Some(result) = of(workload, store) else { continue };
        let mut row = |what: &str, live: Vec<f64>, simulated: f64| {
            let simulated = vec![simulated; live.len()];
            let name = format!("validation.{workload}.{store}.{what}");
            measures.extend(ratio::measures(&name, ".ratio", &live, &simulated));
        };
        row("throughput", samples.each(workload, store, |done| done.per_second()), result.per_second);
        for (what, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let live = samples.each(workload, store, |done| done.latency(quantile));
            row(what, live, seconds(&result.reads, quantile));
        }
    }
    for (workload, this, other) in pairs(samples) {
        let Some((this_result, other_result)) = of(workload, this).zip(of(workload, other)) else { continue };
        let rates = |store| samples.each(workload, store, |done| done.per_second());
        let live: Vec<f64> = rates(this).iter().zip(rates(other)).map(|(this, other)| this / other).collect();
        let simulated = vec![this_result.per_second / other_result.per_second; live.len()];
        let name = format!("validation.{workload}.{this}_over_{other}");
        measures.extend(ratio::measures(&name, ".ratio", &live, &simulated));
    }
    Ok(measures)
}

fn seconds(reads: &Percentiles, quantile: f64) -> f64 {
    reads.at(quantile) / 1e3
}

fn simulate(parts: &[Part], costs: &Costs, share: f64) -> Result<BTreeMap<(String, String), CellResult>> {
    let jobs = parts.iter().flat_map(|part| part.mixes.iter().map(move |mix| (part, mix)));
    let jobs: Vec<(&Part, &Mix)> = jobs.filter(|(_, mix)| mix.clients > 0).collect();
    let progress =
        Progress::counted(Some(jobs.len() as u64), "simulated", "{bar:40} {human_pos}/{human_len}, {elapsed}");
    let way_ns = way_ns(costs, share)?;
    let mut results = BTreeMap::new();
    for (part, mix) in jobs {
        let cell = Cell { way_ns, ..cell(part, mix, costs, share) };
        results.insert((mix.name.clone(), part.name.clone()), flair::run(&cell)?);
        progress.advance();
    }
    progress.finish();
    Ok(results)
}

/// What the ways of this machine take beyond the simulated ones: with it, a read alone takes as long.
fn way_ns(costs: &Costs, share: f64) -> Result<u64> {
    let [part, _] = super::costs::parts();
    let idle = Mix { clients: 1, ..Mix::new("idle", 0.0) };
    let alone = flair::run(&cell(&part, &idle, costs, share))?;
    Ok(((costs.idle / 1e6 - seconds(&alone.reads, 0.5)) / 2.0 * 1e9).max(0.0) as u64)
}

fn cell(part: &Part, mix: &Mix, costs: &Costs, share: f64) -> Cell {
    let ns = |us: f64| (us * 1e3) as u64;
    let background = if part.replicas == 1 { costs.background_alone } else { costs.background };
    // What is left for requests.
    let left = share - background;
    Cell {
        system: system(part.mode),
        policy: part.policy,
        replicas: part.replicas as u8,
        clients: mix.clients,
        machines: super::load::WORKERS,
        reads: 1.0 - mix.writes,
        keys: KEYS,
        zipf: mix.zipf,
        costs: flair::Costs {
            threads: 1,
            share_per_mille: (left * 1e3).round() as u32,
            wake_up_ns: ns(costs.wake_up),
            read_ns: ns(costs.read),
            write_ns: ns(costs.write_leader),
            copy_ns: Some(ns(costs.read)),
            write_alone_ns: ns(costs.write_alone),
            entry_ns: ns(costs.write_follower),
        },
        slower_per_mille: ((left / (share * part.slow - background) - 1.0) * 1e3).round() as u32,
        warmup_ms: 1_000,
        duration_ms: 3_000,
        ..Cell::default()
    }
}

fn system(mode: ReadMode) -> System {
    match mode {
        ReadMode::Flair => System::Flair,
        ReadMode::FollowerLease => System::FollowerLease,
        ReadMode::LeaderLease => System::LeaderLease,
        ReadMode::Raft => System::Raft,
        ReadMode::Unreplicated => System::Unreplicated,
        ReadMode::FollowerReadIndex => System::FollowerReadIndex,
    }
}
