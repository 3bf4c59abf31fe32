//! The papers' figures as a page, like an evaluation section.

use super::{chart, document, tiled};
use anyhow::Result;
use maud::{Markup, PreEscaped, html};
use midflight_papers::figures::{Figure, RULES_VERSION};
use midflight_papers::findings::{
    Class, Estimate, Findings, Paper, RATIO_WITHIN, Row, SHAPE_WITHIN, Unit, VALUE_WITHIN, Verdict,
};
use midflight_terminal::envelope::Envelope;
use midflight_terminal::units;

#[derive(Debug)]
pub(crate) struct Shown<'a> {
    pub figure: &'a Figure,
    pub findings: Findings,
    /// Each plot, as SVG.
    pub pictures: Vec<String>,
    pub first_seed: u64,
    /// Seeds of most of its cells; a column whose rows were sure earlier has fewer.
    pub seeds: u64,
    pub spent: Spent,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub cells: usize,
    /// Cells computed by earlier sources that are known to be equal.
    pub of_earlier: usize,
    pub wall_s: f64,
    /// Of the largest cell.
    pub peak_mib: f64,
    pub events: u64,
}

#[derive(Debug)]
pub(crate) struct HowRun {
    /// Flags that determine the results.
    pub flags: String,
    /// The largest number of seeds, for a figure with a row that stays unsure.
    pub most: u64,
    pub quick: bool,
    /// What is missing because a trace is absent.
    pub absent: Option<String>,
    pub command: String,
}

impl Shown<'_> {
    /// Number of rows with this verdict, without inputs.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.findings.rows.iter().filter(|row| told(row) == verdict.name()).count()
    }
}

