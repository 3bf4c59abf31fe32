use super::midflight::CellEngine;
use super::sampled::facts;
use super::{Cell, CellResult, Scheme, midflight, passes, sparrow};
use crate::calibration::{SPARROW_CPP, SPARROW_JAVA};
use crate::schemes::{bolt, spark};
use midflight_workload::{ReadError, ScaleError};
use std::path::PathBuf;

/// Why a cell cannot run.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// A field is invalid.
    #[error("{0}")]
    Bad(String),
    /// Its trace cannot be read.
    #[error("load.file {}: {source}", file.display())]
    Trace {
        /// The trace's file.
        file: PathBuf,
        /// The cause.
        source: ReadError,
    },
    /// Its trace cannot be scaled.
    #[error("load: {0}")]
    Scale(ScaleError),
    /// The scheme does not support this load.
    #[error("scheme {scheme} does not run the load {load}")]
    Unfit {
        /// Name of the scheme.
        scheme: &'static str,
        /// Name of the load.
        load: &'static str,
    },
}

/// Runs a cell to its end.
///
/// # Errors
/// If the cell is invalid, or its trace cannot be read.
pub fn run(cell: &Cell) -> Result<CellResult, CellError> {
    cell.check()?;
    let began = std::time::Instant::now();
    let mut result = match &cell.scheme {
        Scheme::Midflight => midflight::run(cell, CellEngine::Soft)?,
        Scheme::MidflightServer => midflight::run(cell, CellEngine::Server)?,
        Scheme::MidflightKernel(linux) => midflight::run(cell, CellEngine::Kernel(*linux))?,
        Scheme::MidflightAsic(pipelined) => midflight::run(cell, CellEngine::Asic(*pipelined))?,
        Scheme::SparrowJava(sampling) => sparrow::run(cell, sampling, &SPARROW_JAVA)?,
        Scheme::SparrowCpp(sampling) => sparrow::run(cell, sampling, &SPARROW_CPP)?,
        Scheme::Bolt(polling) => bolt::run(cell, polling, false)?,
        Scheme::BoltServer(polling) => bolt::run(cell, polling, true)?,
        Scheme::Spark => spark::run(cell)?,
        Scheme::AsicPasses { program } => passes::run(cell, *program)?,
    };
    result.counters.extend(facts(cell)?);
    result.wall_ms = began.elapsed().as_secs_f64() * 1e3;
    Ok(result)
}
