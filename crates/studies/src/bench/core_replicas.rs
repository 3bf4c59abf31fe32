//! `midflight bench core --program replicas`: what the rules of an operator cost, in memory.

use super::How;
use super::replicas_packets::{BLOCK, Case, NOW, SECRET, config, rules};
use crate::median::median;
use anyhow::{Result, ensure};
use midflight_dataplane::Out;
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::replicas::{Outcome, Replicas, ReplicasProgram, Verdict};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_wire::Address;
use std::process::ExitCode;
use std::time::Instant;

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, blocks) = if how.quick { (1, 50) } else { (5, 500) };
    let mut costs: [Vec<f64>; Case::ALL.len()] = Default::default();
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        let mut operator = operator()?;
        for ((case, _), costs) in Case::ALL.iter().zip(&mut costs) {
            costs.push(cost(&mut operator, *case, blocks)?);
        }
    }
    let costs = costs.map(median);
    let dearest = costs.iter().copied().fold(0.0, f64::max);
    let rules = Case::ALL.iter().zip(costs).map(|((_, name), cost)| (format!("core.{name}"), cost));
    let all = [("core.rule_ns".to_owned(), dearest)].into_iter().chain(rules);
    let results = all.map(|(name, cost)| Measure::quantity(&name, cost, "ns"));
    let bytes = Measure::count("core.state_bytes", ReplicasProgram::state_bytes(&config()), "bytes");
    Envelope::new("core", results.chain([bytes]).collect()).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn operator() -> Result<Replicas> {
    let mut operator = Replicas::new(&config(), 1, SECRET)?;
    for rule in rules() {
        ensure!(operator.set(rule) == Outcome::Done, "the operator refused {rule:?}");
    }
    Ok(operator)
}

/// Nanoseconds of a rule: the median of blocks.
fn cost(operator: &mut Replicas, case: Case, blocks: usize) -> Result<f64> {
    let packets: Vec<(Address, Vec<u8>)> =
        case.packets().into_iter().map(|(from, datagram)| (from.into(), datagram)).collect();
    let mut out = Out::new();
    let mut costs = Vec::with_capacity(blocks);
    for _ in 0..blocks {
        // The operator rewrites them.
        let mut packets = packets.clone();
        let started = Instant::now();
        let mut forwarded = 0;
        for (from, datagram) in &mut packets {
            forwarded += u32::from(operator.take(NOW, *from, datagram, &mut out) == Verdict::Forwarded);
        }
        costs.push(started.elapsed().as_nanos() as f64 / f64::from(BLOCK));
        ensure!(forwarded == BLOCK, "{case:?}: {forwarded} packets of {BLOCK} were forwarded");
    }
    Ok(median(costs))
}
