//! One run of `map`: a window of commands is at the switch; each that ends makes room for the next.

use super::lines::{CommandLine, within};
use super::report::{End, Report};
use anyhow::Result;
use midflight_host::{Client, Job, JobHandle, TaskError, TaskOutcome, TaskSpec};
use midflight_tasks::functions::{EXEC, ExecResult};
use midflight_terminal::progress::Progress;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// Commands in one job.
const JOB: usize = 256;

/// How long to wait for an event before thinking about why none comes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Commands that are submitted and not yet printed; those that wait for one above them hold their output in memory.
pub(super) const WINDOW: usize = 16_384;

/// What all commands of a run have in common.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub priority: u8,
    pub resources: u8,
    /// The timeout of one run of a command.
    pub timeout: Option<Duration>,
    /// Further runs of a command that failed.
    pub retries: u32,
    /// Commands that may be with the switch at once.
    pub in_flight: usize,
}

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    /// A run ended.
    Ended(Run, TaskOutcome),
    /// Ctrl-C, and how often it was pressed.
    Interrupted(u32),
}

/// One run of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Place of the command.
    index: usize,
    /// Runs before this one.
    before: u32,
}

pub(super) struct Session<'a> {
    client: &'a Client,
    settings: Settings,
    commands: &'a [CommandLine],
    events: Sender<Event>,
    /// The first command that was never submitted.
    next: usize,
    again: VecDeque<Run>,
    open: usize,
    jobs: Vec<JobHandle>,
    report: Report,
    progress: Progress,
    interrupted: bool,
    /// What runs is to be stopped.
    stopping: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        client: &'a Client,
        commands: &'a [CommandLine],
        settings: Settings,
        events: Sender<Event>,
        progress: Progress,
    ) -> Self {
        Self {
            client,
            settings,
            commands,
            events,
            next: 0,
            again: VecDeque::new(),
            open: 0,
            jobs: Vec::new(),
            report: Report::default(),
            progress,
            interrupted: false,
            stopping: false,
        }
    }

    /// Runs all; the report, and whether it was interrupted.
    pub(super) fn run(mut self, events: &Receiver<Event>) -> Result<(Report, bool)> {
        self.fill()?;
        while self.open > 0 {
            match events.recv_timeout(LOOK_EVERY) {
                Ok(Event::Ended(run, outcome)) => self.ended(run, outcome)?,
                Ok(Event::Interrupted(1)) => self.interrupt()?,
                Ok(Event::Interrupted(2)) => self.stop(),
                Ok(Event::Interrupted(_)) => break,
                // Cannot be closed: the session itself holds a sender.
                Err(_) => self.progress.wait(),
            }
            self.fill()?;
        }
        self.give_up_the_rest()?;
        self.progress.finish();
        Ok((self.report, self.interrupted))
    }

    /// Submits while there is room.
    fn fill(&mut self) -> Result<()> {
        while !self.interrupted {
            let window_end = self.report.printed() + WINDOW;
            let room = self.settings.in_flight.saturating_sub(self.open).min(JOB);
            let mut runs: Vec<Run> = Vec::new();
            while runs.len() < room {
                if let Some(run) = self.again.pop_front() {
                    runs.push(run);
                } else if self.next < self.commands.len().min(window_end) {
                    runs.push(Run { index: self.next, before: 0 });
                    self.next += 1;
                } else {
                    break;
                }
            }
            if runs.is_empty() {
                return Ok(());
            }
            self.submit(runs)?;
        }
        Ok(())
    }

    fn submit(&mut self, runs: Vec<Run>) -> Result<()> {
        let job: Job = runs.iter().map(|run| self.task(&self.commands[run.index])).collect();
        self.open += runs.len();
        let events = self.events.clone();
        let handle = self.client.submit_to(job, move |place, outcome| {
            // After a third Ctrl-C the receiver is gone.
            let _ = events.send(Event::Ended(runs[place], outcome));
        })?;
        self.jobs.retain(|job| job.open() > 0);
        self.jobs.push(handle);
        Ok(())
    }

    fn task(&self, command: &CommandLine) -> TaskSpec {
        let text = self.settings.timeout.map_or_else(|| command.text.clone(), |limit| within(&command.text, limit));
        let (priority, resources) = (self.settings.priority, self.settings.resources);
        TaskSpec { priority, resources, ..TaskSpec::new(EXEC, text) }
    }

    fn ended(&mut self, run: Run, outcome: TaskOutcome) -> Result<()> {
        self.open -= 1;
        let end = self.end_of(outcome);
        let failed = !matches!(&end, End::Ran(result) if result.code == 0) && end != End::Cancelled;
        if failed && run.before < self.settings.retries && !self.interrupted {
            self.again.push_back(Run { before: run.before + 1, ..run });
            return Ok(());
        }
        self.finish(run.index, end)
    }

    fn finish(&mut self, index: usize, end: End) -> Result<()> {
        self.progress.advance();
        self.report.end(index, self.commands[index].number, end, &self.progress)
    }

    fn end_of(&self, outcome: TaskOutcome) -> End {
        let value = match outcome {
            Ok(result) => result.value,
            Err(TaskError::Cancelled) if self.stopping => return End::Lost("stopped".into()),
            Err(TaskError::Cancelled) => return End::Cancelled,
            Err(error) => return End::Lost(error.to_string()),
        };
        let Some(mut result) = ExecResult::decode(&value) else {
            return End::Lost("the executor's `exec` returned something else than a command's result".into());
        };
        if let (124, Some(timeout)) = (result.code, self.settings.timeout) {
            let note = format!("midflight: timed out after {}\n", humantime::format_duration(timeout));
            result.stderr.extend_from_slice(note.as_bytes());
        }
        End::Ran(result)
    }

    /// Cancels commands that have not started; waits for those that run.
    fn interrupt(&mut self) -> Result<()> {
        self.interrupted = true;
        for job in &self.jobs {
            job.cancel_queued();
        }
        let running = "what runs may finish; Ctrl-C again stops it";
        self.progress.suspend(|| eprintln!("midflight: interrupted: cancelling what has not started, {running}"));
        let again: Vec<_> = self.again.drain(..).map(|run| run.index).collect();
        let rest = self.next..self.commands.len();
        self.next = self.commands.len();
        again.into_iter().chain(rest).try_for_each(|index| self.finish(index, End::Cancelled))
    }

    /// Has what runs stopped, and waits for it.
    fn stop(&mut self) {
        self.stopping = true;
        for job in &self.jobs {
            job.cancel();
        }
        self.progress.suspend(|| eprintln!("midflight: stopping what runs; Ctrl-C again ends at once"));
    }

    /// After a third Ctrl-C: what is still open is not waited for.
    fn give_up_the_rest(&mut self) -> Result<()> {
        let missing: Vec<_> = (self.report.printed()..self.commands.len()).filter(|&i| !self.report.has(i)).collect();
        missing.into_iter().try_for_each(|index| self.finish(index, End::Lost("not waited for".into())))
    }
}
