//! `midflight-lab check asic`: searches for infinite runs, and with `--full` the small instances in larger queues.

use super::progress::shown;
use anyhow::Result;
use midflight_rmt::Watch;
use midflight_rmt::tasks::check::instances::{Growth, Judgement, Lasting, Turn, grown, lasting, planted_grown};
use midflight_rmt::tasks::check::{Endless, Way};
use midflight_terminal::envelope::Measure;
use midflight_terminal::{stdout, units};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) measures: Vec<Measure>,
    pub(super) surprise: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Telling {
    pub(super) transcript: bool,
    /// Only results go to stdout.
    pub(super) json: bool,
}

impl Telling {
    fn print(self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { stdout::print(text) }
    }
}

/// Whether this names a search for infinite runs.
pub(super) fn is_named(name: &str) -> bool {
    lasting().iter().any(|lasting| lasting.name == name)
}

/// Runs the named search, or all of them.
pub(super) fn endless(name: Option<&str>, telling: Telling, stop: &Arc<AtomicBool>) -> Result<Found> {
    let chosen: Vec<Lasting> = lasting().into_iter().filter(|of| name.is_none_or(|name| of.name == name)).collect();
    if chosen.is_empty() {
        return Ok(Found::default());
    }
    let names = chosen.iter().map(|of| of.name.len()).max().unwrap_or(0);
    let abouts = chosen.iter().map(|of| of.about.len()).max().unwrap_or(0);
    let (head, request, task) = ("for ever", "request never answered", "tasks never assigned");
    telling.print(&format!("\n{head:names$}  {:abouts$}  {request:22}  {task:20}  {:>6}  passes\n", "", "states"))?;
    let mut found = Found::default();
    let (mut passes, mut ways) = (0, 0);
    for of in chosen {
        let watch = Watch::stopped_by(Arc::clone(stop));
        let endless = shown(of.name, &watch, || of.search(&watch))?;
        let surprise = !of.is_as_expected(&endless);
        found.surprise |= surprise;
        passes = passes.max(endless.passes.unwrap_or(0));
        ways += u64::from(endless.request.is_some()) + u64::from(endless.task.is_some());
        telling.print(&row(&of, &endless, names, abouts))?;
        for way in [&endless.request, &endless.task].into_iter().flatten().filter(|_| surprise || telling.transcript) {
            stdout::print_beside(telling.json, &format!("\n{way}\n"))?;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    found.measures = vec![
        Measure::count("asic.safe.passes_in_a_row", passes as u64, "passes"),
        Measure::count("asic.safe.endless", ways, "ways"),
    ];
    Ok(found)
}

fn row(of: &Lasting, found: &Endless, names: usize, abouts: usize) -> String {
    let turn = |way: &Option<Way>, expected: Option<Turn>| {
        let text = way.as_ref().map_or("none".into(), |way| format!("{} steps, then {}", way.steps, way.turn));
        let same = way.as_ref().map(|way| Turn(way.steps, way.turn)) == expected || !found.exhaustive;
        if same { text } else { format!("{text}, UNEXPECTED") }
    };
    let (request, task) = (turn(&found.request, of.request), turn(&found.task, of.task));
    let passes = found.passes.map_or("no end".into(), |passes| passes.to_string());
    let states = units::thousands(found.states as u64);
    format!("{:names$}  {:abouts$}  {request:22}  {task:20}  {states:>6}  {passes:>6}\n", of.name, of.about)
}

/// The small instances and the planted bugs, in larger queues.
pub(super) fn sizes(threads: usize, telling: Telling, stop: &Arc<AtomicBool>) -> Result<Found> {
    let rows = Growth::ALL.map(|growth| (text(growth), grown(growth)));
    let planted = ("planted defects, likewise".to_owned(), planted_grown());
    telling.print(&format!(
        "\n{:32}  {:>9}  {:>12}  {:>11}  {:>8}\n",
        "larger queues", "instances", "as expected", "states", "time"
    ))?;
    let mut found = Found::default();
    for (name, all) in rows.into_iter().chain([planted]) {
        let (mut same, mut states, start, count) = (0, 0, Instant::now(), all.len());
        for named in all {
            let watch = Watch::stopped_by(Arc::clone(stop));
            let verdict = shown(named.name, &watch, || named.search(threads, &watch))?;
            states += verdict.states as u64;
            let caught = !verdict.violations.is_empty();
            if caught == named.finds.is_some() && (caught || named.judge(&verdict) == Judgement::AsExpected) {
                same += 1;
            } else if verdict.exhaustive || caught {
                found.surprise = true;
                let found = verdict.violations.first().map_or("nothing".into(), ToString::to_string);
                stdout::print_beside(telling.json, &format!("\n{}, {name}: UNEXPECTED {found}\n", named.name))?;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(found);
            }
        }
        let (states, seconds) = (units::thousands(states), start.elapsed().as_secs_f64());
        telling.print(&format!("{name:32}  {count:>9}  {same:>12}  {states:>11}  {seconds:>6.1} s\n"))?;
    }
    Ok(found)
}

fn text(growth: Growth) -> String {
    match growth {
        Growth::Entries => "four times the entries".into(),
        Growth::Places(1) => "and 1 place more".into(),
        Growth::Places(more) => format!("and {more} places more"),
        Growth::Double => "twice the entries, all granted".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Telling = Telling { transcript: false, json: true };

    #[test]
    fn what_never_ends_is_measured() {
        let found = endless(Some("turns-in-order"), QUIET, &Arc::default()).unwrap();
        let values: Vec<_> = found.measures.iter().map(|measure| measure.value.clone()).collect();
        assert_eq!((values, found.surprise), (vec![4.into(), 2.into()], false));
    }

    #[test]
    fn what_is_not_expected_says_so() {
        let mut of = lasting().into_iter().find(|of| of.name == "turns").unwrap();
        of.request = None;
        let found = of.search(&Watch::default()).unwrap();
        assert!(!of.is_as_expected(&found));
        assert!(row(&of, &found, 5, 5).contains("4 steps, then 4, UNEXPECTED"));
    }
}
