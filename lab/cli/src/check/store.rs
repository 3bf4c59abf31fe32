//! `midflight-lab check store`: searches the model of the store's protocol, then with each planted bug.

use super::progress::shown;
use crate::memory;
use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use midflight_rmt::Watch;
use midflight_spec::store::protocol::{Planted, ReplyCheck, Scope, Verdict, all, search, with};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::{stdout, units, usage};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab check store                                  all but drift-election: minutes, 3 GB
  midflight-lab check store --quick                          the small searches: ten seconds
  midflight-lab check store --scope drift-election           the largest: 32 million states, 9 GB
  midflight-lab check store --scope lost-chunk --transcript  how this error does harm, step by step
  midflight-lab check store --json | jq .results

Every state of two switches, three replicas and a few operations on one key, in scopes that each
admit some kinds of faults. All rules must hold in them (R1: histories are linearizable; R4: one
switch is active; check: what passes the strict check shows the last write), and each planted
protocol error must break R1, or in one case the check: else the search proves nothing.
docs/internals/store.md has the protocol, the model, and what it has shown.

RESULTS
  model.states       different states of the searches with all rules in force
  model.depth        steps to the deepest of them
  model.violations   rules that broke there
  model.planted      protocol errors that were planted
  model.refuted      of these, found

EXIT CODES
  0 all rules hold and all planted errors were found; 1 not so; 2 wrong usage; 130 interrupted";

/// Larger searches are not quick.
const QUICK_STATES: u64 = 400_000;
/// Larger searches run only if named.
const USUAL_STATES: u64 = 20_000_000;
/// Approximate bytes per state.
const STATE_BYTES: u64 = 280;

#[derive(ClapArgs)]
pub(super) struct Args {
    /// Only what ends within some seconds
    #[arg(long)]
    quick: bool,
    /// This scope or planted error only
    #[arg(long, value_name = "NAME", conflicts_with = "quick")]
    scope: Option<String>,
    /// Which replies of followers reach clients; planted errors are searched with the strict check
    #[arg(long, value_name = "CHECK", default_value = "both")]
    reply_check: Checks,
    /// Threads of a search; with more than one, depth and steps may be more than the fewest
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Print the steps that break each broken rule; the numbers of replicas 1 and 2 may change between steps
    #[arg(long)]
    transcript: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Checks {
    /// With the switch's check, and without it
    Both,
    /// Those whose SEQ is still the key group's, as in the paper
    Strict,
    /// All of them
    Relaxed,
}

impl Checks {
    fn include(self, check: ReplyCheck) -> bool {
        match self {
            Self::Both => true,
            Self::Strict => check == ReplyCheck::Strict,
            Self::Relaxed => check == ReplyCheck::Relaxed,
        }
    }
}

struct Searched {
    scope: Scope,
    verdict: Verdict,
}

impl Searched {
    /// Whether it found a broken rule exactly if a bug is planted.
    fn is_right(&self) -> bool {
        self.verdict.refutation.is_some() == self.scope.must_break()
    }

