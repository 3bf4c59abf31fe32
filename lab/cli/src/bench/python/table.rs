//! Prints medians, values with targets, and how each system was used.

use super::findings::{Finding, Measured, Target};
use super::turn::Turn;
use midflight_terminal::columns::aligned;
use midflight_terminal::units;
use std::fmt::Write;

/// Midflight and three others.
const SYSTEMS: usize = 4;

pub(super) fn render(findings: &[Finding], serial: &Turn, systems: &[Measured], absent: &[String]) -> String {
    let mut text = aligned(&medians(serial, systems), "lrrrr");
    if !findings.is_empty() {
        let lines: Vec<_> = findings.iter().map(cells).collect();
        let _ = write!(text, "\n{}", aligned(&lines, "lrlll"));
    }
    text.push('\n');
    for line in absent {
        let _ = writeln!(text, "{line}");
    }
    for system in systems {
        let turn = system.turns.first();
        let (version, interface) = turn.map_or(("", ""), |turn| (&turn.version, &turn.interface));
        let _ = writeln!(text, "{} {version}: {interface}", system.name);
    }
    text
}

/// A line per quantity, a column per system.
fn medians(serial: &Turn, systems: &[Measured]) -> Vec<[String; SYSTEMS + 1]> {
    let line = |name: String, cell: &dyn Fn(&Measured) -> String| {
        let mut line: [String; SYSTEMS + 1] = Default::default();
        line[0] = name;
        for (place, system) in line[1..].iter_mut().zip(systems) {
            *place = cell(system);
        }
        line
    };
    let rate = |name: &'static str| move |system: &Measured| units::thousands(system.median(name).round() as u64);
    let time = |name: String, unit_ns: f64| {
        move |system: &Measured| units::time((system.median(&name) * unit_ns).round() as u64)
    };
    let mut lines = vec![
        line(String::new(), &|system| system.name.clone()),
        line("submit, tasks/s".into(), &rate("submit_per_s")),
        line("map, tasks/s".into(), &rate("map_per_s")),
        line("one alone, p50".into(), &time("rtt_p50_us".into(), 1e3)),
    ];
    for program in serial.programs() {
        let task_ms = serial.values.get(&format!("{program}_task_ms")).copied().unwrap_or_default();
        let title = format!("{program}, {} a task", units::time((task_ms * 1e6).round() as u64));
        lines.push(line(title, &time(format!("{program}_s"), 1e9)));
    }
    lines
}

fn cells(finding: &Finding) -> [String; 5] {
    let Finding { name, unit, value, target } = finding;
    let number = |value: f64| match value {
        1_000.0.. => units::thousands(value.round() as u64),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    let (bound, verdict) = match target {
        Some(Target::AtLeast(bound)) => (format!("at least {}", number(*bound)), target.map(|t| t.verdict(*value))),
        Some(Target::AtMost(bound)) => (format!("at most {}", number(*bound)), target.map(|t| t.verdict(*value))),
        None => (String::new(), None),
    };
    let interval = format!("({} to {}) {unit}", number(value.low), number(value.high));
    [format!("python.{name}"), number(value.value), interval, bound, verdict.unwrap_or_default().into()]
}
