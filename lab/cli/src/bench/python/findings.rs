//! Findings from turns: values with intervals and targets.

use super::turn::Turn;
use crate::bench::ratio::Ratio;
use crate::median::median;
use midflight_terminal::envelope::Measure;
use std::cmp::Ordering;

/// Target against the best other system with long tasks: at most 5 % behind.
const CLOSE: f64 = 1.0 / 1.05;
/// Name in a turn, name of the result, unit, target.
const OURS: [(&str, &str, &str, Option<Target>); 6] = [
    ("submit_per_s", "tasks_per_s", "tasks/s", Some(Target::AtLeast(30_000.0))),
    ("map_per_s", "map_tasks_per_s", "tasks/s", Some(Target::AtLeast(60_000.0))),
    ("rtt_p50_us", "rtt_p50_us", "us", Some(Target::AtMost(200.0))),
    ("submit_wire_bytes", "bytes_per_task", "bytes", None),
    ("map_wire_bytes", "map_bytes_per_task", "bytes", None),
    ("alone_wire_bytes", "alone_bytes_per_task", "bytes", None),
];

/// A system, with one turn per round.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub name: String,
    pub turns: Vec<Turn>,
}

impl Measured {
    pub(super) fn new(name: String) -> Self {
        Self { name, turns: Vec::new() }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.name == "midflight"
    }

    /// One per turn; `None` if missing.
    fn values(&self, name: &str) -> Option<Vec<f64>> {
        self.turns.iter().map(|turn| turn.values.get(name).copied()).collect()
    }

