//! `--against BINARY`: runs the candidate (this build) and a baseline (the other one) in turns, and prints the ratio of each result.
//!
//! The order is ABBA, baseline first, so that its errors show at once. Over an even number of rounds each build goes first equally often,
//! so a steady drift of the machine favours neither.

mod build;
mod comparison;
mod output;

use super::keeper::Keeper;
use anyhow::{Result, bail, ensure};
use build::Build;
use clap::{Args, value_parser};
use comparison::{Comparison, Row, Runs};
use midflight_terminal::usage;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
WITH --against BINARY
  Both builds run in turns with the same flags. Of each result NAME that both have:
  against.NAME.ratio                     this by other, the mean of the rounds' ratios (geometric)
  against.NAME.low, against.NAME.high    its 95 % interval
  against.NAME.verdict                   slower, faster, or same: the interval contains 1;
                                         more or less, of what is neither a time nor a rate
  against.NAME.this, against.NAME.other  medians of the rounds
  against.NAME.not_compared              of other results: only in this, only in other, or why
  against.rounds, against.commit         how often each ran; what the other was built from
  Exit code 1 also if it is slower than --at-most allows; 130 if interrupted.";

pub(super) fn help(examples: &str) -> String {
    format!("{examples}\n\n{HELP}")
}

/// Options of benchmarks that can run in turns with another build.
#[derive(Args)]
pub(super) struct Against {
    /// Run another build of this command in turns with this one, and print the ratio of each result, this by other
    #[arg(long = "against", value_name = "BINARY")]
    pub(super) other: Option<PathBuf>,
    /// With --against: how often each build runs, best an even number
    #[arg(long, value_name = "N", default_value_t = 10, requires = "other", value_parser = value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// With --against: fail if this build is surely slower by more than this factor, such as 1.10
    #[arg(long, value_name = "FACTOR", requires = "other", value_parser = factor)]
    at_most: Option<f64>,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|&factor: &f64| factor >= 1.0 && factor.is_finite());
    factor.ok_or_else(|| "write a factor of 1 or more, such as 1.10".into())
}

/// A benchmark, and its arguments without `--json`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Benchmark<'a> {
    pub name: &'a str,
    pub flags: &'a [&'a str],
}

/// The baseline is at `other`.
pub(super) fn run(args: &Against, other: &Path, benchmark: Benchmark<'_>, json: bool) -> Result<ExitCode> {
    let (this, other) = (Build::this()?, Build::other(other)?);
    let keeper = Keeper::new()?;
    let measured = measure(&this, &other, &keeper, benchmark, args.rounds);
    if keeper.stopped() {
        return Ok(ExitCode::from(usage::INTERRUPTED));
    }
    let runs = measured?;
    let comparison = Comparison::of(&runs);
    output::print(benchmark.name, &comparison, &runs, &other, json)?;
    ensure!(!comparison.rows.is_empty(), "there is no result that both builds have and that can be compared");
    if let Some(limit) = args.at_most {
        judge(&comparison.rows, limit)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(this: &Build, other: &Build, keeper: &Keeper, benchmark: Benchmark<'_>, rounds: u32) -> Result<Runs> {
    let arguments = [&["bench", benchmark.name, "--json"], benchmark.flags].concat();
    let mut runs = Runs::default();
    let (started, mut done) = (Instant::now(), 0);
    for round in 1..=rounds {
        let mut turns = [(other, &mut runs.other), (this, &mut runs.this)];
        if round % 2 == 0 {
            turns.reverse();
        }
        for (build, printed) in turns {
            eprintln!("round {round} of {rounds}: {}{}", build.word, to_go(started.elapsed(), done, 2 * rounds));
            printed.push(build.run(keeper, &arguments)?);
            done += 1;
        }
    }
    Ok(runs)
}

/// The remaining time, estimated from the runs so far.
fn to_go(elapsed: Duration, done: u32, all: u32) -> String {
    if done < 2 {
        return String::new();
    }
    let left = elapsed * (all - done) / done;
    format!(", {} to go", humantime::format_duration(Duration::from_secs(left.as_secs().max(1))))
}

/// Fails if the candidate is surely slower than `limit` allows; names results that may be.
fn judge(rows: &[Row], limit: f64) -> Result<()> {
    let mut slower = Vec::new();
    for row in rows {
        match row.slowdown() {
            Some((low, _)) if low > limit => slower.push(format!("{} at least {low:.3} times", row.name)),
            Some((_, high)) if high > limit => {
                eprintln!("undecided: {} may be up to {high:.3} times as slow: more --rounds would decide", row.name);
            }
            _ => {}
        }
    }
    if !slower.is_empty() {
        bail!("slower than --at-most {limit}: {}", slower.join(", "));
    }
    Ok(())
}
