//! `midflight map`: command lines in parallel, like GNU parallel.

mod lines;
mod report;
mod session;

use crate::embedded::Embedded;
use crate::options;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_terminal::machine::cores;
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::switches::connect;
use midflight_terminal::usage;
use session::{Event, Session, Settings, WINDOW};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

/// The most that the exit code counts, as in GNU parallel.
const MOST_FAILED: usize = 101;

const EXAMPLES: &str = "\
EXAMPLES
  midflight map < commands.txt                     each line is a command line of /bin/sh
  ls *.png | midflight map -- convert {} {}.jpg    a template; {} is the line, quoted
  ls *.log | midflight map gzip -9                 without {} the line comes last
  midflight map -f jobs --retries 2 --timeout 30s  30 s a run; what fails runs twice more
  midflight map -f jobs --switch switch.example:7700 --config midflight.toml --resources gpu,ssd

Without --switch, a switch and an executor with --jobs slots are started in this process. Each
command's stdout and stderr come at once when it and all commands above it have ended, in the order
of the input. Commands may run more than once when an executor dies. --timeout uses timeout(1) on
the executors; the time in the queue does not count.

Ctrl-C takes out the commands that have not started, waits for those that run, and says which lines
were cancelled; a second Ctrl-C has those that run killed, a third one ends at once.

EXIT CODES
  0        all commands exited with 0
  1 - 100  that many commands failed; 101: more than 100
  130      interrupted
  1, 2     also: could not run at all (1), wrong usage (2); stderr then has a line \"error: …\"";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Command with {} for the line; without, each line is a command
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    template: Vec<String>,
    /// Read lines from here instead of stdin
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Switches to use, the preferred one first: HOST:PORT[,HOST:PORT]
    #[arg(long, value_name = "HOST:PORT")]
    switch: Option<String>,
    /// Commands at one time; default: cores of this machine, or (with --switch) all
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    jobs: Option<u32>,
    #[command(flatten)]
    tasks: options::TaskOptions,
    #[command(flatten)]
    config: options::ConfigFile,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let resources = args.config.mask(&args.tasks.resources)?;
    let switches = args.switch.as_deref().map(usage::resolve_all).transpose()?;
    let commands = lines::commands(&lines::read(args.file.as_deref())?, &args.template)?;
    if commands.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let embedded = match &switches {
        Some(_) => None,
        None => Some(Embedded::quiet(args.jobs.unwrap_or_else(cores))?),
    };
    let client = connect(switches.unwrap_or_else(|| embedded.iter().map(Embedded::address).collect()))?;
    let (sender, events) = mpsc::channel();
    let signals = sender.clone();
    Shutdown::new()?.each(move |count| {
        // An error means that the session is over.
        let _ = signals.send(Event::Interrupted(count));
    });
    let settings = Settings {
        priority: args.tasks.priority,
        resources,
        timeout: args.tasks.timeout,
        retries: args.tasks.retries,
        in_flight: args.jobs.filter(|_| embedded.is_none()).map_or(WINDOW, |jobs| jobs as usize),
    };
    let progress = Progress::tasks(commands.len() as u64, args.quiet);
    let (report, interrupted) = Session::new(&client, &commands, settings, sender, progress).run(&events)?;
    if let Some(summary) = report.summary(interrupted) {
        eprintln!("{summary}");
    }
    let failed = u8::try_from(report.not_ok().min(MOST_FAILED)).unwrap_or(u8::MAX);
    Ok(ExitCode::from(if interrupted { usage::INTERRUPTED } else { failed }))
}
