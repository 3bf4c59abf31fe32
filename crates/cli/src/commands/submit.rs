//! `midflight submit`: one function, called many times.

use super::job::detach::{self, Array, DetachOptions, Items};
use super::map::{encode_workdir, variables};
use crate::ends::{Ends, SIGNAL_POLL_INTERVAL, interrupt_count};
use crate::options;
use crate::silence::Silence;
use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_PORT;
use midflight_host::{Client, Completions, Error, Job, TaskError, TaskOutcome, TaskResult};
use midflight_jobs::model::{Indices, JobSpec};
use midflight_tasks::functions::{EXEC, ExecResult, SLEEP, SPIN};
use midflight_terminal::columns::plain;
use midflight_terminal::envelope::Measure;
use midflight_terminal::progress::Progress;
use midflight_terminal::switches::connect;
use midflight_terminal::usage;
use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
EXAMPLES
  midflight submit noop -n 100000                  how fast is it?
  midflight submit sleep 10ms -n 1000 --priority 1
  midflight submit exec 'uname -a'                 a command line; its output is printed
  midflight submit thumbnail cat.png               a function that a program registered
  midflight submit scan part-7 --prefer node3 --patience 20ms     where its data is, if it can
  midflight submit noop -n 100000 --json
  midflight submit --detach exec 'make test'       outlives this terminal: see midflight job --help
  midflight submit --detach exec 'sh step $MIDFLIGHT_INDEX' --array 1-1000 --after 1

Results that are not empty are printed as they come, each on a line; the summary goes to stderr.
sleep and spin take a duration, other functions get the bytes of ARGUMENT. --timeout counts from
the submission, with the time in the queue, and for each of the --retries anew; what runs then is
stopped. Ctrl-C takes out what has not started and waits for what runs; a second one stops that,
too: executors kill commands, and tell functions to end. A third one ends at once.

EXIT CODES
  0 all succeeded, 1 some did not, or failed, 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Function to call: noop, sleep, spin, exec or one that executors registered
    function: String,
    /// Its argument
    #[arg(default_value = "")]
    argument: OsString,
    /// How many times
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    count: u32,
    /// Switches to use, the preferred one first
    #[arg(long, value_name = "HOST:PORT,..", default_value_t = format!("127.0.0.1:{DEFAULT_PORT}"))]
    switch: String,
    #[command(flatten)]
    tasks: options::TaskOptions,
    #[command(flatten)]
    config: options::ConfigFile,
    #[command(flatten)]
    detach: DetachOptions,
    /// With --detach: one command for each index, such as 1-1000, 0-9:3 or 1,5; it has $MIDFLIGHT_INDEX
    #[arg(long, value_name = "INDICES", value_parser = Array::parse, requires = "detach", conflicts_with = "count")]
    array: Option<Array>,
    /// With --detach: run command lines in this directory of the executor; "." is the current one
    #[arg(long, visible_alias = "wd", value_name = "DIR", requires = "detach")]
    workdir: Option<PathBuf>,
    /// With --detach: give command lines this variable of the environment; once for each, or with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "detach")]
    env: Vec<String>,
    /// No results on stdout, but one JSON object with the summary
    #[arg(long, conflicts_with = "detach")]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let resources = args.config.mask(&args.tasks.resources)?;
    let argument = argument(&args.function, &args.argument)?;
    if args.detach.detach {
        return detached(args, argument, resources);
    }
    let mut job = Job::builder(&args.function).priority(args.tasks.priority).resources(resources);
    // Without these flags, the default applies when no executor could fetch the argument.
    if args.tasks.retries > 0 || args.tasks.timeout.is_some() {
        job = job.retries(args.tasks.retries);
    }
    if let Some(timeout) = args.tasks.timeout {
        job = job.timeout(timeout);
    }
    let mut job = job.repeat(args.count as usize, argument).build();
    let prefer = args.tasks.preference()?;
    job.tasks.iter_mut().for_each(|task| task.prefer = prefer);
    let client = connect(usage::resolve_all(&args.switch)?)?;
    // From the first task on, Ctrl-C cancels the job.
    let interrupts = interrupt_count()?;
    let started = Instant::now();
    let completions = client.submit(job)?.completions();
    let mut tally = Tally::new(args)?;
    collect(&client, completions, &interrupts, &mut tally, args.count)?;
    tally.finish(started.elapsed(), args.json)
}

fn detached(args: &Args, argument: Vec<u8>, resources: u8) -> Result<ExitCode> {
    let is_command = args.function == EXEC;
    ensure!(
        is_command || (args.tasks.timeout.is_none() && args.workdir.is_none() && args.env.is_empty()),
        usage::error("with --detach, --timeout, --workdir and --env are for exec: call the function without them")
    );
    let indices = args.array.as_ref().map(|array| array.0.clone());
    let spec = JobSpec {
        name: args.detach.name_or(&if is_command {
            args.argument.to_string_lossy()
        } else {
            args.function.as_str().into()
        }),
        function: args.function.clone(),
        argument,
        indices: indices.unwrap_or_else(|| vec![Indices { first: 1, last: args.count, step: 1 }]),
        has_items: false,
        directory: args.workdir.as_deref().map(encode_workdir).transpose()?,
        environment: variables(&args.env)?,
        timeout: args.tasks.timeout,
        retries: args.tasks.retries,
        priority: args.tasks.priority,
        resources,
        prefer: args.tasks.preference()?.map(|it| (it.place, it.patience_ms)),
        after: args.detach.dependencies()?,
    };
    detach::submit(spec, Items::default(), usage::resolve_all(&args.switch)?)
}

