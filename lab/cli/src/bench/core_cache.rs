//! `midflight-lab bench core --program cache`: the cost of an operator's rules, in memory.

use super::How;
use super::cache_packets::{
    BLOCK, Case, From, NOW, SECRET, SELECTIONS, answer_to, choosing, choosing_orders, config, rules, to_choose,
};
use crate::median::median;
use anyhow::{Result, ensure};
use midflight_dataplane::Out;
use midflight_dataplane::cache::{Cache, CacheProgram, Outcome, Selection, Verdict};
use midflight_dataplane::program::SoftProgram;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_wire::Address;
use std::process::ExitCode;
use std::time::Instant;

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, blocks) = if how.quick { (1, 50) } else { (5, 500) };
    let mut costs: [Vec<f64>; Case::ALL.len()] = Default::default();
    let mut chosen: [[Vec<f64>; 2]; SELECTIONS.len()] = Default::default();
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        for ((selection, _), [select, answer]) in SELECTIONS.iter().zip(&mut chosen) {
            let (of_request, of_answer) = select_cost(*selection, blocks)?;
            select.push(of_request);
            answer.push(of_answer);
        }
        let mut operator = operator()?;
        for ((case, _), costs) in Case::ALL.iter().zip(&mut costs) {
            costs.push(cost(&mut operator, *case, blocks)?);
        }
    }
    let costs = costs.map(median);
    let dearest = costs.iter().copied().fold(0.0, f64::max);
    let rules = Case::ALL.iter().zip(costs).map(|((_, name), cost)| (format!("core.{name}"), cost));
    let chosen = SELECTIONS.iter().zip(chosen).flat_map(|((_, name), costs)| {
        let [select, answer] = costs.map(median);
        [(format!("core.select_{name}_ns"), select), (format!("core.answer_{name}_ns"), answer)]
    });
    let all = [("core.rule_ns".to_owned(), dearest)].into_iter().chain(rules).chain(chosen);
    let results = all.map(|(name, cost)| Measure::quantity(&name, cost, "ns"));
    let bytes = Measure::count("core.state_bytes", CacheProgram::state_bytes(&config()), "bytes");
    Envelope::new("core", results.chain([bytes]).collect()).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn operator() -> Result<Cache> {
    let mut operator = Cache::new(&config(), 1, SECRET)?;
    for rule in rules() {
        ensure!(operator.set(rule) == Outcome::Done, "the operator refused {rule:?}");
    }
    Ok(operator)
}

/// Nanoseconds of a rule: the median over blocks.
fn cost(operator: &mut Cache, case: Case, blocks: usize) -> Result<f64> {
    let packets = case.packets();
    let costs = (0..blocks).map(|_| Ok(take(operator, &packets)?.0)).collect::<Result<_>>()?;
    Ok(median(costs))
}

/// Nanoseconds of a request and of a response if the core selects: medians over blocks.
fn select_cost(selection: Selection, blocks: usize) -> Result<(f64, f64)> {
    let mut operator = Cache::new(&choosing(selection), 1, SECRET)?;
    for mut order in choosing_orders() {
        while !operator.order(&mut order) {}
        ensure!(order.outcome() == Outcome::Done, "the operator refused {order:?}");
    }
    let requests = to_choose();
    let (mut selects, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..blocks {
        let (cost, sent) = take(&mut operator, &requests)?;
        selects.push(cost);
        let answered = (0..).zip(&sent).map(|(i, sent)| answer_to(sent, i)).collect::<Result<Vec<_>>>()?;
        answers.push(take(&mut operator, &answered)?.0);
    }
    ensure!(operator.stats().unmatched == 0, "{:?}", operator.stats());
    Ok((median(selects), median(answers)))
}

/// Nanoseconds per packet, and the rewritten packets.
fn take(operator: &mut Cache, packets: &[From]) -> Result<(f64, Vec<Vec<u8>>)> {
    let mut packets: Vec<(Address, Vec<u8>)> =
        packets.iter().map(|(from, datagram)| ((*from).into(), datagram.clone())).collect();
    let mut out = Out::new();
    let mut forwarded = 0;
    let started = Instant::now();
    for (from, datagram) in &mut packets {
        forwarded += u32::from(operator.take(NOW, *from, datagram, &mut out) == Verdict::Forwarded);
    }
    let cost = started.elapsed().as_nanos() as f64 / f64::from(BLOCK);
    ensure!(forwarded == BLOCK, "{forwarded} packets of {BLOCK} were forwarded");
    Ok((cost, packets.into_iter().map(|(_, datagram)| datagram).collect()))
}