    /// The median over turns; NaN if one lacks the value.
    pub(super) fn median(&self, name: &str) -> f64 {
        self.values(name).map_or(f64::NAN, median)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    /// Compares the whole interval with the target.
    pub(super) fn verdict(self, of: Ratio) -> &'static str {
        let (worst, best, target) = match self {
            Self::AtLeast(target) => (of.low, of.high, target),
            Self::AtMost(target) => (-of.high, -of.low, -target),
        };
        match (worst.partial_cmp(&target), best.partial_cmp(&target)) {
            (Some(Ordering::Greater | Ordering::Equal), _) => "pass",
            (_, Some(Ordering::Less)) => "fail",
            _ => "unsure",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    /// Without the prefix `python.`.
    pub name: String,
    pub unit: &'static str,
    pub value: Ratio,
    pub target: Option<Target>,
}

/// Empty if Midflight was not measured.
pub(super) fn of(systems: &[Measured]) -> Vec<Finding> {
    let Some(ours) = systems.iter().find(|system| system.is_ours()) else { return Vec::new() };
    let mut findings = Vec::new();
    for (value, name, unit, target) in OURS {
        let values = ours.values(value).unwrap_or_default();
        // With 1 as the divisor the ratio is the value.
        if let Some(value) = Ratio::of(&values, &vec![1.0; values.len()]) {
            findings.push(Finding { name: name.into(), unit, value, target });
        }
    }
    for other in systems.iter().filter(|system| !system.is_ours()) {
        findings.extend(against(ours, other));
    }
    findings
}

/// How many times faster Midflight is than another system.
fn against(ours: &Measured, other: &Measured) -> Vec<Finding> {
    let name = other.name.as_str();
    let batches = name == "joblib";
    let found = |name: String, of: Option<Ratio>, target| Some(Finding { name, unit: "x", value: of?, target });
    let rate =
        |name: String, value: &str, target| found(name, Ratio::of(&ours.values(value)?, &other.values(value)?), target);
    // For times, the other system's value comes first: a larger ratio is better for Midflight.
    let time = |name: String, value: &str, of_other: &str, target| {
        found(name, Ratio::of(&other.values(of_other)?, &ours.values(value)?), target)
    };
    let twelve = (!batches).then_some(Target::AtLeast(12.0));
    let mut findings = vec![
        rate(format!("{name}_ratio"), "submit_per_s", twelve),
        rate(format!("map_{name}_ratio"), "map_per_s", None),
        time(format!("rtt_{name}_ratio"), "rtt_p50_us", "rtt_p50_us", None),
    ];
    for program in ours.turns.iter().take(1).flat_map(Turn::programs) {
        let target = match program.ends_with("_long") {
            true => CLOSE,
            false if batches => 1.0,
            false => 3.0,
        };
        let target = Some(Target::AtLeast(target));
        let seconds = format!("{program}_s");
        findings.push(time(format!("{program}_{name}_ratio"), &seconds, &seconds, target));
        // The other system's map may have fewer tasks than calls.
        let of_other = format!("{program}_task_each_s");
        findings.push(time(format!("{program}_{name}_task_each_ratio"), &seconds, &of_other, target));
    }
    findings.into_iter().flatten().collect()
}

pub(super) fn measures(findings: &[Finding], serial: &Turn, systems: &[Measured]) -> Vec<Measure> {
    let mut measures = Vec::new();
    for Finding { name, unit, value, target } in findings {
        for (end, value) in [("", value.value), (".low", value.low), (".high", value.high)] {
            measures.push(Measure::quantity(&format!("python.{name}{end}"), value, *unit));
        }
        if let Some(target) = target {
            measures.push(Measure::text(&format!("python.{name}.verdict"), target.verdict(*value)));
        }
    }
    for program in serial.programs() {
        let (name, value) = (format!("python.{program}_task_ms"), serial.values.get(&format!("{program}_task_ms")));
        measures.push(Measure::quantity(&name, value.copied().unwrap_or(f64::NAN), "ms"));
    }
    for system in systems {
        let name = |what: &str| format!("python.{}.{what}", system.name);
        measures.extend(system.turns.first().map(|turn| Measure::text(&name("version"), &turn.version)));
        for (value, what, unit, _) in OURS.into_iter().take(3) {
            measures.push(Measure::quantity(&name(what), system.median(value), unit));
        }
        for program in serial.programs() {
            let seconds = format!("{program}_s");
            measures.push(Measure::quantity(&name(&seconds), system.median(&seconds), "s"));
        }
    }
    measures
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two turns, each with a rate and a time.
    pub(in super::super) fn system(name: &str, per_s: [f64; 2], seconds: [f64; 2]) -> Measured {
        let turn = |(per_s, seconds): (f64, f64)| {
            let mut line = serde_json::json!({"system": name, "version": "1.0", "interface": format!("how {name} was used"),
                "values": {"submit_per_s": per_s, "map_per_s": 2.0 * per_s, "rtt_p50_us": 1e6 / per_s,
                    "grid_long_s": seconds, "grid_long_task_ms": 25.0},
                "answers": {"grid_long": "1"}});
            if name == "ray" {
                line["values"]["grid_long_task_each_s"] = (3.0 * seconds).into();
            }
            Turn::parse(name, &line.to_string()).unwrap()
        };
        let turns = per_s.into_iter().zip(seconds).map(turn).collect();
        Measured { turns, ..Measured::new(name.into()) }
    }

    fn named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
        findings.iter().find(|finding| finding.name == name).unwrap()
    }

    #[test]
    fn a_verdict_is_of_the_whole_interval() {
        let of = |low, high| Ratio { value: 1.0, low, high };
        let (least, most) = (Target::AtLeast(2.0), Target::AtMost(2.0));
        assert_eq!([least.verdict(of(2.0, 3.0)), most.verdict(of(2.0, 3.0))], ["pass", "unsure"]);
        assert_eq!([least.verdict(of(1.9, 3.0)), most.verdict(of(1.9, 3.0))], ["unsure", "unsure"]);
        assert_eq!([least.verdict(of(1.0, 1.9)), most.verdict(of(1.0, 1.9))], ["fail", "pass"]);
        assert_eq!([least.verdict(of(2.1, 3.0)), most.verdict(of(2.1, 3.0))], ["pass", "fail"]);
    }

    #[test]
    fn ratios_say_how_many_times_faster_midflight_is() {
        let systems = [
            system("midflight", [40_000.0, 40_000.0], [1.0, 2.0]),
            system("ray", [2_000.0, 2_000.0], [2.0, 4.0]),
            system("joblib", [4_000.0, 4_000.0], [0.5, 1.0]),
        ];
        let findings = of(&systems);
        assert_eq!(named(&findings, "tasks_per_s").value, Ratio { value: 40_000.0, low: 40_000.0, high: 40_000.0 });
        assert_eq!(named(&findings, "tasks_per_s").target, Some(Target::AtLeast(30_000.0)));
        assert_eq!(named(&findings, "ray_ratio").value.value, 20.0);
        assert_eq!(named(&findings, "rtt_ray_ratio").value.value, 20.0);
        assert_eq!(named(&findings, "joblib_ratio").target, None);
        // Both of a pair drifted alike.
        assert_eq!(named(&findings, "grid_long_ray_ratio").value, Ratio { value: 2.0, low: 2.0, high: 2.0 });
        assert_eq!(named(&findings, "grid_long_ray_task_each_ratio").value.value, 6.0);
        assert!(
            findings.iter().all(|finding| finding.name != "grid_long_joblib_task_each_ratio"),
            "it has no such time"
        );
        let slower = named(&findings, "grid_long_joblib_ratio");
        assert_eq!((slower.value.value, slower.target.map(|target| target.verdict(slower.value))), (0.5, Some("fail")));
    }

    #[test]
    fn what_was_not_measured_has_no_finding() {
        let others = [system("ray", [2_000.0, 2_000.0], [2.0, 4.0])];
        assert_eq!(of(&others), [], "without Midflight nothing is compared");
        let findings = of(&[system("midflight", [1.0, 2.0], [1.0, 2.0])]);
        assert!(findings.iter().all(|finding| !finding.name.ends_with("ratio")), "{findings:?}");
        assert!(findings.iter().all(|finding| finding.name != "bytes_per_task"), "no turn has it");
    }

    #[test]
    fn results_have_their_interval_and_verdict_under_their_name() {
        let systems =
            [system("midflight", [40_000.0, 40_000.0], [1.0, 2.0]), system("ray", [2_000.0, 2_000.0], [2.0, 4.0])];
        let serial = systems[0].turns[0].clone();
        let measures = measures(&of(&systems), &serial, &systems);
        let value = |name: &str| measures.iter().find(|measure| measure.name == name).unwrap().value.clone();
        assert_eq!(value("python.ray_ratio.low"), 20.0);
        assert_eq!(value("python.ray_ratio.verdict"), "pass");
        assert_eq!(value("python.ray.version"), "1.0");
        assert_eq!(value("python.ray.tasks_per_s"), 2_000.0);
        assert_eq!(value("python.ray.grid_long_s"), 3.0);
        assert_eq!(value("python.grid_long_task_ms"), 25.0);
    }
}