pub(crate) fn page(shown: &[Shown<'_>], how: &HowRun, envelope: &Envelope) -> String {
    let content = html! {
        header {
            h1 { "The papers' figures, simulated" }
            p { "What the papers on Falcon, Bolt and FLAIR measured on a cluster with a programmable switch, and what the one on NetRS "
                "simulated, run again in virtual time. Rows of Falcon, Bolt and their rivals run models of the published protocols, "
                "without bytes; rows whose names begin with " code { "midflight" } " or " code { "asic" } " run this project's switch, "
                "client and executor. Of NetRS, the selectors and the planner are this project's; of FLAIR everything is, except for VR "
                "and Fast Paxos." }
            p.remark { (evidence(shown)) }
            @if how.quick {
                p.remark { "A quick run: short, to see that it works. Values and verdicts may change in a full one." }
            }
            @if let Some(absent) = &how.absent {
                p.remark { (absent) }
            }
        }
        (tiles(shown))
        (contents(shown))
        (reading(how))
        @for one in shown {
            (section(one, how))
        }
        section {
            h2 { "Run again" }
            pre { (how.command) }
            p.caption { (envelope.footer()) }
        }
    };
    document("Midflight: the papers' figures, simulated", &content)
}

/// Only predictions are evidence, and a qualitative statement passes more easily than a number.
fn evidence(shown: &[Shown<'_>]) -> String {
    let rows: Vec<&Row> = shown.iter().flat_map(|one| &one.findings.rows).collect();
    let of = |class: Class| rows.iter().filter(move |row| row.class.name() == class.name());
    let [total, seen, set, measured, hypothetical] = Class::ALL.map(|class| of(class).count());
    let (statements, numbers): (Vec<&&Row>, _) = of(Class::Predicted).partition(|row| row.is_statement());
    let [pass, unsure, shape, fail] = verdicts(&numbers);
    let [pass_said, ..] = verdicts(&statements);
    format!(
        "Of {} rows {total} are predictions, and only these are evidence. Predicted numbers: {pass} of {} pass, {unsure} unsure, \
         {shape} have the shape, {fail} fail. Predicted statements: {pass_said} of {} pass. {seen} rows were in view when constants or \
         rules were chosen, {set} were set, {measured} are this project's programs at costs measured on Linux, {hypothetical} at times \
         that nobody has measured, such as a Tofino's.",
        rows.len(),
        numbers.len(),
        statements.len()
    )
}

fn verdicts(rows: &[&&Row]) -> [usize; 4] {
    Verdict::ALL.map(|verdict| rows.iter().filter(|row| row.verdict() == verdict).count())
}

fn tiles(shown: &[Shown<'_>]) -> Markup {
    let sum = |verdict| {
        let predicted = |row: &&Row| row.class == Class::Predicted && !row.is_statement() && row.verdict() == verdict;
        shown.iter().map(|one| one.findings.rows.iter().filter(predicted).count()).sum::<usize>()
    };
    let wall_s: f64 = shown.iter().map(|one| one.spent.wall_s).sum();
    let events: u64 = shown.iter().map(|one| one.spent.events).sum();
    let tiles = [
        ("Predicted numbers, pass", sum(Verdict::Pass).to_string(), "the whole interval as in the paper".to_owned()),
        ("Unsure", sum(Verdict::Unsure).to_string(), "the interval straddles".into()),
        ("Shape", sum(Verdict::Shape).to_string(), "order right and within a factor of 3".into()),
        ("Fail", sum(Verdict::Fail).to_string(), "none of these".into()),
        ("Seeds", seeds(shown), "the same arrivals for all schemes".into()),
        ("Simulated", format!("{:.1} G", events as f64 / 1e9), format!("events, in {} of one core", human_s(wall_s))),
    ];
    tiled(&tiles)
}

/// From the fewest seeds of a figure to the most.
fn seeds(shown: &[Shown<'_>]) -> String {
    let all = || shown.iter().map(|one| one.seeds);
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    }
}

fn human_s(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

fn contents(shown: &[Shown<'_>]) -> Markup {
    html! {
        section {
            h2 { "Contents" }
            nav {
                div.scroll {
                    table {
                        thead { tr { th { "figure" } th style="text-align:left" { "shows" } th { "pass" } th { "unsure" } th { "shape" } th { "fail" } } }
                        tbody {
                            @for one in shown {
                                tr {
                                    th { a href={ "#" (one.figure.name) } { (one.figure.name) } }
                                    td.what style="text-align:left" { (one.figure.title) }
                                    @for verdict in Verdict::ALL {
                                        td { (one.count(verdict)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn reading(how: &HowRun) -> Markup {
    html! {
        section.reading {
            h2 { "How to read it" }
            p { b { "Delay" } " is from the call of submit to the start of the task. " b { "Values" }
                " are means over seeds, with the half width of their 95 % confidence interval (Student's t). Factors are taken seed by seed. "
                "The start of each run is left out. A figure is run with more seeds, up to " (how.most) ", while a row of it is unsure." }
            p { b { "Classes" } ". " b { "Set" } ": a constant, which is named, was fitted to the row: it is an input, and shown as one. "
                b { "Seen" } ": the value was in view when a constant or a rule was chosen. " b { "Predicted" } ": neither. "
                b { "Measured" } ": this project's programs, at costs measured on Linux: of a decision in its kernel by " code { "bench xdp" }
                ", of hosts and links in a lab by " code { "bench lab" } ". "
                b { "Hypothetical" } ": this project's programs, at times of a switch that they were never run on." }
            p { b { "Verdicts" } " are by the whole interval. " b { "Pass" } ": within a factor of " (RATIO_WITHIN) " of the paper's ratio or "
                (VALUE_WITHIN) " of its time, a bound kept, or a statement true. " b { "Unsure" } ": it straddles. "
                b { "Shape" } ": the value is another, but within a factor of " (SHAPE_WITHIN) ", and the order of the schemes is as in the paper. "
                b { "Fail" } ": none of these." }
            p { "Constants and rules are frozen; their hash is " code { (RULES_VERSION) } ". All that stand for the papers' hardware and software are in one file, " code { "lab/papers/src/calibration.rs" }
                ", each with its reason; no figure has constants of its own but the loads that the papers do not give. "
                b { "Bolt" } " and " b { "Falcon" } " are the published protocol, whose executors poll; "
                b { "Midflight" } " is the code of this project, whose executors are parked." }
        }
    }
}

fn section(shown: &Shown<'_>, how: &HowRun) -> Markup {
    let Shown { figure, findings, pictures, spent, .. } = shown;
    html! {
        section.reading id=(figure.name) {
            h2 { (figure.name) ": " (figure.title) }
            p.source { (figure.source) }
            p { (figure.set_up) }
            @for note in &findings.notes {
                p { (note) }
            }
            @for picture in pictures {
                (PreEscaped(picture))
            }
            p.caption { "Seeds " (shown.first_seed) " to " (shown.first_seed + shown.seeds - 1) }
            (table(&findings.rows))
            (columns(&findings.rows))
            h3 { "What differs, and why" }
            p { (figure.differs) }
            pre { (command(figure, how)) }
            p.caption { (spent.cells) " cells, " (units::thousands(spent.events)) " events, " (human_s(spent.wall_s)) ", at most "
                (format!("{:.0}", spent.peak_mib)) " MiB" (earlier(spent)) }
        }
    }
}

/// Results computed by earlier sources; empty for none.
fn earlier(spent: &Spent) -> String {
    match spent.of_earlier {
        0 => String::new(),
        cells => format!(
            "; {cells} of the results were computed by earlier sources, of which some of each scheme and load were computed again and \
             were the same (cells/equal.toml)"
        ),
    }
}

fn command(figure: &Figure, how: &HowRun) -> String {
    format!("midflight-lab sim figure {} {}", figure.name, how.flags)
}

fn table(rows: &[Row]) -> Markup {
    html! {
        div.scroll {
            table.rows {
                thead { tr { th { "" } th { "paper" } th { "here" } th { "ratio" } th { "class" } th { "" } } }
                tbody {
                    @for row in rows.iter().filter(|row| row.column.is_none()) {
                        tr {
                            td.what { (row.what) }
                            td.says { (paper(row)) }
                            td { (ours(row)) }
                            td { (ratio(row)) }
                            td { (class(row)) }
                            td { span class={ "verdict " (told(row)) } { (told(row)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The rows with real traces in columns next to the generated workload; empty without traces.
fn columns(rows: &[Row]) -> Markup {
    let mut traces: Vec<&str> = rows.iter().filter_map(|row| row.column).collect();
    traces.dedup();
    if traces.is_empty() {
        return html! {};
    }
    let with = |plain: &Row, trace| rows.iter().find(|row| row.column == Some(trace) && row.plain_name() == plain.name);
    html! {
        h3 { "With real traces" }
        div.scroll {
            table.rows {
                thead { tr { th { "" } th { "paper" } th { "generated" } @for trace in &traces { th { (trace) } } } }
                tbody {
                    @for row in rows.iter().filter(|row| row.column.is_none()) {
                        tr {
                            td.what { (row.what) }
                            td.says { (paper(row)) }
                            td { (in_column(row)) }
                            @for trace in &traces {
                                td { @if let Some(row) = with(row, trace) { (in_column(row)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn in_column(row: &Row) -> Markup {
    html! { (ours(row)) br; span.off { (row.class.name()) " " } span class={ "verdict " (told(row)) } { (told(row)) } }
}

/// A row to which a constant was fitted is an input, if it came out so.
pub(crate) fn told(row: &Row) -> &'static str {
    match (row.class, row.verdict()) {
        (Class::Set(_), Verdict::Pass) => "input",
        (_, verdict) => verdict.name(),
    }
}

fn class(row: &Row) -> Markup {
    html! {
        (row.class.name())
        @if let Class::Set(constant) = row.class { span.off { " by " (constant) } }
    }
}

fn ours(row: &Row) -> Markup {
    let Some(Estimate { mean, half_width, .. }) = row.ours else { return html! { "nothing" } };
    html! {
        (value(row.unit, mean))
        @if let Some(half) = half_width { span.off { " ± " (value(row.unit, half)) } }
    }
}

/// The paper's value, for display.
pub(crate) fn paper(row: &Row) -> String {
    match row.paper {
        Paper::Is(number) => value(row.unit, number),
        Paper::AtLeast(number) => format!("at least {}", value(row.unit, number)),
        Paper::AtMost(number) => format!("at most {}", value(row.unit, number)),
        Paper::Says(words, _) => words.into(),
    }
}

/// Ours divided by the paper's, for display.
pub(crate) fn ratio(row: &Row) -> String {
    row.ratio().map_or(String::new(), |ratio| if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.2}") })
}

pub(crate) fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time if value < 0.0 => format!("−{}", units::time((-value).round() as u64)),
        Unit::Time => units::time(value.round() as u64),
        Unit::Factor if value >= 99.5 => format!("{}×", units::thousands(value.round() as u64)),
        Unit::Factor if value >= 9.95 => format!("{value:.1}×"),
        Unit::Factor => format!("{value:.2}×"),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::PerSecond if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
        Unit::PerSecond if value >= 1e3 => format!("{:.1} K/s", value / 1e3),
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Count => format!("{value:.0}"),
    }
}

pub(crate) fn draw(findings: &Findings) -> Result<Vec<String>> {
    findings.plots.iter().map(chart::draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_papers::figures::ALL;

    #[test]
    fn the_page_is_self_contained_and_has_every_figure() {
        let shown: Vec<Shown<'_>> = ALL
            .iter()
            .map(|figure| {
                let findings = figure.findings([]);
                let pictures = draw(&findings).unwrap();
                Shown { figure, findings, pictures, first_seed: 1, seeds: 10, spent: Spent::default() }
            })
            .collect();
        let how = HowRun {
            flags: "--seeds 10".into(),
            most: 40,
            quick: false,
            absent: Some("LEFT OUT: all".into()),
            command: "midflight-lab sim figure --all".into(),
        };
        let page = page(&shown, &how, &Envelope::new("figure", vec![]));
        for figure in &ALL {
            assert!(page.contains(&format!("id=\"{}\"", figure.name)), "{}", figure.name);
        }
        // The only URL is SVG's namespace.
        assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
        assert!(!page.contains("<script"));
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("LEFT OUT: all") && !page.contains("<h3>With real traces"));
    }
}
