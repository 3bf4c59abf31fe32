//! `midflight-lab sim sweep`: all combinations of values for some of a cell's parameters.

mod results;
mod spec;

use super::{figure::parallel, traces};
use crate::cells::{Job, Pool, Store};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_terminal::stdout;
use spec::Spec;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab sim sweep ratio.toml                 results in ./sweep
  midflight-lab sim sweep ratio.toml -j 16 --out ratio
  midflight-lab sim sweep ratio.toml --list          its cells, one JSON object a line, to run elsewhere

SPEC.toml
  seeds = 5                                      each combination with the seeds 1 to 5
  [cell]                                         as `midflight-lab sim cell` takes it, without seed
  warmup_ms = 500
  duration_ms = 3000
  scheme = { name = \"sparrow-cpp\" }
  cluster = { groups = [{ nodes = 10, executors = 6 }] }
  load = { name = \"sw1\", utilisation = 0.8, work = \"sleep\" }
  [grid]                                         paths into the cell, and the values to try
  \"scheme.ratio\" = [1.05, 2, 3]
  \"load.utilisation\" = [0.5, 0.8, 0.95]
  \"cluster.groups.0.executors\" = [6, 12]

Written to --out: results.csv (a line for each cell), results.jsonl (all of each result), cells/
(what has been run; a sweep that was interrupted goes on from there). bench/sweep fans the same
cells out on Ray or Dask.

RESULTS (POINT counts combinations from 0; means over the seeds)
  sweep.cells, sweep.POINT.parameters, sweep.POINT.delay_p50_us, .delay_p95_us, .delay_p99_us,
  .started_per_s

EXIT CODES
  0 all were run, 1 a cell failed or a file cannot be written, 2 a specification that makes no
  sense, 130 interrupted";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The file that describes the sweep (TOML)
    #[arg(value_name = "SPEC.toml")]
    spec: PathBuf,
    /// Cells at a time; default: one a core
    #[arg(long, short, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// Where results are written
    #[arg(long, value_name = "DIR", default_value = "sweep")]
    out: PathBuf,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Print the cells instead of running them
    #[arg(long, conflicts_with = "json")]
    list: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let spec = Spec::load(&args.spec)?;
    let points = spec.points()?;
    let cells = points.iter().flat_map(|point| {
        let name = point.name();
        (1..=spec.seeds).map(move |seed| Job { name: format!("{name} seed {seed}"), cell: point.cell(seed) })
    });
    let jobs: Vec<Job> = cells.collect();
    if args.list {
        let lines: Vec<String> = jobs.iter().map(|job| serde_json::to_string(&job.cell)).collect::<Result<_, _>>()?;
        stdout::print(&(lines.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let store = Store::open(&args.out.join("cells"), traces::folder(None)?.as_deref())?;
    let kept = Pool::new(parallel(args.jobs))?.run(&jobs, &store)?;
    results::write(&spec, &points, &kept, &args.out, args.json)?;
    Ok(ExitCode::SUCCESS)
}
