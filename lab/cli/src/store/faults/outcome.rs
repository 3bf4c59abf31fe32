use super::kinds::Kind;
use super::run::Run;
use crate::engines::{LabEngine, Named};
use crate::median::median;
use midflight_spec::store::history::Verdict;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::Measure;

/// One kind with one engine.
pub(super) struct Outcome {
    engine: LabEngine,
    kind: &'static Kind,
    operations: u64,
    outages_ms: Vec<f64>,
    violations: u64,
    unchecked: u64,
    stuck: u64,
}

impl Outcome {
    pub(super) fn new(engine: LabEngine, kind: &'static Kind) -> Self {
        Self { engine, kind, operations: 0, outages_ms: Vec::new(), violations: 0, unchecked: 0, stuck: 0 }
    }

    pub(super) fn add(&mut self, run: &Run) {
        self.operations += run.history.operations.len() as u64;
        self.outages_ms.push(run.outage_ms);
        self.violations += u64::from(matches!(run.verdict, Verdict::Violation(_)));
        self.unchecked += u64::from(matches!(run.verdict, Verdict::TooHard { .. }));
        self.stuck += u64::from(run.stuck.is_some());
    }

    fn median_ms(&self) -> f64 {
        if self.outages_ms.is_empty() { f64::NAN } else { median(self.outages_ms.clone()) }
    }

    fn longest_ms(&self) -> f64 {
        self.outages_ms.iter().copied().fold(0.0, f64::max)
    }

    fn is_good(&self) -> bool {
        self.violations + self.unchecked + self.stuck == 0
    }

    fn row(&self) -> [String; 9] {
        [
            self.engine.name(),
            self.kind.name.into(),
            self.outages_ms.len().to_string(),
            self.operations.to_string(),
            format!("{:.0} ms", self.median_ms()),
            format!("{:.0} ms", self.longest_ms()),
            self.violations.to_string(),
            self.unchecked.to_string(),
            self.stuck.to_string(),
        ]
    }
}

pub(super) fn all_good(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(Outcome::is_good)
}

pub(super) fn table(outcomes: &[Outcome]) -> String {
    let head = ["engine", "kind", "runs", "operations", "outage", "longest", "violations", "unchecked", "stuck"];
    let lines: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(outcomes.iter().map(Outcome::row)).collect();
    aligned(&lines, "llrrrrrrr")
}

pub(super) fn measures(outcomes: &[Outcome]) -> Vec<Measure> {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum();
    let mut measures = vec![
        Measure::count("faults.runs", sum(|outcome| outcome.outages_ms.len() as u64), "faults"),
        Measure::count("faults.operations", sum(|outcome| outcome.operations), "operations"),
        Measure::count("faults.violations", sum(|outcome| outcome.violations), "histories"),
        Measure::count("faults.unchecked", sum(|outcome| outcome.unchecked), "histories"),
        Measure::count("faults.stuck", sum(|outcome| outcome.stuck), "stores"),
    ];
    for outcome in outcomes {
        let name = |what| format!("faults.{}.{}.{what}", outcome.kind.name, outcome.engine.name());
        measures.extend([
            Measure::count(&name("runs"), outcome.outages_ms.len() as u64, "faults"),
            Measure::count(&name("operations"), outcome.operations, "operations"),
            Measure::quantity(&name("outage_median_ms"), outcome.median_ms(), "ms"),
            Measure::quantity(&name("outage_max_ms"), outcome.longest_ms(), "ms"),
            Measure::count(&name("violations"), outcome.violations, "histories"),
            Measure::count(&name("stuck"), outcome.stuck, "stores"),
        ]);
    }
    measures
}
