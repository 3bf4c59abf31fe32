//! `midflight map`: command lines in parallel, like GNU parallel.

mod captured;
mod detached;
mod dry_run;
mod halt;
mod input;
mod joblog;
mod open_files;
mod outputs;
pub(crate) mod parallel;
mod records;
mod report;
mod results;
mod session;
mod sources;
mod spill;
mod tag;
mod template;
mod waiting;
mod window;

use super::job::detach::DetachOptions;
use crate::embedded::Embedded;
use crate::options;
use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use dry_run::DryRun;
use halt::Halt;
use input::Input;
use joblog::{Done, Joblog, Resume};
use midflight_host::{Client, raise_open_files};
use midflight_tasks::functions::{COMMAND_LINE_MAX, ExecRequest};
use midflight_terminal::machine::cores;
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::switches::connect_with;
use midflight_terminal::{stdout, usage};
use open_files::OpenFiles;
use outputs::Outputs;
use records::Ends;
use regex::bytes::Regex;
use results::Results;
use session::{Event, Outcome, Session, Settings, WINDOW};
use sources::{Entries, Format, Source};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use template::Template;
use waiting::Waiting;
use window::{AHEAD, Window};

/// Largest count of failures in the exit code, as in GNU parallel.
const MOST_FAILED: u64 = 101;
const COMMAND_SHOWN: usize = 120;
const JOBS_MAX: u32 = 4096;

/// The docs section that maps GNU parallel's options.
pub(crate) const FROM_PARALLEL: &str = "docs/map.md, From GNU parallel";

/// Larger results, in bytes, are fetched into a file.
const VALUE_MAX: u32 = 512 << 10;

