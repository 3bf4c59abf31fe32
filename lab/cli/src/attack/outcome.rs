//! The results of a campaign.

use super::attacker::Sent;
use super::kinds::{Attack, LINK};
use crate::engines::{LabEngine, Named};
use crate::median::median;
use crate::soak::findings::Findings;
use midflight_terminal::columns;
use midflight_terminal::envelope::Measure;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(super) kind: &'static Attack,
    pub(super) engine: LabEngine,
    /// Durations of runs without an attack.
    pub(super) quiet: Vec<Duration>,
    /// Durations of runs under attack.
    pub(super) attacked: Vec<Duration>,
    pub(super) sent: Sent,
    pub(super) connections: u64,
    pub(super) findings: Arc<Findings>,
}

impl Outcome {
    fn is_harmful(&self) -> bool {
        self.findings.count() > 0
    }

    /// NaN if a run did not end.
    fn slowdown(&self) -> f64 {
        median_s(&self.attacked) / median_s(&self.quiet)
    }

    /// CPU share of the attacker.
    fn busy(&self) -> f64 {
        if self.sent.packets == 0 { 0.0 } else { self.sent.busy.as_secs_f64() / self.sent.lasted.as_secs_f64() }
    }

    /// Packets a second.
    fn rate(&self) -> f64 {
        if self.sent.packets == 0 { 0.0 } else { self.sent.packets as f64 / self.sent.lasted.as_secs_f64() }
    }

    fn is_of_the_link(&self) -> bool {
        self.kind.name == LINK.name
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, engine, slowdown) = (self.kind.name, self.engine.name(), self.slowdown());
        write!(f, "{engine}: {kind}: {} packets, {slowdown:.2} times as long", self.sent.packets)?;
        if self.connections > 0 {
            write!(f, ", {} connections opened", self.connections)?;
        }
        if self.sent.refused > 0 {
            write!(f, ", {} packets refused by the attacker's own kernel", self.sent.refused)?;
        }
        if self.is_harmful() { write!(f, ", HARMFUL") } else { Ok(()) }
    }
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(super) outcomes: Vec<Outcome>,
}

impl Report {
    pub(crate) fn harmful(&self) -> u64 {
        self.outcomes.iter().filter(|outcome| outcome.is_harmful()).count() as u64
    }

    pub(crate) fn findings(&self) -> impl Iterator<Item = String> {
        self.outcomes.iter().flat_map(|outcome| {
            let (kind, engine) = (outcome.kind.name, outcome.engine.name());
            outcome.findings.first().into_iter().map(move |what| format!("{engine}: {kind}: {what}"))
        })
    }

    pub(crate) fn measures(&self) -> Vec<Measure> {
        let attacks = || self.outcomes.iter().filter(|outcome| !outcome.is_of_the_link());
        let worst = |slowdown: f64, outcome: &Outcome| worse(slowdown, outcome.slowdown());
        let mut measures = vec![
            Measure::count("attacks.tried", attacks().count() as u64, "attacks"),
            Measure::count("attacks.harmful", self.harmful(), "attacks"),
            Measure::quantity("attacks.slowdown", attacks().fold(0.0, worst), "times"),
        ];
        for (name, outcomes) in self.by_kind() {
            let harmful = outcomes.iter().filter(|outcome| outcome.is_harmful()).count() as u64;
            let slowdown = outcomes.iter().copied().fold(0.0, worst);
            measures.push(Measure::quantity(&format!("attacks.{name}.slowdown"), slowdown, "times"));
            measures.push(Measure::count(&format!("attacks.{name}.harmful"), harmful, "attacks"));
            for outcome in outcomes {
                let of_engine = |what| format!("attacks.{name}.{}.{what}", outcome.engine.name());
                measures.push(Measure::quantity(&of_engine("slowdown"), outcome.slowdown(), "times"));
                measures.push(Measure::quantity(&of_engine("rate"), outcome.rate(), "packets/s"));
                measures.push(Measure::quantity(&of_engine("attacker_cpu"), outcome.busy(), "cores"));
            }
        }
        measures
    }

    fn by_kind(&self) -> BTreeMap<&'static str, Vec<&Outcome>> {
        let mut kinds = BTreeMap::<_, Vec<_>>::new();
        self.outcomes.iter().for_each(|outcome| kinds.entry(outcome.kind.name).or_default().push(outcome));
        kinds
    }

    pub(crate) fn table(&self) -> String {
        let heading = ["attack", "engine", "what", "packets/s", "attacker", "quiet", "attacked", "slowdown", "harm"];
        let line = |outcome: &Outcome| {
            let ms = |times| format!("{:.0} ms", median_s(times) * 1e3);
            let harm = if outcome.is_harmful() { "HARMFUL" } else { "none" };
            [
                outcome.kind.name.to_owned(),
                outcome.engine.name(),
                outcome.kind.what.to_owned(),
                format!("{:.0}", outcome.rate()),
                format!("{:.0}%", 100.0 * outcome.busy()),
                ms(&outcome.quiet),
                ms(&outcome.attacked),
                format!("{:.2}", outcome.slowdown()),
                harm.to_owned(),
            ]
        };
        let lines: Vec<_> = [heading.map(str::to_owned)].into_iter().chain(self.outcomes.iter().map(line)).collect();
        columns::aligned(&lines, "lllrrrrrr")
    }
}

/// In seconds; NaN if empty.
fn median_s(times: &[Duration]) -> f64 {
    median(times.iter().map(Duration::as_secs_f64).collect())
}

/// NaN counts as the worst.
fn worse(one: f64, other: f64) -> f64 {
    if one.is_nan() || other.is_nan() { f64::NAN } else { one.max(other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::named;

    fn outcome(kind: &'static Attack, quiet_ms: &[u64], attacked_ms: &[u64]) -> Outcome {
        let times = |all: &[u64]| all.iter().map(|&ms| Duration::from_millis(ms)).collect();
        Outcome {
            kind,
            engine: LabEngine::User,
            quiet: times(quiet_ms),
            attacked: times(attacked_ms),
            sent: Sent { packets: 200, lasted: Duration::from_secs(2), ..Sent::default() },
            connections: 0,
            findings: Arc::new(Findings::default()),
        }
    }

    #[test]
    fn the_worst_attack_is_told_and_the_link_is_none() {
        let reset = named("reset_all").unwrap();
        let outcomes = vec![outcome(&LINK, &[10], &[90]), outcome(reset, &[10, 30, 20, 20], &[25, 35])];
        let mut report = Report { outcomes };
        let value = |report: &Report, name: &str| {
            report.measures().into_iter().find(|measure| measure.name == name).unwrap().value.as_f64()
        };
        assert_eq!(value(&report, "attacks.tried"), Some(1.0));
        assert_eq!(value(&report, "attacks.slowdown"), Some(1.5));
        assert_eq!(value(&report, "attacks.link.slowdown"), Some(9.0));
        assert_eq!(value(&report, "attacks.reset_all.user.rate"), Some(100.0));
        assert_eq!(value(&report, "attacks.harmful"), Some(0.0));
        report.outcomes[1].findings.add("a task ended twice");
        report.outcomes[1].attacked.clear();
        assert_eq!(value(&report, "attacks.harmful"), Some(1.0));
        assert_eq!(value(&report, "attacks.slowdown"), None, "a run that does not end is no number");
        assert_eq!(report.findings().collect::<Vec<_>>(), ["user: reset_all: a task ended twice"]);
        assert!(report.table().contains("HARMFUL"));
    }
}
