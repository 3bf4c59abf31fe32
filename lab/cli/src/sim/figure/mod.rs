//! `midflight-lab sim figure`: reproduces the papers' figures in the simulator.

mod compare;
mod output;
mod recheck;

use super::traces::{self, Columns};
use crate::cells::{Job, Kept, Pool, Store};
use crate::report::figures::{HowRun, Shown, Spent, draw, told};
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_papers::cell::{Cell, Load};
use midflight_papers::experiment::Experiment;
use midflight_papers::figures::{self, Case, Effort, Figure};
use midflight_papers::findings::Verdict;
use midflight_placement::HAS_ILP;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::machine::cores;
use midflight_terminal::{stdout, usage};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab sim figure bolt-12                   its verdicts; plots and report in ./figures
  midflight-lab sim figure flair --out docs/figures/store --cells cells
  midflight-lab sim figure falcon-8 bolt-13a --quick
  midflight-lab sim figure --all -j 8 --out docs/figures
  midflight-lab sim figure bolt-13b --json
  midflight-lab sim figure --all --first-seed 1001 --out again --compare figures/results.json
  midflight-lab sim figure scale --list              its cells, one JSON object a line, to run elsewhere
  midflight-lab sim figure --recheck --cells docs/figures/cells

FIGURES
  falcon-8, falcon-9-10, bolt-11, bolt-12, bolt-13a, bolt-13b, bolt-14, bolt-15, bolt-16,
  bolt-17, scale, asic-passes; netrs-4, netrs-5, netrs-6, netrs-7, netrs-change, netrs-flat,
  netrs-selectors; flair-clients, flair-skew, flair-ratio, flair-cdf, flair-share, flair-faults,
  flair-scale, flair-lb, flair-kgroups. The name of a paper stands for all of its figures: flair.
  Those of NetRS, but for netrs-flat, need a build with the ILP.

RESULTS (docs/figures.md explains every figure, row and verdict)
  FIGURE.ROW.paper, FIGURE.ROW.ours  the paper's value, and the mean over the seeds
  FIGURE.ROW.ours_95                 half of the width of its 95 % confidence interval
  FIGURE.ROW.ratio                   ours by the paper's
  FIGURE.ROW.class                   predicted, seen, set, measured or hypothetical
  FIGURE.ROW.verdict                 pass, unsure, shape or fail, by the whole interval
  FIGURE.pass, .unsure, .shape, .fail
  figures.CLASS.total                rows of a class; .numbers.VERDICT and .statements.VERDICT of them
  figures.PAPER.CLASS.total          the same of a paper
  figures.traces, .rules             real traces with columns; the hash of constants and rules
  figures.compared.rows, .equal, .turned, .verdict   with --compare
  selectors.NAME.mean_ms, .p99_ms    by netrs-selectors: each selector at the RSNodes
  figures.rechecked.cells, .equal    by --recheck: cells that were run again; equal results

REAL TRACES
  bolt-13a, bolt-13b and bolt-15 have a column for each of google-sub.tr, google-like-80.tr and
  alibaba2017-batch_task.csv that is in the folder --traces; its rows are FIGURE.TRACE-ROW.

Cells are processes. What one has computed is kept in --cells and used again, until the simulator's
sources change: a run that was interrupted goes on where it was. After a change that should alter no
result, --recheck runs some of the kept cells again; where all are the same, the others stay valid.

EXIT CODES
  0 all were run, whatever their verdicts, 1 a cell failed, a file cannot be written, --compare
  failed or --recheck found a difference, 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Which figures
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "recheck"])]
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Each cell is run with N seeds; default: 10, with --quick 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,
    /// And with more, up to N, while a row of its figure is unsure; default: 40, with --quick no more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    most_seeds: Option<u64>,
    /// The first seed; the others follow it
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1 << 40))]
    first_seed: u64,
    /// The results.json of a former run, with other seeds: exit code 1 if a row turned from pass to fail
    /// or back, or fewer than 90 % of the verdicts are equal
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
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
    /// The folder with the real traces that have columns; default: MIDFLIGHT_TRACES; without: no columns
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Shorter runs, to see that it works
    #[arg(long)]
    quick: bool,
    /// Are the kept results of earlier sources still valid? Runs cells of each scheme and load again
    #[arg(long, conflicts_with_all = ["names", "all", "list", "compare", "trace", "quick", "seeds", "most_seeds"])]
    recheck: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Print the cells instead of running them
    #[arg(long, conflicts_with = "json")]
    list: bool,
}