const EXAMPLES: &str = "\
EXAMPLES
  midflight map < commands.txt                     each line is a command line of /bin/sh
  ls *.png | midflight map -- convert {} {.}.jpg   a template; {} is the line, quoted
  ls *.log | midflight map gzip -9                 without {} the line comes last
  midflight map -- 'echo {1} {2}' ::: a b ::: 1 2  each value of one with each of the other
  midflight map -f jobs --retries 2 --timeout 30s  30 s a run; what fails runs twice more
  midflight map -f jobs --joblog log --resume      what the log does not list yet
  midflight map --detach -f jobs                   outlives this terminal: see midflight job --help
  midflight map -f jobs --switch switch.example:7700 --config midflight.toml --resources gpu,ssd

  {} the argument   {.} without extension   {/} its last part   {//} its directory
  {/.} last part without extension   {#} number of the command   {%} number of its slot
  {2} {2.} {2/} {2//} {2/.} of the second source or column, {-1} of the last one
  ::: VALUES   :::: FILES   each a source of arguments; with + taken beside the one before it

Without --switch, a switch and an executor with --jobs slots are started in this process. Commands
start while the input is still being read. Each command's stdout and stderr come at once when it and
all commands above it have ended, in the order of the input; --unordered: when it has ended. What
has to wait is kept in a temporary file beyond 16 MiB. Commands may run more than once when an
executor dies. The time in the queue does not count for --timeout; but if nobody takes a command in
that time (at least 5 s), map gives up.

Ctrl-C takes out the commands that have not started, waits for those that run, and says which lines
were cancelled; a second Ctrl-C has those that run killed, a third one ends at once.

EXIT CODES
  0        all commands exited with 0
  1 - 100  that many commands failed; 101: more than 100
  130      interrupted
  141      nobody reads stdout any more, as behind | head
  1, 2     also: could not run at all (1), wrong usage (2); stderr then has a line \"error: …\"
  with --halt WHEN,fail=N: that of the command that failed last";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Command with {} for the line; without, each line is a command. Then ::: VALUES or :::: FILES
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    words: Vec<OsString>,
    /// Read lines from here instead of stdin
    #[arg(long, short, visible_short_alias = 'a', visible_alias = "arg-file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Lines end with a NUL byte, as of find -print0
    #[arg(long, short = '0')]
    null: bool,
    /// Lines end with CR LF, as those of Windows; without, a CR belongs to its line
    #[arg(long, conflicts_with = "null")]
    crlf: bool,
    /// Split lines at this regular expression: {1}, {2}, … are the columns
    #[arg(long, short = 'C', value_name = "REGEX")]
    colsep: Option<Regex>,
    /// Print the commands, and run none
    #[arg(long)]
    dry_run: bool,
    /// Switches to use, the preferred one first: HOST:PORT[,HOST:PORT]
    #[arg(long, value_name = "HOST:PORT")]
    switch: Option<String>,
    /// Commands at one time; default: cores of this machine, or (with --switch) all
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    jobs: Option<u32>,
    #[command(flatten)]
    tasks: options::TaskOptions,
    #[command(flatten)]
    config: options::ConfigFile,
    /// Run the commands in this directory of the executor; "." is the current one
    #[arg(long, visible_alias = "wd", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Give the commands this variable of the environment; once for each, or with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    env: Vec<String>,
    /// When to stop early: soon,fail=1 lets what runs finish, now,fail=1 does not; also success=N, done=N
    #[arg(long, value_name = "WHEN,WHY=N", default_value = "never", value_parser = Halt::parse)]
    halt: Halt,
    #[command(flatten)]
    detach: DetachOptions,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    log: LogOptions,
}

/// Where outputs go.
#[derive(ClapArgs)]
struct OutputOptions {
    /// Output when a command has ended, not in the order of the input
    #[arg(long)]
    unordered: bool,
    /// Output in the order of the input: the default
    #[arg(long, short, conflicts_with = "unordered")]
    keep_order: bool,
    /// Each line of output begins with the arguments and a tab
    #[arg(long)]
    tag: bool,
    /// Write outputs also to DIR/1/ARGUMENT/2/ARGUMENT/stdout, stderr and seq
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Where the temporary file of outputs that have to wait is; default: $TMPDIR or /tmp
    #[arg(long, value_name = "DIR")]
    tmpdir: Option<PathBuf>,
    #[command(flatten)]
    disk: options::OutputDisk,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

impl OutputOptions {
    /// Checked at the start, not when the first output has to wait.
    fn directory(&self) -> Result<PathBuf> {
        if let Some(directory) = self.tmpdir.as_deref().filter(|directory| !directory.is_dir()) {
            let path = directory.display();
            return Err(usage::error(format!("--tmpdir {path} is no directory: make it, or name another one")));
        }
        Ok(self.tmpdir.clone().unwrap_or_else(std::env::temp_dir))
    }
}

/// What is remembered from run to run.
#[derive(ClapArgs)]
struct LogOptions {
    /// Write a line for each command whose output has been written: GNU parallel's columns
    #[arg(long, value_name = "FILE")]
    joblog: Option<PathBuf>,
    /// Leave out the commands of the joblog, and add to it
    #[arg(long, requires = "joblog")]
    resume: bool,
    /// The same, but run those again that failed
    #[arg(long, requires = "joblog")]
    resume_failed: bool,
}

/// Ignores a write error: no reason to stop.
fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "midflight: {words}");
}

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    ensure!(
        !stdout::was_closed(),
        usage::error("stdout is closed, so what commands write would be lost: redirect it, to /dev/null for example")
    );
    let resources = args.config.mask(&args.tasks.resources)?;
    let switches = args.switch.as_deref().map(usage::resolve_all).transpose()?;
    let (words, mut groups) = sources::split(&args.words)?;
    if args.file.is_some() || groups.is_empty() {
        groups.insert(0, vec![Source::File(args.file.clone().unwrap_or_else(|| "-".into()))]);
    }
    let template = Template::parse(&words)?;
    let ends = Ends { separator: if args.null { 0 } else { b'\n' }, crlf: args.crlf };
    let entries = Entries::open(&groups, Format { ends, columns: args.colsep.clone() })?;
    if let Some(width) = entries.width() {
        template.check(width)?;
    }
    if args.detach.detach {
        detached::check(&args, &template)?;
    }
    ensure!(
        !template.has_slot() || switches.is_none() || args.jobs.is_some(),
        usage::error("{%} needs --jobs with --switch: slots are counted from 1 to that")
    );
    let request = args.request()?;
    let noun = if entries.is_lines() { "line" } else { "command" };
    if args.dry_run {
        return DryRun { template, request, done: args.log.read()?, noun }.run(entries);
    }
    if args.detach.detach {
        return detached::submit(&args, entries, &template, request, resources, switches);
    }
    if switches.is_none() {
        raise_open_files(args.jobs.unwrap_or_else(cores));
    }
    let open_files = OpenFiles::limit();
    if switches.is_none() {
        args.jobs = Some(open_files.jobs(args.jobs)?);
    }
    let (joblog, done) = args.log.open()?;
    let directory = args.output.directory()?;
    let embedded = match &switches {
        Some(_) => None,
        None => {
            Some(Embedded::quiet(args.jobs.unwrap_or_else(cores), args.output.disk.blobs(Some(directory.clone())))?)
        }
    };
    let switches = switches.unwrap_or_else(|| embedded.iter().map(Embedded::address).collect());
    // Large results go to files, to save memory.
    let builder = Client::builder().switches(switches).value_max(VALUE_MAX).files(true);
    let client = connect_with(builder.blobs(args.output.disk.blobs(Some(directory.clone()))))?;
    let (sender, events) = mpsc::channel();
    let signals = sender.clone();
    Shutdown::new()?.each_step(move |step| {
        // An error means that the session is over.
        let _ = signals.send(Event::Interrupted(step));
    });
    let is_hidden = args.output.quiet || !std::io::stderr().is_terminal();
    let progress = Arc::new(Progress::counted(None, "commands", "{wide_msg}").hidden(is_hidden));
    let waiting = Waiting::new(&args.tasks.resources, args.tasks.timeout, embedded.is_some());
    let in_flight = args.in_flight(embedded.is_some(), template.has_slot()).min(open_files.file_share());
    let settings = Settings {
        request,
        priority: args.tasks.priority,
        resources,
        prefer: args.tasks.preference()?,
        retries: args.tasks.retries,
        window: Window::new(in_flight, args.jobs.unwrap_or_else(cores) as usize, embedded.is_some()),
        template,
        is_tagged: args.output.tag,
        halt: args.halt,
        results: args.output.results.as_deref().map(Results::new),
        is_logged: joblog.is_some(),
        done,
        noun,
    };
    let outputs = outputs::Settings {
        is_ordered: !args.output.unordered,
        files_max: open_files.file_share(),
        joblog,
        progress: Arc::clone(&progress),
        events: sender.clone(),
    };
    let outputs = Outputs::start(&directory, outputs)?;
    let input = Input::read(entries, sender.clone())?;
    let session = Session::new(&client, settings, input, outputs, waiting, sender, Arc::clone(&progress));
    let outcome = session.run(&events);
    progress.clear();
    end(outcome?)
}

