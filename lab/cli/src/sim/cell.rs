//! `midflight-lab sim cell`: runs one cell. Figures and sweeps run each of their cells this way.

use super::{SMALLER, traces};
use crate::cells::{self, Store};
use crate::memory;
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_control::file;
use midflight_files::{BoundedReader, MIB};
use midflight_papers::experiment::Experiment;
use midflight_terminal::{stdout, usage};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// Longest description of a cell, in bytes.
const CELL_MAX: u64 = 16 * MIB;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab sim figure bolt-13a --list | head -1 > cell.json
  midflight-lab sim cell cell.json
  midflight-lab sim cell --store ./cells < cell.json

A cell is one run: a scheme, a cluster, a load, a seed (docs/figures.md lists the keys). The result
is one JSON object on stdout: \"cell\", \"result\" (the same on every machine), \"cost\" (wall time
and memory) and \"version\" (of the simulator's sources).

EXIT CODES
  0 done, 1 failed, 2 a cell that makes no sense, 130 interrupted";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The cell as JSON; default: stdin
    file: Option<PathBuf>,
    /// Keep the result in this directory, and take it from there if it was run before
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The folder with the traces that cells sample from; default: MIDFLIGHT_TRACES
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Start even if memory seems too small
    #[arg(long)]
    force: bool,
    /// The cell is one line of stdin; end when stdin is closed
    #[arg(long, conflicts_with = "file")]
    with_parent: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (source, text) = read(args)?;
    let cell = Experiment::read(&text).map_err(|error| usage::error(format!("{source}: {error}")))?;
    cell.check().map_err(|error| usage::error(format!("{source}: {error}")))?;
    if !args.force {
        memory::check(cell.memory_bytes(), SMALLER).map_err(|error| usage::error(format!("{source}: {error}")))?;
    }
    if args.with_parent {
        end_with_stdin();
    }
    let traces = traces::folder(args.traces.as_deref())?;
    let store = args.store.as_deref().map(|store| Store::open(store, traces.as_deref())).transpose()?;
    let kept = cells::run(&cell, store.as_ref(), traces.as_deref())?;
    stdout::print(&format!("{}\n", serde_json::to_string(&kept)?))?;
    Ok(ExitCode::SUCCESS)
}

/// The name of the source, and the cell.
fn read(args: &Args) -> Result<(String, String)> {
    let mut text = String::new();
    match &args.file {
        Some(file) => {
            text = file::read(file, "`midflight-lab sim figure NAME --list` prints some").map_err(usage::error)?;
        }
        None if args.with_parent => {
            let stdin = BoundedReader::new(std::io::stdin().lock(), CELL_MAX);
            BufReader::new(stdin).read_line(&mut text).context("cannot read stdin")?;
        }
        None => {
            let mut stdin = BoundedReader::new(std::io::stdin().lock(), CELL_MAX);
            stdin.read_to_string(&mut text).context("cannot read stdin")?;
        }
    }
    let source = args.file.as_ref().map_or_else(|| "stdin".into(), |file| file.display().to_string());
    Ok((source, text))
}

/// The parent holds the other end.
fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(usage::INTERRUPTED.into());
    });
}
