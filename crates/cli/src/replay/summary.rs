//! Formats an outcome as named numbers and as a table.

use midflight_terminal::units;
use std::fmt::Write;

use super::delays::Delays;
use super::outcome::{Ended, Outcome};
use super::plan::Plan;
use midflight_terminal::envelope::Measure;

const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// All numbers under their stable names.
pub fn measures(plan: &Plan, outcome: &Outcome) -> Vec<Measure> {
    let mut list = vec![
        Measure::count("replay.jobs", outcome.jobs, "jobs"),
        Measure::count("replay.tasks", outcome.tasks, "tasks"),
        Measure::count("replay.completed", outcome.completed, "tasks"),
        Measure::count("replay.failed", outcome.failed, "tasks"),
        Measure::count("replay.lost", outcome.lost, "tasks"),
        Measure::count("replay.retried", outcome.retried, "tasks"),
        Measure::count("replay.partial", u64::from(outcome.ended != Ended::Complete), "bool"),
    ];
    push_delays(&mut list, "replay", &outcome.all);
    list.extend([
        Measure::quantity("replay.throughput", outcome.throughput(), "tasks/s"),
        Measure::quantity("replay.utilisation_percent", 100.0 * outcome.utilisation(plan.executors), "%"),
        Measure::quantity("replay.elapsed_s", outcome.elapsed().as_secs_f64(), "s"),
        Measure::quantity("replay.planned_s", plan.planned_s(), "s"),
        Measure::quantity("replay.ideal_s", plan.ideal_s(), "s"),
        Measure::quantity("replay.submit_late_p99_us", outcome.lateness.quantile_ns(0.99) as f64 / 1e3, "us"),
        // Factors may be tiny, so they are not rounded.
        Measure { name: "replay.scale_f".into(), value: plan.scale.f.into(), unit: "ratio".into() },
        Measure { name: "replay.scale_g".into(), value: plan.scale.g.into(), unit: "ratio".into() },
        Measure::count("replay.rounded_to_zero", plan.scale.rounded_to_zero, "tasks"),
        Measure::count("replay.malformed_lines", plan.malformed, "lines"),
    ]);
    for (level, delays) in &outcome.levels {
        let prefix = format!("replay.level{level}");
        list.push(Measure::count(&format!("{prefix}.tasks"), delays.delay.count(), "tasks"));
        push_delays(&mut list, &prefix, delays);
    }
    list
}

fn push_delays(list: &mut Vec<Measure>, prefix: &str, delays: &Delays) {
    for (part, distribution) in delays.parts() {
        let mut push = |which: &str, ns: u64| {
            list.push(Measure::quantity(&format!("{prefix}.{part}_{which}_us"), ns as f64 / 1e3, "us"));
        };
        for (which, quantile) in QUANTILES {
            push(which, distribution.quantile_ns(quantile));
        }
        push("max", distribution.max_ns());
    }
}

/// Explanations of numbers that need one.
pub fn remarks(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut list = Vec::new();
    match outcome.ended {
        Ended::Complete => {}
        Ended::Interrupted => list.push("PARTIAL: interrupted; the numbers are of what had been submitted".into()),
        Ended::Stalled => list.push("PARTIAL: no task ended for too long; what was open counts as lost".into()),
    }
    if outcome.lost > 0 {
        list.push(format!("{} tasks LOST: submitted, but no result came", outcome.lost));
    }
    if outcome.failed > 0 {
        list.push(format!("{} tasks FAILED", outcome.failed));
    }
    if plan.scale.rounded_to_zero > 0 {
        list.push(format!("{} durations rounded to zero nanoseconds", plan.scale.rounded_to_zero));
    }
    let late_ns = outcome.lateness.quantile_ns(0.99);
    if late_ns > 1_000_000 {
        list.push(format!("1 % of the jobs were submitted more than {} later than planned", units::time(late_ns)));
    }
    list
}

