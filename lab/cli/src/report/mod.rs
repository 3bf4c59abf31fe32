//! Self-contained pages: they load no script, font or picture. This file makes the page of a replay.

pub(crate) mod bars;
pub(crate) mod chart;
pub(crate) mod figures;
mod plots;
pub(crate) mod rows;
mod ticks;

use anyhow::Result;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use midflight_terminal::units;

use midflight_cli::replay::delays::Delays;
use midflight_cli::replay::outcome::{Ended, Outcome};
use midflight_cli::replay::plan::Plan;
use midflight_cli::replay::summary::remarks;
use midflight_papers::findings::plot::Hue;
use midflight_terminal::envelope::Envelope;
use plots::{Curve, PART_COLOURS};
use plotters::style::RGBColor;

const STYLE: &str = concat!(include_str!("style.css"), include_str!("dark.css"));

fn document(title: &str, content: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    };
    markup.into_string()
}

pub(crate) fn page(plan: &Plan, outcome: &Outcome, envelope: &Envelope) -> Result<String> {
    let machine = serde_json::to_value(envelope)?;
    let content = html! {
        (header(plan, outcome))
        (tiles(plan, outcome))
        (delay_section(outcome)?)
        (time_section(plan, outcome)?)
        (level_section(outcome)?)
        (settings(plan, outcome, &machine))
    };
    Ok(document(&format!("Midflight replay: {}", plan.source), &content))
}

fn header(plan: &Plan, outcome: &Outcome) -> Markup {
    html! {
        header {
            h1 { "Midflight replay" }
            p.source { (plan.source) }
            p { (units::thousands(outcome.tasks)) " tasks of " (units::thousands(outcome.jobs)) " jobs on " (plan.executors)
                " executors, in " (format!("{:.1}", outcome.elapsed().as_secs_f64())) " s." }
            @for remark in remarks(plan, outcome) {
                p.remark { (remark) }
            }
        }
    }
}

fn tiles(plan: &Plan, outcome: &Outcome) -> Markup {
    let ns = |ns| units::time(ns);
    let all = &outcome.all;
    let tiles = [
        ("Delay, median", ns(all.delay.quantile_ns(0.5)), format!("p99 {}", ns(all.delay.quantile_ns(0.99)))),
        ("Dispatch, median", ns(all.dispatch.quantile_ns(0.5)), format!("p99 {}", ns(all.dispatch.quantile_ns(0.99)))),
        ("Throughput", format!("{:.0} /s", outcome.throughput()), "tasks".into()),
        (
            "Utilisation",
            format!("{:.1} %", 100.0 * outcome.utilisation(plan.executors)),
            format!("load asked for {:.0} %", 100.0 * plan.args.load),
        ),
        ("Lost", outcome.lost.to_string(), format!("of {} tasks", units::thousands(outcome.tasks))),
    ];
    tiled(&tiles)
}

/// Tiles: the name of a number, the number, and an explanation.
fn tiled(tiles: &[(&str, String, String)]) -> Markup {
    html! {
        div.tiles {
            @for (name, value, detail) in tiles {
                div.tile { div.name { (name) } div.value { (value) } div.detail { (detail) } }
            }
        }
    }
}

fn delay_section(outcome: &Outcome) -> Result<Markup> {
    let parts = outcome.all.parts();
    let curves: Vec<Curve<'_>> = parts
        .into_iter()
        .zip(PART_COLOURS)
        .map(|((name, distribution), colour)| Curve { name: name.into(), colour, distribution })
        .collect();
    Ok(html! {
        section {
            h2 { "Scheduling delay" }
            p.caption { "Share of tasks that started within a time of their submission. "
                b { "Pacing" } " is how long the client's window held them back, "
                b { "queueing" } " the time in which no suitable executor was free, "
                b { "dispatch" } " what the system adds: from the time when the switch may have known both the task and an executor for it, to the start." }
            (legend(&curves))
            (PreEscaped(plots::cumulative(&curves)?))
            (delay_table(&outcome.all))
        }
    })
}

fn time_section(plan: &Plan, outcome: &Outcome) -> Result<Markup> {
    let points = outcome.series.points(plots::TIME_POINTS);
    Ok(html! {
        section {
            h2 { "Over time" }
            h3 { "Load" }
            p.caption {
                span.key style=(swatch(plots::RUNNING)) {} "busy executors (mean) "
                span.key style=(swatch(plots::OFFERED)) {} "work that arrived, in executors (moving mean) "
                span.key.dashed {} "all " (plan.executors) " executors"
            }
            (PreEscaped(plots::load(&points, plan.executors)?))
            h3 { "Queue" }
            p.caption { span.key style=(swatch(plots::WAITING)) {} "tasks submitted and not started (most)" }
            (PreEscaped(plots::queue(&points)?))
        }
    })
}

fn level_section(outcome: &Outcome) -> Result<Markup> {
    if outcome.levels.len() < 2 {
        return Ok(html! {});
    }
    let curves: Vec<Curve<'_>> = outcome
        .levels
        .iter()
        .zip(0..)
        .map(|((level, delays), nth)| {
            let colour = chart::colour(Hue::Nth(nth));
            Curve { name: format!("level {level}"), colour, distribution: &delays.queueing }
        })
        .collect();
    Ok(html! {
        section {
            h2 { "By priority" }
            p.caption { "Queueing by level, 1 being the highest. Dispatch does not depend on the level." }
            (legend(&curves))
            (PreEscaped(plots::cumulative(&curves)?))
            div.levels {
                @for (level, delays) in &outcome.levels {
                    div { (level_table(*level, delays)) }
                }
            }
        }
    })
}

