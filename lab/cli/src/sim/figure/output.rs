//! Output of figures: a table or one JSON object on stdout; plots, and a report.

use super::compare::{Comparison, RULES};
use crate::report::chart::standalone;
use crate::report::figures::{HowRun, Shown, page};
use crate::report::rows;
use anyhow::Result;
use midflight_papers::figures::RULES_VERSION;
use midflight_papers::findings::Row;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::files;
use midflight_terminal::stdout;
use std::collections::BTreeSet;
use std::path::Path;

/// `compared` is with the run in this file.
pub(super) fn write(
    shown: &[Shown<'_>],
    how: &HowRun,
    mut envelope: Envelope,
    compared: Option<(&Comparison, &Path)>,
    out: &Path,
    json: bool,
) -> Result<()> {
    if let Some((compared, _)) = compared {
        envelope.extend(compared.measures());
    }
    let compared = compared.map_or_else(String::new, |(compared, with)| compared.table(with));
    for one in shown {
        for (plot, picture) in one.findings.plots.iter().zip(&one.pictures) {
            files::write(&out.join(format!("{}.{}.svg", one.figure.name, plot.name)), &standalone(picture))?;
        }
    }
    files::write(&out.join("results.json"), &format!("{}\n", serde_json::to_string_pretty(&envelope)?))?;
    let report = out.join("index.html");
    files::write(&report, &page(shown, how, &envelope))?;
    if json {
        envelope.print(true)?;
        eprint!("{compared}");
        eprintln!("report: {}", report.display());
        return Ok(());
    }
    let table = |one: &Shown<'_>| rows::table(one.figure.name, one.figure.title, &one.findings);
    let tables: String = shown.iter().map(table).collect();
    let absent = how.absent.as_ref().map_or_else(String::new, |absent| format!("{absent}\n"));
    stdout::print(&format!("{tables}{absent}{compared}report: {}\n{}", report.display(), envelope.footer()))
}

pub(super) fn measures(shown: &[Shown<'_>]) -> Vec<Measure> {
    let mut measures = Vec::new();
    for one in shown {
        let figure = one.figure.name;
        for row in &one.findings.rows {
            measures.extend(rows::measures(&format!("{figure}.{}", row.name), row));
        }
        measures.extend(rows::counts(figure, &one.findings));
        let numbers = one.findings.numbers.iter();
        measures.extend(numbers.map(|number| Measure::quantity(&number.name, number.value, number.unit)));
    }
    let rows: Vec<&Row> = shown.iter().flat_map(|one| &one.findings.rows).collect();
    measures.extend(rows::by_class("figures", &rows));
    let papers: BTreeSet<&str> = shown.iter().map(|one| one.figure.paper()).collect();
    for paper in papers {
        let of_paper = shown.iter().filter(|one| one.figure.paper() == paper);
        let rows: Vec<&Row> = of_paper.flat_map(|one| &one.findings.rows).collect();
        measures.extend(rows::by_class(&format!("figures.{paper}"), &rows));
    }
    let mut traces: Vec<&str> = rows.iter().filter_map(|row| row.column).collect();
    traces.sort_unstable();
    traces.dedup();
    measures.push(Measure::text("figures.traces", &traces.join(" ")));
    measures.push(Measure::text(RULES, RULES_VERSION));
    measures
}
