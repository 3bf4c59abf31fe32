//! `midflight-lab bench netrs`: one default run of NetRS's evaluation, on one core.

use super::How;
use crate::median::median;
use crate::processes::ours;
use anyhow::{Context, Result, ensure};
use midflight_papers::netrs::Cell;
use midflight_terminal::envelope::{Envelope, Measure};
use serde_json::Value;
use std::process::{ExitCode, Stdio};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench netrs
  midflight-lab bench netrs --quick          one run instead of five
  midflight-lab bench netrs --json
  midflight-lab bench netrs --against ../before/target/release/midflight-lab

The default cell of `sim figure netrs-4` with NetRS-ILP: 600,000 reads, 500 clients, 100 servers,
1,024 hosts, with the run that counts the traffic and the integer program. Needs the ILP.

RESULTS (medians of the runs; each is a process of its own, with one thread)
  netrs.default_run_s                    how long a run takes
  netrs.default_rss_mib                  the most memory that it has
  netrs.events_per_s                     simulated events a second

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let runs = if how.quick { 1 } else { 5 };
    let (mut seconds, mut mib, mut events) = (vec![], vec![], vec![]);
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        let ran = one(run)?;
        let number = |path: &str| ran.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"));
        seconds.push(number("/cost/wall_s")?);
        mib.push(number("/cost/peak_mib")?);
        events.push(number("/result/events")? / number("/cost/wall_s")?);
    }
    let results = vec![
        Measure::quantity("netrs.default_run_s", median(seconds), "s"),
        Measure::quantity("netrs.default_rss_mib", median(mib), "MiB"),
        Measure::quantity("netrs.events_per_s", median(events), "1/s"),
    ];
    Envelope::new("netrs", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// In its own process, to measure its memory.
fn one(seed: u64) -> Result<Value> {
    let mut command = ours()?;
    command.args(["sim", "cell"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let cell = serde_json::to_vec(&Cell { seed, ..Cell::default() })?;
    // Its exit status explains a write error.
    let _ = std::io::Write::write_all(&mut child.stdin.take().context("a child without stdin")?, &cell);
    let output = child.wait_with_output().context("cannot wait for a run")?;
    ensure!(output.status.success(), "a run failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("a run printed no JSON")
}