fn level_table(level: u8, delays: &Delays) -> Markup {
    html! {
        h3 { "Level " (level) span.count { (units::thousands(delays.delay.count())) " tasks" } }
        (delay_table(delays))
    }
}

fn delay_table(delays: &Delays) -> Markup {
    html! {
        table {
            thead { tr { th { "part" } th { "p50" } th { "p95" } th { "p99" } th { "max" } } }
            tbody {
                @for (name, distribution) in delays.parts() {
                    tr {
                        th { (name) }
                        @for quantile in [0.5, 0.95, 0.99] {
                            td { (units::time(distribution.quantile_ns(quantile))) }
                        }
                        td { (units::time(distribution.max_ns())) }
                    }
                }
            }
        }
    }
}

fn settings(plan: &Plan, outcome: &Outcome, envelope: &serde_json::Value) -> Markup {
    let machine = |key: &str| match &envelope["machine"][key] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let ended = match outcome.ended {
        Ended::Complete => "complete",
        Ended::Interrupted => "interrupted",
        Ended::Stalled => "given up",
    };
    let rows = [
        ("Source", plan.source.clone()),
        ("Executors", format!("{}, tasks {}", plan.executors, plan.args.work.name())),
        ("Median and load asked for", format!("{:?}, {}", plan.args.median, plan.args.load)),
        ("Durations divided by f", format!("{:.6}", plan.scale.f)),
        ("Arrivals multiplied by g", format!("{:.6}", plan.scale.g)),
        ("Sum of durations", format!("{:.1} s", plan.scale.work_s)),
        ("Last arrival", format!("{:.1} s", plan.planned_s())),
        ("Last end, first come first served at no cost", format!("{:.1} s", plan.ideal_s())),
        ("Last end", format!("{:.1} s", outcome.elapsed().as_secs_f64())),
        ("Priorities", if plan.args.has_priorities() { "four levels" } else { "one level" }.into()),
        ("Seed", plan.args.seed.to_string()),
        ("Malformed lines", plan.malformed.to_string()),
        ("Jobs submitted late, p99", units::time(outcome.lateness.quantile_ns(0.99))),
        ("Retried, failed, lost", format!("{}, {}, {}", outcome.retried, outcome.failed, outcome.lost)),
        ("Run", ended.into()),
        ("Processor", format!("{} × {}", machine("cores"), machine("cpu"))),
        ("Kernel", machine("kernel")),
        ("Commit", envelope["commit"].as_str().unwrap_or("unknown").into()),
    ];
    html! {
        section {
            h2 { "Settings and machine" }
            dl {
                @for (name, value) in &rows {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

fn legend(curves: &[Curve<'_>]) -> Markup {
    html! {
        p.caption {
            @for curve in curves {
                span.key style=(swatch(curve.colour)) {} (curve.name) " "
            }
        }
    }
}

fn swatch(RGBColor(r, g, b): RGBColor) -> String {
    format!("background:rgb({r},{g},{b})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_cli::replay::command::Args;
    use midflight_cli::replay::delays::Passage;
    use midflight_cli::replay::summary::measures;

    /// That of a command line without options.
    fn plan() -> Plan {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        Plan::new(&<Line as clap::Parser>::parse_from(["replay"]).args).unwrap()
    }

    /// Two levels, some queueing, a burst.
    fn outcome() -> Outcome {
        let mut outcome = Outcome::new(0);
        for i in 0..2_000u64 {
            let queueing_ns = if i % 3 == 0 { 0 } else { (i % 500) * 40_000 };
            let submitted_ns = i * 1_000_000;
            let started_ns = submitted_ns + queueing_ns + 20_000 + (i * 7_919 % 60) * 1_000;
            let ended_ns = started_ns + 5_000_000 + (i * 104_729 % 40) * 1_000_000;
            let level = 1 + u8::from(i % 5 > 0) * 2;
            let sent_ns = submitted_ns;
            outcome.record(
                &Passage { submitted_ns, sent_ns, asked_ns: None, started_ns, ended_ns, queueing_ns, level },
                1,
            );
        }
        (outcome.jobs, outcome.tasks) = (100, 2_000);
        outcome
    }

    fn render(outcome: &Outcome) -> String {
        let plan = plan();
        page(&plan, outcome, &Envelope::new("replay", measures(&plan, outcome))).unwrap()
    }

    #[test]
    fn the_page_is_self_contained_and_has_every_part() {
        let page = render(&outcome());
        if let Some(path) = std::env::var_os("MIDFLIGHT_REPORT_SAMPLE") {
            std::fs::write(path, &page).unwrap();
        }
        assert_eq!(page.matches("<svg").count(), 4, "two distributions, load and queue");
        for text in ["Scheduling delay", "Load", "Queue", "By priority", "Level 3", "Settings and machine", "Kernel"] {
            assert!(page.contains(text), "{text}");
        }
        // The only URL is SVG's namespace.
        assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
        assert!(!page.contains("<script"));
    }

    #[test]
    fn one_level_has_no_comparison_of_levels() {
        let mut outcome = Outcome::new(0);
        outcome.record(&Passage { started_ns: 9, ended_ns: 20, level: 1, ..Passage::default() }, 1);
        assert!(!render(&outcome).contains("By priority"));
    }

    #[test]
    fn a_run_without_a_result_still_has_a_page() {
        assert!(render(&Outcome::new(0)).contains("Settings and machine"));
    }

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let mut plan = plan();
        plan.source = "<script>x</script>.tr".into();
        let outcome = outcome();
        let page = page(&plan, &outcome, &Envelope::new("replay", measures(&plan, &outcome))).unwrap();
        assert!(!page.contains("<script>x"));
    }
}
