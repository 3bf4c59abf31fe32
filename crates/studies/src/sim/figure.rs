//! `midflight sim figure`: reproduces the papers' figures in the simulator.

mod output;

use crate::cells::{Job, Kept, Store, run_all};
use crate::report::figures::{HowRun, Shown, Spent, draw};
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_papers::cell::{Cell, Load};
use midflight_papers::figures::{self, Case, Effort, Figure, Results};
use midflight_terminal::machine::cores;
use midflight_terminal::{stdout, usage};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight sim figure bolt-12                   its verdicts; plots and report in ./figures
  midflight sim figure falcon-8 bolt-13a --quick
  midflight sim figure --all -j 8 --out docs/figures
  midflight sim figure bolt-13b --json
  midflight sim figure scale --list              its cells, one JSON object a line, to run elsewhere

FIGURES
  falcon-8, falcon-9-10, bolt-11, bolt-12, bolt-13a, bolt-13b, bolt-14, bolt-15, bolt-16,
  bolt-17, scale, asic-passes

RESULTS (docs/figures.md explains every figure, row and verdict)
  FIGURE.ROW.paper, FIGURE.ROW.ours  the paper's value, and the mean over the seeds
  FIGURE.ROW.ours_95                 half of the width of its 95 % confidence interval
  FIGURE.ROW.ratio                   ours by the paper's
  FIGURE.ROW.verdict                 pass, shape or fail
  FIGURE.pass, FIGURE.shape, FIGURE.fail

Cells are processes. What one has computed is kept in --cells and used again, until the simulator's
sources change: a run that was interrupted goes on where it was.

EXIT CODES
  0 all were run, whatever their verdicts, 1 a cell failed or a file cannot be written,
  2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Which figures
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Each cell is run with the seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,
    /// Cells at a time; default: one a core
    #[arg(long, short, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// Where plots and report are written
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Where the cells' results are kept; default: `cells` in --out
    #[arg(long, value_name = "DIR")]
    cells: Option<PathBuf>,
    /// A trace instead of the generated one, for the figures with a trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Shorter runs, to see that it works
    #[arg(long)]
    quick: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Print the cells instead of running them
    #[arg(long, conflicts_with = "json")]
    list: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let wanted = wanted(args)?;
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let cases: Vec<(&Figure, Vec<Case>)> = wanted.iter().map(|&figure| (figure, (figure.cases)(effort))).collect();
    let jobs: Vec<Job> = cases.iter().flat_map(|(figure, cases)| jobs(args, figure, cases)).collect();
    if args.list {
        let lines: Vec<String> = jobs.iter().map(|job| serde_json::to_string(&job.cell)).collect::<Result<_, _>>()?;
        stdout::print(&(lines.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(trace) = &args.trace {
        std::fs::File::open(trace).map_err(|error| usage::error(format!("--trace {}: {error}", trace.display())))?;
    }
    // Checked now, not after hours of cells.
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let store = Store::open(&args.cells.clone().unwrap_or_else(|| args.out.join("cells")))?;
    let kept = run_all(&jobs, &store, parallel(args.jobs))?;
    let mut kept = kept.into_iter();
    let shown = cases.iter().map(|(figure, cases)| show(figure, cases, args.seeds, &mut kept));
    let shown: Vec<Shown<'_>> = shown.collect::<Result<_>>()?;
    output::write(&shown, &how(args), &args.out, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// How many cells to run at a time.
pub(super) fn parallel(asked: Option<NonZeroUsize>) -> usize {
    asked.map_or(cores() as usize, NonZeroUsize::get)
}

fn wanted(args: &Args) -> Result<Vec<&'static Figure>> {
    if args.all {
        return Ok(figures::ALL.iter().collect());
    }
    let mut wanted: Vec<&'static Figure> = Vec::new();
    for name in &args.names {
        let known = || figures::ALL.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        let found = figures::find(name);
        let found = found.ok_or_else(|| usage::error(format!("there is no figure `{name}`; there are {}", known())))?;
        if !wanted.iter().any(|figure| figure.name == found.name) {
            wanted.push(found);
        }
    }
    Ok(wanted)
}

/// The cells of a figure: each case with each seed, seeds of a case side by side.
fn jobs(args: &Args, figure: &Figure, cases: &[Case]) -> Vec<Job> {
    let job = |case: &Case, seed| {
        let mut cell = Cell { seed, ..case.cell.clone() };
        if let (Load::Trace { file, .. }, Some(trace)) = (&mut cell.load, &args.trace) {
            *file = Some(trace.clone());
        }
        Job { name: format!("{} {} seed {seed}", figure.name, case.name), cell }
    };
    cases.iter().flat_map(|case| (1..=args.seeds).map(move |seed| job(case, seed))).collect()
}

/// Takes as many results as the figure has cells.
fn show<'a>(
    figure: &'a Figure,
    cases: &[Case],
    seeds: u64,
    kept: &mut impl Iterator<Item = Kept>,
) -> Result<Shown<'a>> {
    let (mut results, mut spent) = (Results::default(), Spent::default());
    for case in cases {
        for _ in 0..seeds {
            let Some(kept) = kept.next() else { break };
            spent.cells += 1;
            spent.wall_s += kept.cost.wall_s;
            spent.peak_mib = spent.peak_mib.max(kept.cost.peak_mib);
            spent.events += kept.result.events;
            results.push(&case.name, kept.result);
        }
    }
    let findings = (figure.reduce)(&results);
    let pictures = draw(&findings)?;
    Ok(Shown { figure, findings, pictures, spent })
}

/// The command that produces it again.
fn how(args: &Args) -> HowRun {
    let names = if args.all { "--all".to_owned() } else { args.names.join(" ") };
    let trace = args.trace.as_ref().map_or(String::new(), |trace| format!(" --trace {}", trace.display()));
    let quick = if args.quick { " --quick" } else { "" };
    let command =
        format!("midflight sim figure {names} --seeds {}{quick}{trace} --out {}", args.seeds, args.out.display());
    HowRun { seeds: args.seeds, quick: args.quick, command }
}
