//! `midflight-lab load`: a load on a running store or cache.

use crate::{cache, store};
use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// What the command line says.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    of: Of,
}

#[derive(Subcommand)]
enum Of {
    /// Read and write a store as fast as it answers
    #[command(after_help = store::load::EXAMPLES)]
    Store(store::load::Args),
    /// Get keys of a cache at a fixed rate
    #[command(after_help = cache::load::EXAMPLES)]
    Cache(cache::load::Args),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.of {
        Of::Store(args) => store::load::run(args),
        Of::Cache(args) => cache::load::run(args),
    }
}
