//! Compiles and assembles the programs for Tofino 1 and 2, and reports their resource use.

use anyhow::{Context, Result};
use midflight_p4::Program;
use midflight_p4::tofino::{Report, Target, TofinoTools};
use midflight_terminal::envelope::Measure;
use std::path::Path;

/// Writes the report to `reports`, if given.
pub(super) fn run(tools: &TofinoTools, program: Program, target: &Target, reports: Option<&Path>) -> Result<Report> {
    let report = tools.compile(program, target)?;
    if let Some(folder) = reports {
        let path = folder.join(target.file(program)).with_extension("toml");
        std::fs::write(&path, report.to_toml()?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(report)
}

pub(super) fn told(report: &Report, target: &Target) -> String {
    let Report { program, compiler, entries_per_level, stages, containers: [c8, c16, c32], .. } = report;
    format!(
        "{program} on {}, {compiler}: {stages} of {} stages, 4 x {entries_per_level} entries, SRAM {:.1} %, TCAM {:.1} %, \
         PHV {:.1} % ({c8} x 8, {c16} x 16, {c32} x 32 bits)\n",
        target.name,
        target.stages,
        report.sram_percent(target),
        report.tcam_percent(target),
        report.phv_percent(target),
    )
}

pub(super) fn measures(report: &Report, target: &Target) -> [Measure; 5] {
    let named = |name: &str| format!("p4.{}.{}.{name}", report.program, target.arch);
    [
        Measure::count(&named("stages"), report.stages.into(), "stages"),
        Measure::count(&named("entries_per_level"), report.entries_per_level.into(), "entries"),
        Measure::quantity(&named("sram_percent"), report.sram_percent(target), "%"),
        Measure::quantity(&named("tcam_percent"), report.tcam_percent(target), "%"),
        Measure::quantity(&named("phv_percent"), report.phv_percent(target), "%"),
    ]
}
