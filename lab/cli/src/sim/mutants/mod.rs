//! `midflight-lab sim mutants`: plants bugs, which the fault campaign or a test must find.

mod beyond;
mod suites;

use super::check::{Program, threads};
use anyhow::{Context, Result};
use beyond::{Beyond, beyond_the_campaign};
use clap::Args as ClapArgs;
use midflight_sim::cache::check::CacheSubject;
use midflight_sim::check::{Caught, Mutant, Rule, Subject, are_planted};
use midflight_sim::store::check::StoreSubject;
use midflight_sim::tasks::check::TasksSubject;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::{stdout, usage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use suites::{Ended, Suites};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  make mutants                                   all of tasks, in a build of their own
  make mutants ARGS='--only lost-tail'           the same build, only this bug
  make mutants PROGRAM=store                     those of the store
  make mutants PROGRAM=cache                     those of the cache

A mutant is a bug that is planted in the core, in an endpoint, or in what drives it. The campaign
must find each within its budget of seeds. Each rule of tasks must be the first that some of them
break. Other mutants of tasks are where the campaign does not reach: in the packet formats, the
kernel's shells and the sockets. With each of these a certain test must fail; `make mutants` builds
the tests, and without --tests these mutants are skipped. docs/internals/mutants.md has the table.

RESULTS
  mutants.planted, mutants.caught     mutants.skipped: their tests lack something here, such as root

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
    /// What `cargo test --no-run --message-format=json` printed: also run the tests of the mutants that no campaign reaches
    #[arg(long, value_name = "FILE")]
    tests: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    match args.program {
        Program::Tasks => hunt::<TasksSubject>(args),
        Program::Store => hunt::<StoreSubject>(args),
        Program::Cache => hunt::<CacheSubject>(args),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// The rule or test that caught it, and the seed.
    Caught(String, Option<u64>),
    Escaped,
    /// What its test needs and this machine lacks.
    Skipped(String),
    /// Why its test is inconclusive.
    Unclear(String),
}

#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    place: &'static str,
    fate: Fate,
    budget: Option<u64>,
}

fn hunt<S: Subject>(args: &Args) -> Result<ExitCode> {
    if !are_planted() {
        return Err(usage::error(format!(
            "this build has no mutants, as every build that is used: run \
             `make mutants PROGRAM={}`",
            S::NAME
        )));
    }
    let is_chosen = |name: &str| args.only.as_ref().is_none_or(|only| name == only);
    let inside: Vec<_> = S::MUTANTS.iter().filter(|mutant| is_chosen(mutant.name)).collect();
    let beyond: Vec<_> = beyond_the_campaign(S::NAME).iter().filter(|beyond| is_chosen(beyond.name)).collect();
    if inside.is_empty() && beyond.is_empty() {
        let inside = S::MUTANTS.iter().map(|mutant| mutant.name);
        let names: Vec<_> = inside.chain(beyond_the_campaign(S::NAME).iter().map(|beyond| beyond.name)).collect();
        return Err(usage::error(format!("--only: there are {}", names.join(", "))));
    }
    let suites = args.tests.as_deref().map(find_suites).transpose()?;
    let stop = interrupted_flag()?;
    let mut rows = Vec::new();
    for mutant in inside {
        rows.push(in_campaign::<S>(mutant, threads(args.jobs), &stop));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if !beyond.is_empty() && !stop.load(Ordering::Relaxed) {
        rows.extend(match &suites {
            Some(suites) => in_tests(suites, &beyond, threads(args.jobs), &stop),
            None => beyond.iter().map(|beyond| skipped(beyond)).collect(),
        });
    }
    if stop.load(Ordering::Relaxed) {
        eprintln!("interrupted");
        return Ok(ExitCode::from(usage::INTERRUPTED));
    }
    let wanted = if args.only.is_none() { S::FIRST } else { &[] };
    let never_first = never_first(wanted, &rows);
    stdout::print_beside(args.json, &table(&rows))?;
    for row in &rows {
        if let Fate::Skipped(why) = &row.fate {
            eprintln!("SKIPPED: the mutant {}: {why}", row.name);
        }
    }
    if !never_first.is_empty() {
        let names: Vec<_> = never_first.iter().map(|rule| rule.0).collect();
        eprintln!("no mutant breaks these rules before all others: {}", names.join(", "));
    }
    Envelope::new(&format!("sim mutants {}", S::NAME), measures(&rows)).print(args.json)?;
    Ok(if are_all_caught(&rows) && never_first.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_campaign<S: Subject>(mutant: &Mutant, threads: usize, stop: &AtomicBool) -> Row {
    let progress = super::campaign(Some(mutant.budget), mutant.name);
    let caught = mutant.hunt::<S>(threads, &|_| {
        progress.advance();
        !stop.load(Ordering::Relaxed)
    });
    progress.finish();
    let fate = match caught {
        Some(Caught { rule, seed, .. }) => Fate::Caught(rule.0.to_owned(), Some(seed)),
        None => Fate::Escaped,
    };
    Row { name: mutant.name, place: mutant.place, fate, budget: Some(mutant.budget) }
}

/// Bytes of cargo's messages.
const MESSAGES_MAX: u64 = 64 * midflight_files::MIB;

fn find_suites(messages: &Path) -> Result<Suites> {
    let said = midflight_files::read_text(messages, MESSAGES_MAX)
        .with_context(|| format!("--tests {}", messages.display()))?;
    Suites::find(&said).with_context(|| format!("--tests {}", messages.display()))
}

fn skipped(beyond: &Beyond) -> Row {
    let fate = Fate::Skipped("its test was not built: make mutants builds it, or --tests names it".into());
    Row { name: beyond.name, place: beyond.place, fate, budget: None }
}

/// Several at a time.
fn in_tests(suites: &Suites, all: &[&Beyond], threads: usize, stop: &AtomicBool) -> Vec<Row> {
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let progress = super::campaign(Some(all.len() as u64), "tests");
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(beyond) = all.get(place).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
                    let run = |planted| suites.run(beyond, planted, stop);
                    let row = Row { name: beyond.name, place: beyond.place, fate: judge(beyond, run), budget: None };
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((place, row));
                    progress.advance();
                }
            });
        }
    });
    progress.finish();
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Caught if the test fails with it and passes without.
fn judge(beyond: &Beyond, run: impl Fn(bool) -> Ended) -> Fate {
    match (run(false), beyond.test) {
        (Ended::Passed, test) => match run(true) {
            Ended::Failed => Fate::Caught(test.rsplit("::").next().unwrap_or(test).to_owned(), None),
            Ended::Passed => Fate::Escaped,
            Ended::Skipped(why) => Fate::Skipped(why),
            Ended::Unclear(why) => Fate::Unclear(why),
        },
        (Ended::Failed, test) => Fate::Unclear(format!("{test} fails without it")),
        (Ended::Skipped(why), _) => Fate::Skipped(why),
        (Ended::Unclear(why), test) => Fate::Unclear(format!("{test}: {why}")),
    }
}