impl Args {
    fn cells(&self) -> PathBuf {
        self.cells.clone().unwrap_or_else(|| self.out.join("cells"))
    }
}

/// Seeds to add to a figure with unsure rows.
const MORE_SEEDS: u64 = 5;

struct Study {
    figure: &'static Figure,
    cases: Vec<Case>,
    /// Seeds so far, by column: a column without unsure rows gets no more seeds when another does.
    seeds: BTreeMap<Option<&'static str>, u64>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let seeds = args.seeds.unwrap_or(effort.pick(10, 3));
    let most = args.most_seeds.unwrap_or(effort.pick(40, seeds)).max(seeds);
    let columns = Columns::in_folder(traces::folder(args.traces.as_deref())?);
    if args.recheck {
        return recheck::run(&args.cells(), columns.folder.as_deref(), &Pool::new(parallel(args.jobs))?, args.json);
    }
    let study = |figure| Study::new(figure, effort, &columns, seeds);
    let studies: Vec<Study> = wanted(args)?.into_iter().map(study).collect();
    let studies = runnable(studies, args.all)?;
    let absent = columns.absent().filter(|_| studies.iter().any(|study| study.figure.has_columns()));
    let complain = || absent.iter().for_each(|absent| eprintln!("{absent}"));
    if args.list {
        complain();
        let jobs = studies.iter().flat_map(|study| study.jobs(args));
        let lines: Vec<String> = jobs.map(|job| serde_json::to_string(&job.cell)).collect::<Result<_, _>>()?;
        stdout::print(&(lines.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(trace) = &args.trace {
        std::fs::File::open(trace).map_err(|error| usage::error(format!("--trace {}: {error}", trace.display())))?;
    }
    let before = args.compare.as_deref().map(compare::read).transpose()?;
    complain();
    // Check now, not after hours of cells.
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let store = Store::open(&args.cells(), columns.folder.as_deref())?;
    recheck::warn(&store)?;
    let shown = until_sure(args, studies, most, &store)?;
    let envelope = Envelope::new("figure", output::measures(&shown));
    let compared = before.map(|before| compare::compare(&before, &envelope));
    let how = how(args, seeds, most, &columns, absent);
    output::write(&shown, &how, envelope, compared.as_ref().zip(args.compare.as_deref()), &args.out, args.json)?;
    let holds = compared.is_none_or(|compared| compared.holds());
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Adds seeds to those with unsure rows.
fn until_sure(args: &Args, mut studies: Vec<Study>, most: u64, store: &Store) -> Result<Vec<Shown<'static>>> {
    let pool = Pool::new(parallel(args.jobs))?;
    loop {
        let jobs: Vec<Job> = studies.iter().flat_map(|study| study.jobs(args)).collect();
        let mut kept = pool.run(&jobs, store)?.into_iter();
        let shown: Vec<Shown<'_>> =
            studies.iter().map(|study| study.show(&mut kept, args.first_seed)).collect::<Result<_>>()?;
        let mut is_sure = true;
        for (study, shown) in studies.iter_mut().zip(&shown) {
            is_sure &= !study.take_more(shown, most);
        }
        if is_sure {
            return Ok(shown);
        }
    }
}

/// Cells at a time.
pub(super) fn parallel(asked: Option<NonZeroUsize>) -> usize {
    asked.map_or(cores() as usize, NonZeroUsize::get)
}

fn wanted(args: &Args) -> Result<Vec<&'static Figure>> {
    if args.all {
        return Ok(figures::ALL.iter().collect());
    }
    let mut wanted: Vec<&'static Figure> = Vec::new();
    for name in &args.names {
        let is_new = |figure: &&Figure| wanted.iter().all(|other| other.name != figure.name);
        let mut found = figures::find(name).peekable();
        if found.peek().is_none() {
            let known: Vec<&str> = figures::ALL.iter().map(|figure| figure.name).collect();
            return Err(usage::error(format!("there is no figure `{name}`; there are {}", known.join(", "))));
        }
        let new: Vec<_> = found.filter(is_new).collect();
        wanted.extend(new);
    }
    Ok(wanted)
}

/// The figures that this build can run. Of all figures, the others are skipped with a message; a named one is an error.
fn runnable(studies: Vec<Study>, all: bool) -> Result<Vec<Study>> {
    let cannot = |study: &Study| !HAS_ILP && study.cases.iter().any(|case| case.cell.needs_ilp());
    let (out, runnable): (Vec<Study>, Vec<Study>) = studies.into_iter().partition(cannot);
    if out.is_empty() {
        return Ok(runnable);
    }
    let names: Vec<&str> = out.iter().map(|study| study.figure.name).collect();
    let what = format!(
        "{}: this build has no ILP; install cmake, g++ and libclang-dev, and run `make` again",
        names.join(", ")
    );
    if !all {
        return Err(usage::error(what));
    }
    eprintln!("LEFT OUT: {what}");
    Ok(runnable)
}

impl Study {
    fn new(figure: &'static Figure, effort: Effort, columns: &Columns, seeds: u64) -> Self {
        let cases = figure.cases(effort, &columns.present);
        let seeds = cases.iter().map(|case| (case.column(), seeds)).collect();
        Self { figure, cases, seeds }
    }

    fn seeds_of(&self, case: &Case) -> u64 {
        self.seeds.get(&case.column()).copied().unwrap_or(0)
    }

    /// Returns whether there are unsure rows.
    fn take_more(&mut self, shown: &Shown<'_>, most: u64) -> bool {
        let mut takes_more = false;
        for (column, seeds) in &mut self.seeds {
            let mut rows = shown.findings.rows.iter().filter(|row| row.column == *column);
            if *seeds < most && rows.any(|row| told(row) == Verdict::Unsure.name()) {
                *seeds = (*seeds + MORE_SEEDS).min(most);
                takes_more = true;
            }
        }
        takes_more
    }

    /// Its cells: each case with each seed, the seeds of a case adjacent.
    fn jobs(&self, args: &Args) -> Vec<Job> {
        let job = |case: &Case, seed| {
            let mut cell = case.cell.with_seed(seed);
            if let (Experiment::Tasks(Cell { load: Load::Trace { file, .. }, .. }), Some(trace)) =
                (&mut cell, &args.trace)
            {
                *file = Some(trace.clone());
            }
            Job { name: format!("{} {} seed {seed}", self.figure.name, case.name), cell }
        };
        let seeds = |case: &Case| (0..self.seeds_of(case)).map(|nth| args.first_seed + nth);
        self.cases.iter().flat_map(|case| seeds(case).map(move |seed| job(case, seed))).collect()
    }

    /// Takes a result per cell.
    fn show(&self, kept: &mut impl Iterator<Item = Kept>, first_seed: u64) -> Result<Shown<'static>> {
        let (mut outcomes, mut spent) = (Vec::new(), Spent::default());
        for case in &self.cases {
            for kept in kept.by_ref().take(self.seeds_of(case) as usize) {
                spent.cells += 1;
                spent.of_earlier += usize::from(kept.is_of_earlier());
                spent.wall_s += kept.cost.wall_s;
                spent.peak_mib = spent.peak_mib.max(kept.cost.peak_mib);
                spent.events += kept.result.events();
                outcomes.push((case.name.as_str(), kept.result));
            }
        }
        let findings = self.figure.findings(outcomes);
        let pictures = draw(&findings)?;
        let seeds = self.seeds.values().copied().max().unwrap_or(0);
        Ok(Shown { figure: self.figure, findings, pictures, first_seed, seeds, spent })
    }
}

fn how(args: &Args, seeds: u64, most: u64, columns: &Columns, absent: Option<String>) -> HowRun {
    let names = if args.all { "--all".to_owned() } else { args.names.join(" ") };
    let trace = args.trace.as_ref().map_or(String::new(), |trace| format!(" --trace {}", trace.display()));
    let quick = if args.quick { " --quick" } else { "" };
    // A folder from the environment is specific to this machine.
    let asked = args.traces.as_ref().map_or_else(|| "DIR".into(), |folder| folder.display().to_string());
    let traces = if columns.present.is_empty() { String::new() } else { format!(" --traces {asked}") };
    let first = if args.first_seed == 1 { String::new() } else { format!(" --first-seed {}", args.first_seed) };
    let flags = format!("--seeds {seeds} --most-seeds {most}{first}{quick}{trace}{traces}");
    let command = format!("midflight-lab sim figure {names} {flags} --out {}", args.out.display());
    HowRun { flags, most, quick: args.quick, absent, command }
}