    fn found(&self) -> String {
        let found = self.verdict.refutation.as_ref();
        let found = found.map_or("nothing".into(), |found| format!("{} in {} steps", found.rule, found.steps.len()));
        match (self.is_right(), self.verdict.exhaustive || self.verdict.refutation.is_some()) {
            (true, true) => found,
            (_, false) => format!("{found} so far"),
            (false, true) => format!("{found}, WRONG"),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let chosen = choose(args)?;
    let states = chosen.iter().map(|scope| scope.states).max().unwrap_or(0);
    memory::check(states * STATE_BYTES, "choose smaller searches with --quick or --scope").map_err(usage::error)?;
    let stop = interrupted_flag()?;
    let searched = search_all(args, chosen, &stop)?;
    let code = judge(&searched, &stop);
    if code == usage::INTERRUPTED {
        eprintln!("interrupted");
    } else if args.json {
        Envelope::new("check store", measures(&searched)).print(true)?;
    } else {
        stdout::print(&format!("\n{}", Envelope::new("check store", Vec::new()).footer()))?;
    }
    Ok(ExitCode::from(code))
}

fn choose(args: &Args) -> Result<Vec<Scope>> {
    let checked = |check| {
        let scopes = if args.reply_check.include(check) { all() } else { Vec::new() };
        scopes.into_iter().map(move |scope| scope.checked(check))
    };
    let planted = Planted::ALL.into_iter().chain(Planted::HARMLESS).map(with);
    let every: Vec<Scope> = checked(ReplyCheck::Strict).chain(checked(ReplyCheck::Relaxed)).chain(planted).collect();
    let wanted = |scope: &&Scope| match &args.scope {
        Some(name) => scope.title() == name,
        None => scope.states <= if args.quick { QUICK_STATES } else { USUAL_STATES },
    };
    let chosen: Vec<Scope> = every.iter().filter(wanted).cloned().collect();
    if chosen.is_empty() {
        let names: BTreeSet<_> = every.iter().map(Scope::title).collect();
        return Err(usage::error(format!("--scope: there are {}", Vec::from_iter(names).join(", "))));
    }
    Ok(chosen)
}

/// Reports each search when it ends. After Ctrl-C, returns those that ended.
fn search_all(args: &Args, chosen: Vec<Scope>, stop: &Arc<AtomicBool>) -> Result<Vec<Searched>> {
    let mut searched = Vec::new();
    let head = format!(
        "{:26}  {:57}  {:7}  {:17}  {:>9}  {:>5}  {:>7}\n",
        "search", "", "replies", "broken", "states", "depth", "time"
    );
    print(args, &head)?;
    for scope in chosen {
        let (watch, start) = (Watch::stopped_by(Arc::clone(stop)), Instant::now());
        let verdict = shown(scope.title(), &watch, || search(&scope, args.threads.into(), &watch));
        let of = Searched { scope, verdict };
        print(args, &row(&of, start.elapsed().as_secs_f64()))?;
        if let Some(found) = of.verdict.refutation.as_ref().filter(|_| args.transcript || !of.is_right()) {
            let steps: String = found.steps.iter().map(|step| format!("  {step}\n")).collect();
            stdout::print_beside(args.json, &steps)?;
        }
        searched.push(of);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(searched)
}

fn row(of: &Searched, seconds: f64) -> String {
    let Searched { scope, verdict } = of;
    let about = scope.planted.map_or(scope.about, |_| scope.name);
    let (found, states) = (of.found(), units::thousands(verdict.states as u64));
    let (title, check, depth) = (scope.title(), scope.reply_check.name(), verdict.depth);
    format!("{title:26}  {about:57}  {check:7}  {found:17}  {states:>9}  {depth:>5}  {seconds:>5.1} s\n")
}

/// With --json only results go to stdout.
fn print(args: &Args, text: &str) -> Result<()> {
    if args.json { Ok(()) } else { stdout::print(text) }
}

fn judge(searched: &[Searched], stop: &AtomicBool) -> u8 {
    let is_wrong = |of: &Searched| !of.is_right() && (of.verdict.exhaustive || of.verdict.refutation.is_some());
    match searched.iter().any(is_wrong) {
        true => usage::FAILURE,
        false if stop.load(Ordering::Relaxed) => usage::INTERRUPTED,
        false => 0,
    }
}

fn measures(searched: &[Searched]) -> Vec<Measure> {
    let sound = || searched.iter().filter(|of| of.scope.planted.is_none());
    let planted = || searched.iter().filter(|of| of.scope.must_break());
    let refuted = planted().filter(|of| of.verdict.refutation.is_some()).count();
    let violations = sound().filter(|of| of.verdict.refutation.is_some()).count();
    let depth = sound().map(|of| of.verdict.depth as u64).max().unwrap_or(0);
    vec![
        Measure::count("model.states", sound().map(|of| of.verdict.states as u64).sum(), "states"),
        Measure::count("model.depth", depth, "steps"),
        Measure::count("model.violations", violations as u64, "violations"),
        Measure::count("model.planted", planted().count() as u64, "errors"),
        Measure::count("model.refuted", refuted as u64, "errors"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_spec::store::protocol::Refutation;

    fn searched(scope: Scope, breaks: bool) -> Searched {
        let refutation = breaks.then(|| Refutation { rule: "R1", steps: vec!["a step".into()] });
        Searched { scope, verdict: Verdict { states: 10, depth: 3, exhaustive: !breaks, refutation } }
    }

    #[test]
    fn a_rule_that_breaks_and_an_error_that_is_not_found_fail() {
        let runs = AtomicBool::new(false);
        let (sound, lost) = (all().remove(0), with(Planted::LostChunk));
        let judge = |scope: &Scope, breaks| judge(&[searched(scope.clone(), breaks)], &runs);
        assert_eq!([judge(&sound, false), judge(&lost, true)], [0, 0]);
        assert_eq!([judge(&sound, true), judge(&lost, false)], [usage::FAILURE; 2]);
        assert!(searched(sound, true).found().ends_with("WRONG"));
    }

    #[test]
    fn an_interrupted_search_has_no_verdict() {
        let mut lost = searched(with(Planted::LostChunk), false);
        lost.verdict.exhaustive = false;
        assert_eq!(lost.found(), "nothing so far");
        assert_eq!(judge(&[lost], &AtomicBool::new(true)), usage::INTERRUPTED);
    }

    #[test]
    fn results_count_planted_errors_apart() {
        let of = |planted, breaks| searched(with(planted), breaks);
        let all = [
            searched(all().remove(0), false),
            of(Planted::LostChunk, true),
            of(Planted::TwoStepRead, false),
            of(Planted::LeaderReadWithoutLease, false),
        ];
        let values: Vec<_> = measures(&all).into_iter().map(|measure| measure.value).collect();
        assert_eq!(values, [10, 3, 0, 2, 1].map(serde_json::Value::from));
    }
}
