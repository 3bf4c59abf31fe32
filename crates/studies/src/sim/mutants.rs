//! `midflight sim mutants`: plants bugs, to see whether the fault campaign finds them.

use super::check::{Program, threads};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_sim::check::{Caught, Mutant, Subject, are_planted};
use midflight_sim::reads::check::ReadsSubject;
use midflight_sim::tasks::check::TasksSubject;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  cargo run --profile mutants -p midflight-cli --features mutants -- sim mutants tasks
  make mutants ARGS='--only lost-tail'           the same build, only this bug

A mutant is a bug that is planted in the core, in an endpoint, or in what drives it. Each passes the
unit tests. The campaign must find each within its budget of seeds. docs/internals/mutants.md has
the table.

RESULTS
  mutants.planted, mutants.caught

EXIT CODES
  0 all were caught, 1 one escaped, 2 wrong usage, or a build without mutants, 130 interrupted";

#[derive(ClapArgs)]
pub(super) struct Args {
    /// The program whose bugs are planted
    program: Program,
    /// Only this bug
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Trials at a time [default: the number of cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    match args.program {
        Program::Tasks => hunt::<TasksSubject>(args),
        Program::Reads => hunt::<ReadsSubject>(args),
    }
}

fn hunt<S: Subject>(args: &Args) -> Result<ExitCode> {
    if !are_planted() {
        return Err(usage::error(format!(
            "this build has no mutants, as every build that is used: run \
             `cargo run --profile mutants -p midflight-cli --features mutants -- sim mutants {}`",
            S::NAME
        )));
    }
    let chosen: Vec<_> =
        S::MUTANTS.iter().filter(|mutant| args.only.as_ref().is_none_or(|only| mutant.name == only)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = S::MUTANTS.iter().map(|mutant| mutant.name).collect();
        return Err(usage::error(format!("--only: there are {}", names.join(", "))));
    }
    let stop = interrupted_flag()?;
    let mut rows = Vec::new();
    for mutant in chosen {
        let progress = super::campaign(Some(mutant.budget), mutant.name);
        let caught = mutant.hunt::<S>(threads(args.jobs), &|_| {
            progress.advance();
            !stop.load(Ordering::Relaxed)
        });
        progress.finish();
        if stop.load(Ordering::Relaxed) {
            eprintln!("interrupted");
            return Ok(ExitCode::from(usage::INTERRUPTED));
        }
        rows.push((mutant, caught));
    }
    let caught = rows.iter().filter(|(_, caught)| caught.is_some()).count();
    stdout::print_beside(args.json, &table(&rows))?;
    let results = vec![
        Measure::count("mutants.planted", rows.len() as u64, "mutants"),
        Measure::count("mutants.caught", caught as u64, "mutants"),
    ];
    Envelope::new(&format!("sim mutants {}", S::NAME), results).print(args.json)?;
    Ok(if caught == rows.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(rows: &[(&Mutant, Option<Caught>)]) -> String {
    let mut lines = vec![["mutant", "where", "rule", "seed", "budget"].map(str::to_owned)];
    lines.extend(rows.iter().map(|(mutant, caught)| {
        let (rule, seed) = match caught {
            Some(caught) => (caught.rule.0, caught.seed.to_string()),
            None => ("ESCAPED", "-".to_owned()),
        };
        [mutant.name.into(), mutant.place.into(), rule.into(), seed, mutant.budget.to_string()]
    }));
    aligned(&lines, "lllrr") + "\n"
}
