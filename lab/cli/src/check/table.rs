//! Prints one line per finding as it comes.

use midflight_rmt::tasks::check::Verdict;
use midflight_rmt::tasks::check::instances::{Judgement, Named};
use midflight_terminal::units;

/// Widths of the variable columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    name: usize,
    about: usize,
}

impl Table {
    pub(super) fn of(chosen: &[Named]) -> Self {
        let widest = |text: fn(&Named) -> &str| chosen.iter().map(|named| text(named).len()).max().unwrap_or(0);
        Self { name: widest(|named| named.name), about: widest(|named| named.about) }
    }

    pub(super) fn head(self) -> String {
        let Self { name, about } = self;
        let found = "broken";
        format!("{:name$}  {:about$}  {found:21}  {:>11}  {:>5}  {:>7}\n", "instance", "", "states", "depth", "time")
    }

    pub(super) fn row(self, named: &Named, verdict: &Verdict, seconds: f64) -> String {
        let (Self { name, about }, states) = (self, units::thousands(verdict.states as u64));
        let found = found(named, verdict);
        format!(
            "{:name$}  {:about$}  {found:21}  {states:>11}  {:>5}  {seconds:>5.1} s\n",
            named.name, named.about, verdict.depth
        )
    }
}

/// The rule that broke, and the expected one if it is another.
pub(super) fn found(named: &Named, verdict: &Verdict) -> String {
    let way = |rule: &str, steps: usize| format!("{rule} in {steps} steps");
    let found = verdict.violations.first().map(|violation| way(violation.broken.rule, violation.steps));
    let expected = named.finds.map_or("nothing".into(), |(rule, steps)| way(rule, steps));
    match (named.judge(verdict), found) {
        (Judgement::AsExpected, Some(found)) => found,
        (Judgement::AsExpected, None) => "nothing".into(),
        (Judgement::Open, found) => format!("{} so far", found.unwrap_or_else(|| "nothing".into())),
        (Judgement::Otherwise, found) => {
            format!("{}, EXPECTED: {expected}", found.unwrap_or_else(|| "nothing".into()))
        }
    }
}