/// The table for the terminal.
pub fn table(plan: &Plan, outcome: &Outcome) -> String {
    let mut text = String::new();
    let columns = |text: &mut String, name: &str, cells: [String; 5]| {
        let [tasks, p50, p95, p99, max] = cells;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12} {tasks:>10} {p50:>10} {p95:>10} {p99:>10} {max:>10}");
    };
    columns(&mut text, "", ["tasks", "p50", "p95", "p99", "max"].map(String::from));
    let rows = |text: &mut String, name: &str, delays: &Delays| {
        for (part, d) in delays.parts() {
            let is_whole = part == "delay";
            let label = if is_whole { name.to_owned() } else { format!("  {part}") };
            let tasks = if is_whole { d.count().to_string() } else { String::new() };
            let [p50, p95, p99] = QUANTILES.map(|(_, quantile)| units::time(d.quantile_ns(quantile)));
            columns(text, &label, [tasks, p50, p95, p99, units::time(d.max_ns())]);
        }
    };
    rows(&mut text, "delay", &outcome.all);
    if outcome.levels.len() > 1 {
        for (level, delays) in &outcome.levels {
            rows(&mut text, &format!("level {level}"), delays);
        }
    }
    let _ = writeln!(
        text,
        "\n{} of {} tasks in {:.1} s (last arrival: {:.1} s; first come, first served at no cost: {:.1} s)\n\
         {:.0} tasks/s, utilisation {:.1} %, lost {}, failed {}, retried {}",
        outcome.completed,
        outcome.tasks,
        outcome.elapsed().as_secs_f64(),
        plan.planned_s(),
        plan.ideal_s(),
        outcome.throughput(),
        100.0 * outcome.utilisation(plan.executors),
        outcome.lost,
        outcome.failed,
        outcome.retried
    );
    for remark in remarks(plan, outcome) {
        let _ = writeln!(text, "{remark}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::delays::Passage;
    use super::super::plan::tests::plan;
    use super::*;

    fn outcome() -> Outcome {
        let mut outcome = Outcome::new(0);
        (outcome.jobs, outcome.tasks) = (1, 2);
        let (started_ns, ended_ns, queueing_ns) = (3_000, 1_000_000, 1_000);
        let passage = Passage { started_ns, ended_ns, queueing_ns, level: 1, ..Passage::default() };
        outcome.record(&passage, 1);
        outcome.record(&Passage { level: 3, ..passage }, 2);
        outcome
    }

    fn value(list: &[Measure], name: &str) -> f64 {
        list.iter().find(|measure| measure.name == name).unwrap().value.as_f64().unwrap()
    }

    #[test]
    fn the_names_of_the_issue_are_there_and_counts_are_integers() {
        let list = measures(&plan(), &outcome());
        let dispatch_us = value(&list, "replay.dispatch_p50_us");
        assert!((dispatch_us - 2.0).abs() < 0.01, "{dispatch_us}");
        for name in ["delay_p50_us", "delay_p99_us", "dispatch_p50_us", "dispatch_p99_us"] {
            assert!(value(&list, &format!("replay.{name}")) > 0.0);
        }
        for (name, count) in
            [("replay.tasks", 2), ("replay.lost", 0), ("replay.retried", 1), ("replay.level3.tasks", 1)]
        {
            let measure = list.iter().find(|measure| measure.name == name).unwrap();
            assert_eq!(measure.value.as_u64(), Some(count), "{name}");
        }
    }

    #[test]
    fn the_table_says_when_a_run_is_partial_or_lost_tasks() {
        let mut outcome = outcome();
        assert!(!table(&plan(), &outcome).contains("PARTIAL"));
        (outcome.ended, outcome.lost) = (Ended::Interrupted, 1);
        let text = table(&plan(), &outcome);
        assert!(text.contains("PARTIAL") && text.contains("1 tasks LOST"), "{text}");
    }
}
