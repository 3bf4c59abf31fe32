//! `midflight-lab check asic --planted`: plants bugs in the safe program, one at a time; the search must find each.

use super::progress::shown;
use super::table::found;
use anyhow::Result;
use midflight_rmt::Watch;
use midflight_rmt::tasks::check::Verdict;
use midflight_rmt::tasks::check::instances::{Judgement, Named, Program, planted};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::{stdout, units, usage};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) threads: usize,
    /// Print the steps to each broken rule.
    pub(super) transcript: bool,
    pub(super) json: bool,
}

impl Options<'_> {
    /// With --json only results go to stdout.
    fn print(self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { stdout::print(text) }
    }
}

struct Searched {
    named: Named,
    verdict: Verdict,
}

/// Reports each search when it ends. After Ctrl-C, reports those that ended.
pub(super) fn run(options: Options<'_>) -> Result<ExitCode> {
    let (chosen, stop) = (choose(options.name)?, interrupted_flag()?);
    let widest = |text: fn(&Named) -> &str| chosen.iter().map(|named| text(named).len()).max().unwrap_or(0);
    let (names, abouts) = (widest(|named| named.name), widest(|named| named.about));
    let mut searched = Vec::new();
    options.print(&format!(
        "{:names$}  {:abouts$}  {:14}  {:19}  {:>6}  {:>7}\n",
        "planted", "what is wrong", "instance", "caught by", "states", "time"
    ))?;
    for named in chosen {
        let (watch, start) = (Watch::stopped_by(Arc::clone(&stop)), Instant::now());
        let verdict = shown(named.name, &watch, || named.search(options.threads, &watch))?;
        let (found, states) = (found(&named, &verdict), units::thousands(verdict.states as u64));
        let (name, about, within, seconds) = (named.name, named.about, within(&named), start.elapsed().as_secs_f64());
        options.print(&format!(
            "{name:names$}  {about:abouts$}  {within:14}  {found:19}  {states:>6}  {seconds:>5.1} s\n"
        ))?;
        let surprise = named.judge(&verdict) == Judgement::Otherwise;
        let shows = surprise || options.transcript || options.name.is_some();
        for violation in verdict.violations.iter().filter(|_| shows) {
            stdout::print_beside(options.json, &format!("\n{violation}\n"))?;
        }
        searched.push(Searched { named, verdict });
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let code = judge(&searched, stop.load(Ordering::Relaxed));
    if code == usage::INTERRUPTED {
        eprintln!("interrupted");
    } else if options.json {
        Envelope::new("check asic", measures(&searched)).print(true)?;
    } else {
        let [planted, caught] = counts(&searched);
        let footer = Envelope::new("check asic", Vec::new()).footer();
        stdout::print(&format!("\n{caught} of {planted} defects that break a rule were caught\n{footer}"))?;
    }
    Ok(ExitCode::from(code))
}

fn choose(name: Option<&str>) -> Result<Vec<Named>> {
    let all = planted();
    let chosen: Vec<Named> = all.iter().filter(|named| name.is_none_or(|name| named.name == name)).cloned().collect();
    if chosen.is_empty() {
        let names: Vec<_> = all.iter().map(|named| named.name).collect();
        let unknown = name.unwrap_or_default();
        return Err(usage::error(format!("--planted: there is no defect `{unknown}`; there are {}", names.join(", "))));
    }
    Ok(chosen)
}

/// The instance's name, among those of the program without bugs.
fn within(named: &Named) -> &'static str {
    if let Program::Planted(_, planted) = named.program { planted.within() } else { "" }
}

/// A bug must be found in the expected steps, or break no rule if none is expected.
fn judge(searched: &[Searched], stopped: bool) -> u8 {
    let surprise = |Searched { named, verdict }: &Searched| named.judge(verdict) == Judgement::Otherwise;
    match searched.iter().any(surprise) {
        true => usage::FAILURE,
        false if stopped => usage::INTERRUPTED,
        false => 0,
    }
}

/// Bugs that break a rule, and those found.
fn counts(searched: &[Searched]) -> [u64; 2] {
    let breaking = || searched.iter().filter(|of| of.named.finds.is_some());
    let caught = breaking().filter(|of| !of.verdict.violations.is_empty());
    [breaking().count() as u64, caught.count() as u64]
}

fn measures(searched: &[Searched]) -> Vec<Measure> {
    let [planted, caught] = counts(searched);
    vec![
        Measure::count("asic.safe.planted", planted, "defects"),
        Measure::count("asic.safe.planted_caught", caught, "defects"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn searched(name: &str) -> Searched {
        let named = choose(Some(name)).unwrap().remove(0);
        Searched { verdict: named.search(1, &Watch::default()).unwrap(), named }
    }

    #[test]
    fn a_defect_that_is_not_caught_fails() {
        let caught = searched("enter-not-compared");
        assert_eq!(judge(&[caught], false), 0);
        let mut missed = searched("enter-not-compared");
        missed.verdict.violations.clear();
        missed.verdict.exhaustive = true;
        let values: Vec<_> = measures(std::slice::from_ref(&missed)).into_iter().map(|measure| measure.value).collect();
        assert_eq!(values, [1, 0].map(Value::from));
        assert_eq!([judge(std::slice::from_ref(&missed), false), judge(&[missed], true)], [usage::FAILURE; 2]);
    }

    #[test]
    fn a_defect_that_is_caught_otherwise_fails() {
        let mut otherwise = searched("enter-not-compared");
        otherwise.named.finds = Some(("T1", 2));
        assert_eq!(judge(&[otherwise], false), usage::FAILURE);
        let mut harm = searched("enter-not-compared");
        harm.named.finds = None;
        assert_eq!(counts(std::slice::from_ref(&harm)), [0, 0]);
        assert_eq!(judge(&[harm], false), usage::FAILURE);
    }

    #[test]
    fn an_interrupted_search_has_no_verdict() {
        let mut open = searched("enter-not-compared");
        open.verdict.violations.clear();
        open.verdict.exhaustive = false;
        assert_eq!(judge(&[open], true), usage::INTERRUPTED);
    }
}