/// Rules that no mutant broke first.
fn never_first(wanted: &[Rule], rows: &[Row]) -> Vec<Rule> {
    let is_first = |rule: &&Rule| rows.iter().any(|row| matches!(&row.fate, Fate::Caught(by, _) if by == rule.0));
    wanted.iter().filter(|rule| !is_first(rule)).copied().collect()
}

fn are_all_caught(rows: &[Row]) -> bool {
    rows.iter().all(|row| matches!(row.fate, Fate::Caught(..) | Fate::Skipped(_)))
}

/// If its test was skipped, a mutant counts as not planted.
fn measures(rows: &[Row]) -> Vec<Measure> {
    let count = |is_it: fn(&Fate) -> bool| rows.iter().filter(|row| is_it(&row.fate)).count() as u64;
    let skipped = count(|fate| matches!(fate, Fate::Skipped(_)));
    let mut measures = vec![
        Measure::count("mutants.planted", rows.len() as u64 - skipped, "mutants"),
        Measure::count("mutants.caught", count(|fate| matches!(fate, Fate::Caught(..))), "mutants"),
    ];
    if skipped > 0 {
        measures.push(Measure::count("mutants.skipped", skipped, "mutants"));
    }
    measures
}

fn table(rows: &[Row]) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let mut lines = vec![["mutant", "where", "caught by", "seed", "budget"].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let (by, seed) = match &row.fate {
            Fate::Caught(by, seed) => (by.clone(), *seed),
            Fate::Escaped => ("ESCAPED".to_owned(), None),
            Fate::Skipped(_) => ("skipped".to_owned(), None),
            Fate::Unclear(why) => (format!("UNCLEAR: {why}"), None),
        };
        [row.name.into(), row.place.into(), by, number(seed), number(row.budget)]
    }));
    aligned(&lines, "lllrr") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use beyond::BEYOND;
    use std::collections::BTreeSet;

    fn row(fate: Fate) -> Row {
        Row { name: "a-bug", place: "a-file", fate, budget: None }
    }

    #[test]
    fn a_test_that_fails_anyway_catches_nothing() {
        let fate =
            |without: Ended, with: Ended| judge(&BEYOND[0], |planted| (if planted { &with } else { &without }).clone());
        assert!(matches!(fate(Ended::Passed, Ended::Failed), Fate::Caught(..)));
        assert_eq!(fate(Ended::Passed, Ended::Passed), Fate::Escaped);
        assert!(matches!(fate(Ended::Failed, Ended::Failed), Fate::Unclear(_)));
        assert!(matches!(fate(Ended::Unclear(String::new()), Ended::Failed), Fate::Unclear(_)));
        assert_eq!(fate(Ended::Skipped("root".into()), Ended::Passed), Fate::Skipped("root".into()));
    }

    #[test]
    fn what_escapes_or_is_unclear_fails_and_what_is_skipped_is_not_counted() {
        let caught = || row(Fate::Caught("T1".into(), Some(3)));
        let rows = [caught(), row(Fate::Skipped("root".into()))];
        assert!(are_all_caught(&rows));
        let values: Vec<_> = measures(&rows).into_iter().map(|measure| measure.value).collect();
        assert_eq!(values, [1, 1, 1]);
        assert!(!are_all_caught(&[caught(), row(Fate::Escaped)]));
        assert!(!are_all_caught(&[caught(), row(Fate::Unclear(String::new()))]));
        assert_eq!(never_first(&[Rule("T1"), Rule("T2")], &rows), [Rule("T2")]);
    }

    #[test]
    fn numbers_and_names_are_used_once() {
        let all = || {
            let of = |mutants: &'static [Mutant]| mutants.iter().map(|mutant| (mutant.number, mutant.name));
            let beyond = BEYOND.iter().map(|beyond| (beyond.number, beyond.name));
            of(TasksSubject::MUTANTS).chain(of(StoreSubject::MUTANTS)).chain(of(CacheSubject::MUTANTS)).chain(beyond)
        };
        assert_eq!(all().map(|(number, _)| number).collect::<BTreeSet<_>>().len(), all().count());
        assert_eq!(all().map(|(_, name)| name).collect::<BTreeSet<_>>().len(), all().count());
    }
}