fn end(outcome: Outcome) -> Result<ExitCode> {
    if let Some(summary) = outcome.summary {
        say(&summary);
    }
    outcome.result?;
    let failed = u8::try_from(outcome.failed.min(MOST_FAILED)).unwrap_or(u8::MAX);
    Ok(ExitCode::from(if outcome.interrupted { usage::INTERRUPTED } else { outcome.code.unwrap_or(failed) }))
}

impl Args {
    fn request(&self) -> Result<ExecRequest> {
        let request = ExecRequest {
            directory: self.workdir.as_deref().map(encode_workdir).transpose()?,
            environment: variables(&self.env)?,
            timeout: self.tasks.timeout,
            ..ExecRequest::default()
        };
        request.check().map_err(usage::error)?;
        Ok(request)
    }

    /// Most commands in flight. With slot numbers it is the number of slots: one more command would share a slot's number, and could start
    /// before its predecessor makes the run halt.
    fn in_flight(&self, is_embedded: bool, has_slot: bool) -> usize {
        let jobs = self.jobs.unwrap_or_else(cores) as usize;
        match (is_embedded, self.jobs) {
            _ if has_slot => jobs,
            (true, _) if self.halt.is_possible() => jobs,
            (true, _) => AHEAD + 4 * jobs,
            (false, Some(_)) => jobs,
            (false, None) => WINDOW,
        }
    }
}

fn jobs(text: &str) -> Result<u32, String> {
    let wrong = || {
        let cores = cores();
        format!("write a number from 1 to {JOBS_MAX}, no percentage; this machine has {cores} cores ({FROM_PARALLEL})")
    };
    text.parse().ok().filter(|jobs| (1..=JOBS_MAX).contains(jobs)).ok_or_else(wrong)
}

pub(super) fn variables(names: &[String]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let variable = |name: &String| match std::env::var_os(name) {
        Some(value) => Ok((name.as_bytes().to_vec(), value.into_vec())),
        None => Err(usage::error(format!("--env {name}: there is no such variable; set it, or leave it out"))),
    };
    names.iter().map(variable).collect()
}

/// The path as bytes; `.` becomes the current directory.
pub(super) fn encode_workdir(path: &Path) -> Result<Vec<u8>> {
    let path = if path == Path::new(".") {
        std::env::current_dir().context("cannot find the current directory")?
    } else {
        path.to_owned()
    };
    Ok(path.as_os_str().as_bytes().to_vec())
}

impl LogOptions {
    fn resume(&self) -> Option<Resume> {
        match (self.resume_failed, self.resume) {
            (true, _) => Some(Resume::Succeeded),
            (_, true) => Some(Resume::All),
            _ => None,
        }
    }

    /// Opens the joblog for writing, and reads what it lists.
    fn open(&self) -> Result<(Option<Joblog>, Done)> {
        match (&self.joblog, self.resume()) {
            (None, _) => Ok((None, Done::default())),
            (Some(path), None) => Ok((Some(Joblog::create(path)?), Done::default())),
            (Some(path), Some(resume)) => Joblog::resume(path, resume).map(|(log, done)| (Some(log), done)),
        }
    }

    /// Leaves the joblog unchanged.
    fn read(&self) -> Result<Done> {
        match (&self.joblog, self.resume()) {
            (Some(path), Some(resume)) => Done::open(path, resume),
            _ => Ok(Done::default()),
        }
    }
}
