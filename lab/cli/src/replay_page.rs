//! `midflight-lab replay-page`: a replay, with its results as a page.

use crate::report;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_cli::replay::{command, summary};
use midflight_terminal::envelope::Envelope;
use midflight_terminal::files;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab replay-page --page replay.html
  midflight-lab replay-page trace.tr --executors 64 --page trace.html

What the options mean, and each number: `midflight replay --help`.

EXIT CODES
  as of `midflight replay`";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
#[group(skip)] // its name would be that of the flattened ones
pub(crate) struct Args {
    #[command(flatten)]
    replay: command::Args,
    /// Where to write the page
    #[arg(long, value_name = "FILE.html")]
    page: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    files::check_output("--page", &args.page)?;
    command::run_then(&args.replay, |plan, outcome| {
        let envelope = Envelope::new("replay", summary::measures(plan, outcome));
        files::write(&args.page, &report::page(plan, outcome, &envelope)?)
    })
}
