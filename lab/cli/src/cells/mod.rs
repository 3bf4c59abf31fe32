//! Runs cells of the simulator as separate processes: a crash, a lack of memory or Ctrl-C ends only one cell. Figures and sweeps are lists
//! of cells.

mod equal;
mod pack;
mod pool;
mod store;

pub(crate) use equal::Equal;
pub(crate) use pool::{Job, Pool};
pub(crate) use store::{Cost, Kept, Store};

use crate::memory;
use anyhow::Result;
use midflight_papers::experiment::Experiment;
use midflight_terminal::usage::{self, Interrupted};
use std::path::Path;
use std::time::Instant;

/// After SIGINT or SIGTERM.
pub(crate) const INTERRUPTED: Interrupted =
    Interrupted("interrupted; what has been done is kept, and the same command goes on from there");

/// Runs a cell in this process, or returns its result from the store. `traces` is the folder with the trace that it samples from.
pub(crate) fn run(cell: &Experiment, store: Option<&Store>, traces: Option<&Path>) -> Result<Kept> {
    if let Some(kept) = store.and_then(|store| store.load(cell)) {
        return Ok(kept);
    }
    let began = Instant::now();
    // Before the run: if the trace changes during it, the result does not belong to the new one.
    let version = store::version(cell, traces);
    let there = traces.map(|traces| cell.with_traces(traces));
    let result = there.as_ref().unwrap_or(cell).run().map_err(usage::error)?;
    // The cost depends on the machine, the result does not.
    let cost = Cost { wall_s: began.elapsed().as_secs_f64(), peak_mib: peak_mib() };
    let kept = Kept::new(version?, cell.clone(), result.deterministic(), cost);
    if let Some(store) = store {
        store.keep(&kept)?;
    }
    Ok(kept)
}

/// 0 if the system does not report it.
fn peak_mib() -> f64 {
    memory::kib("/proc/self/status", "VmHWM:").unwrap_or(0) as f64 / 1024.0
}
