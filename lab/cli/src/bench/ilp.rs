//! `midflight-lab bench ilp`: how long a plan of RSNodes takes, and how often it is proven optimal.

use super::How;
use crate::median::median;
use anyhow::{Result, bail, ensure};
use midflight_placement::generate::{Generator, Grain, generate};
use midflight_placement::topology::{Accelerator, Topology};
use midflight_placement::{HAS_ILP, Instance, Options, Outcome, Use, solve, violations};
use midflight_terminal::envelope::{Envelope, Measure};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// E of all instances: 20 % of the requests, as in the paper.
const EXTRA_HOPS: f64 = 0.2;
/// Loads of the instances in turn: tenths from 0.1 to this many.
const LOADS: u64 = 9;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench ilp
  midflight-lab bench ilp --quick            20 instances instead of 200
  midflight-lab bench ilp --json

Instances of the generator `uniform`, seeds 1, 2, 3, ..; loads 0.1 to 0.9 in turn; E = 20 %.
`midflight plan --topology fat-tree:16 --generate uniform --seed 1 --load 0.1` prints the first.

RESULTS
  ilp.k16.aggregated_ms            16-ary fat-tree, rack groups, aggregated form unpacked: median
  ilp.k16.aggregated_p95_ms        the same, the slowest ones
  ilp.k16.aggregated_max_ms
  ilp.k16.aggregated_share         share proven optimal by the aggregated form alone
  ilp.k16.certified_share          share proven optimal with the full form behind it, in 5 s
  ilp.k16.worst_gap                RSNodes more than the bound, at most
  ilp.k48.seconds                  48-ary fat-tree, 1,152 racks, load 0.3; with its gap in k48.gap
  ilp.hosts.seconds                16-ary fat-tree, 1,024 host groups, load 0.9; with hosts.gap

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    if !HAS_ILP {
        bail!("this build has no ILP: build with --features midflight-cli/ilp, which needs cmake, c++ and libclang");
    }
    let mut results = k16(if how.quick { 20 } else { 200 })?;
    results.extend(one("k48", 48, Grain::Rack, 0.3, Duration::from_secs(5))?);
    results.extend(one("hosts", 16, Grain::Host, 0.9, Duration::from_secs(10))?);
    Envelope::new("ilp", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn instance(tree: &Topology, grain: Grain, seed: u64, load: f64) -> Result<Instance> {
    let groups = generate(tree, Generator::Uniform, seed, load, grain)?;
    Ok(Instance::with_share(tree.clone(), groups, EXTRA_HOPS, 1))
}

fn fat_tree(k: usize) -> Result<Topology> {
    Ok(Topology::fat_tree(k, &Accelerator::paper("each".into()))?)
}

struct Planned {
    ms: f64,
    gap: usize,
}

fn plan(instance: &Instance, methods: Use, time_limit: Duration) -> Result<Planned> {
    let start = Instant::now();
    let outcome = solve(instance, &Options { methods, time_limit });
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let Outcome::Solved(solved) = outcome else { bail!("a generated instance has no plan") };
    let broken = violations(instance, &solved.plan);
    ensure!(broken.is_empty(), "a plan violates a constraint: {broken:?}");
    Ok(Planned { ms, gap: solved.gap() })
}

fn k16(instances: u64) -> Result<Vec<Measure>> {
    let tree = fat_tree(16)?;
    let (mut ms, mut aggregated, mut certified, mut worst) = (vec![], 0_u64, 0_u64, 0);
    for seed in 1..=instances {
        if seed % 20 == 0 {
            eprintln!("instance {seed} of {instances}");
        }
        let load = ((seed - 1) % LOADS + 1) as f64 / 10.0;
        let instance = instance(&tree, Grain::Rack, seed, load)?;
        let first = plan(&instance, Use::Aggregated, Duration::from_secs(5))?;
        ms.push(first.ms);
        aggregated += u64::from(first.gap == 0);
        let last = if first.gap == 0 { first } else { plan(&instance, Use::Best, Duration::from_secs(5))? };
        certified += u64::from(last.gap == 0);
        worst = worst.max(last.gap);
    }
    ms.sort_by(f64::total_cmp);
    let share = |count: u64| count as f64 / instances as f64;
    let p95 = ms[(ms.len() * 95 / 100).min(ms.len() - 1)];
    let max = ms[ms.len() - 1];
    Ok(vec![
        Measure::quantity("ilp.k16.aggregated_ms", median(ms), "ms"),
        Measure::quantity("ilp.k16.aggregated_p95_ms", p95, "ms"),
        Measure::quantity("ilp.k16.aggregated_max_ms", max, "ms"),
        Measure::quantity("ilp.k16.aggregated_share", share(aggregated), ""),
        Measure::quantity("ilp.k16.certified_share", share(certified), ""),
        Measure::count("ilp.k16.worst_gap", worst as u64, ""),
    ])
}

fn one(name: &str, k: usize, grain: Grain, load: f64, time_limit: Duration) -> Result<Vec<Measure>> {
    eprintln!("{name}: one instance");
    let instance = instance(&fat_tree(k)?, grain, 1, load)?;
    let planned = plan(&instance, Use::Best, time_limit)?;
    Ok(vec![
        Measure::quantity(&format!("ilp.{name}.seconds"), planned.ms / 1e3, "s"),
        Measure::count(&format!("ilp.{name}.gap"), planned.gap as u64, ""),
    ])
}