/// The argument of a built-in function, as it is sent.
///
/// # Errors
/// Of usage, if it should be a duration.
pub fn argument(function: &str, argument: &OsStr) -> Result<Vec<u8>> {
    if function != SLEEP && function != SPIN {
        return Ok(argument.as_bytes().to_vec());
    }
    let text = argument.to_string_lossy();
    let duration = usage::duration(&text);
    let duration =
        duration.map_err(|error| usage::error(format!("{function} wants a duration, not `{text}`: {error}")))?;
    let nanos = u64::try_from(duration.as_nanos()).context("the duration is too long")?;
    Ok(nanos.to_be_bytes().to_vec())
}

/// Collects all outcomes, or stops at the third Ctrl-C.
fn collect(
    client: &Client,
    mut completions: Completions,
    interrupts: &AtomicU32,
    tally: &mut Tally,
    count: u32,
) -> Result<()> {
    let mut silence = Silence::default();
    let progress = Progress::tasks(u64::from(count), false);
    while completions.left() > 0 {
        if let Some((_, outcome)) = completions.next_timeout(SIGNAL_POLL_INTERVAL) {
            if !matches!(outcome, Err(Error::Task(TaskError::Cancelled))) {
                progress.advance();
            }
            tally.add(outcome, &progress)?;
        } else {
            match silence.look(client)? {
                Some(words) => progress.suspend(|| eprintln!("midflight: {words}")),
                None => progress.wait(),
            }
        }
        let (asked, heard) = (interrupts.load(Ordering::Relaxed), tally.interrupted);
        match asked {
            _ if asked == heard => {}
            1 => {
                completions.job().cancel_queued();
                progress.suspend(|| eprintln!("cancelling what has not started; Ctrl-C again stops what runs"));
            }
            2 => {
                completions.job().cancel();
                progress.suspend(|| eprintln!("stopping what runs; Ctrl-C again ends at once"));
            }
            _ => break,
        }
        tally.interrupted = asked;
    }
    tally.ends.lost += completions.left() as u64;
    progress.finish();
    Ok(())
}

struct Tally {
    ends: Ends,
    interrupted: u32,
    /// Decodes results of `exec`.
    exec: bool,
    silent: bool,
    out: BufWriter<std::io::Stdout>,
}

impl Tally {
    fn new(args: &Args) -> Result<Self> {
        Ok(Self {
            ends: Ends::new(Some(0))?,
            interrupted: 0,
            exec: args.function == EXEC,
            // sleep and spin return their start time for `replay`; it is not printed here.
            silent: args.json || [SLEEP, SPIN].contains(&args.function.as_str()),
            out: BufWriter::new(std::io::stdout()),
        })
    }

    fn add(&mut self, outcome: TaskOutcome, progress: &Progress) -> Result<()> {
        match outcome {
            Ok(result) => {
                let ns = result.timing.completed.saturating_sub(result.timing.submitted);
                self.ends.latency_us.saturating_record(ns / 1_000);
                progress.aside(|| self.add_result(&result)).context("cannot write the results")?;
            }
            Err(Error::Task(TaskError::Cancelled)) => self.ends.cancelled = self.ends.cancelled.map(|tasks| tasks + 1),
            Err(error) => {
                if self.ends.failed + self.ends.lost < 10 {
                    progress.suspend(|| eprintln!("a task failed: {}", plain(&error.to_string())));
                }
                let failed = matches!(error, Error::Task(TaskError::Failed { .. } | TaskError::Unknown));
                *(if failed { &mut self.ends.failed } else { &mut self.ends.lost }) += 1;
            }
        }
        Ok(())
    }

    fn add_result(&mut self, result: &TaskResult) -> std::io::Result<()> {
        if !self.exec {
            self.ends.ok += 1;
            return if self.silent || result.value.is_empty() { Ok(()) } else { self.line(&result.value) };
        }
        let Some(output) = ExecResult::decode(&result.value) else {
            self.ends.failed += 1;
            return Ok(());
        };
        *(if output.code == 0 { &mut self.ends.ok } else { &mut self.ends.failed }) += 1;
        if self.silent {
            return Ok(());
        }
        std::io::stderr().write_all(&output.stderr)?;
        self.out.write_all(&output.stdout)
    }

    fn line(&mut self, value: &[u8]) -> std::io::Result<()> {
        self.out.write_all(value)?;
        self.out.write_all(b"\n")
    }

    fn finish(mut self, elapsed: Duration, json: bool) -> Result<ExitCode> {
        self.out.flush().context("cannot write the results")?;
        let max = Measure::count("submit.latency_max_us", self.ends.latency_us.max(), "us");
        self.ends.print("submit", "result", elapsed, json.then_some(max))?;
        let code = if self.interrupted > 0 { usage::INTERRUPTED } else { u8::from(!self.ends.all_ok()) };
        Ok(ExitCode::from(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_and_spin_get_nanoseconds_others_the_bytes() {
        assert_eq!(argument("sleep", "2us".as_ref()).unwrap(), 2_000u64.to_be_bytes());
        assert_eq!(argument("greet", "2us".as_ref()).unwrap(), b"2us");
        let error = argument("spin", "long".as_ref()).unwrap_err();
        assert!(
            error.is::<usage::UsageError>() && error.to_string().contains("wants a duration, not `long`"),
            "{error}"
        );
    }
}
