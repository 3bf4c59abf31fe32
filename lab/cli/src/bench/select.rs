//! `midflight-lab bench select`: the cost of choosing a replica and of learning from a response, per selector.

use super::How;
use crate::median::median;
use anyhow::{Result, bail};
use midflight_cache::select::{Algorithm, Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_terminal::envelope::{Envelope, Measure};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::process::ExitCode;
use std::time::Instant;

/// Three have each key.
const SERVERS: u16 = 100;
/// Requests sent before all of them are answered.
const BLOCK: usize = 512;
/// Long enough that rate control delays none.
const STEP: Nanos = MS;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench select
  midflight-lab bench select --quick         a second, less exact
  midflight-lab bench select --json
  midflight-lab bench select --against ../before/target/release/midflight-lab

RESULTS (medians of blocks of 512 requests, then of the runs; one core; 3 candidates of 100 servers)
  select.NAME_ns                         one choice
  select.NAME_answered_ns                what a selector does with one response

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, blocks) = if how.quick { (1, 100) } else { (5, 1_000) };
    let mut costs = vec![[vec![], vec![]]; Algorithm::ALL.len()];
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        for (all, algorithm) in costs.iter_mut().zip(Algorithm::ALL) {
            let of_run = Bench::new(algorithm, run)?.run(blocks)?;
            all.iter_mut().zip(of_run).for_each(|(all, one)| all.push(one));
        }
    }
    let mut results = Vec::new();
    for ([choice, answered], algorithm) in costs.into_iter().zip(Algorithm::ALL) {
        let name = algorithm.name().replace('-', "_");
        results.push(Measure::quantity(&format!("select.{name}_ns"), median(choice), "ns"));
        results.push(Measure::quantity(&format!("select.{name}_answered_ns"), median(answered), "ns"));
    }
    Envelope::new("select", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

struct Bench {
    selector: Box<dyn Selector + Send>,
    random: Pcg64,
    now: Nanos,
    sequence: u16,
}

impl Bench {
    fn new(algorithm: Algorithm, seed: u64) -> Result<Self> {
        let selector = algorithm.selector(SERVERS, 10);
        let mut bench = Self { selector, random: Pcg64::seed_from_u64(seed), now: SECOND, sequence: 0 };
        // Until every server is known.
        for _ in 0..20 {
            bench.block()?;
        }
        Ok(bench)
    }

    /// Nanoseconds of a choice and of a response: medians over blocks.
    fn run(&mut self, blocks: usize) -> Result<[f64; 2]> {
        let mut costs = [vec![], vec![]];
        for _ in 0..blocks {
            let of_block = self.block()?;
            costs.iter_mut().zip(of_block).for_each(|(all, one)| all.push(one));
        }
        Ok(costs.map(median))
    }

    fn block(&mut self) -> Result<[f64; 2]> {
        let requests = (0..BLOCK).map(|_| self.request()).collect::<Result<Vec<_>>>()?;
        let mut choices = vec![Choice::Wait(0); BLOCK];
        let start = Instant::now();
        for ((candidates, random), choice) in requests.iter().zip(&mut choices) {
            self.now += STEP;
            *choice = self.selector.choose(self.now, candidates, *random);
        }
        let choice_ns = start.elapsed().as_nanos() as f64 / BLOCK as f64;
        let answers = choices.iter().map(|choice| self.answer(*choice)).collect::<Result<Vec<_>>>()?;
        let start = Instant::now();
        for (server, took, status) in &answers {
            self.now += STEP;
            self.selector.answered(self.now, *server, *took, Some(*status));
        }
        Ok([choice_ns, start.elapsed().as_nanos() as f64 / BLOCK as f64])
    }

    fn request(&mut self) -> Result<(Candidates, u64)> {
        let first = self.random.random_range(0..SERVERS);
        let servers = [0, 1, 2].map(|i| Server((first + i) % SERVERS));
        Ok((Candidates::new(&servers)?, self.random.random()))
    }

    fn answer(&mut self, choice: Choice) -> Result<(Server, Nanos, Status)> {
        let Choice::Send(server) = choice else { bail!("rate control kept back one request a millisecond") };
        self.sequence = self.sequence.wrapping_add(1);
        let service_us = self.random.random_range(100..8_000);
        let status = Status { queue: self.random.random_range(0..10), service_us, sequence: self.sequence };
        Ok((server, Nanos::from(service_us) * 2_000, status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_selector_is_measured_with_servers_that_it_knows() {
        for algorithm in Algorithm::ALL {
            let mut bench = Bench::new(algorithm, 1).unwrap();
            let [choice, answered] = bench.run(3).unwrap();
            assert!(choice > 0.0 && answered > 0.0, "{algorithm}");
            let counts = bench.selector.counts();
            assert_eq!(counts, Default::default(), "{algorithm}");
        }
    }
}
