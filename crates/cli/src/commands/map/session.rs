//! One run of `map`: refills its window of commands as they end.

use super::captured::Captured;
use super::halt::Halt;
use super::input::Input;
use super::joblog::{self, Done};
use super::outputs::{Output, Outputs, Written};
use super::report::{End, Report};
use super::results::Results;
use super::say;
use super::sources::Entry;
use super::template::{Template, Values};
use super::waiting::Waiting;
use super::window::Window;
use anyhow::{Result, anyhow};
use midflight_host::{Client, Error, Job, JobHandle, TaskError, TaskOutcome, TaskSpec};
use midflight_tasks::functions::{COMMAND, COMMAND_LINE_MAX, ExecRequest, OUTPUT_NOT_KEPT};
use midflight_tasks::place::Preference;
use midflight_terminal::progress::Progress;
use midflight_terminal::units::thousands;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant, SystemTime};

const JOB: usize = 256;
const IN_FLIGHT_BYTES: usize = 16 << 20;
/// Time without an event after which the session checks for progress.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After `--halt now`, time to cancel queued commands. What is open after it runs, and is stopped.
const QUEUED_WITHIN: Duration = Duration::from_millis(100);
/// After `--halt now`: do not wait longer for running commands.
const STOPPED_WITHIN: Duration = Duration::from_secs(3);
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Exit code if the reader closed stdout, as after SIGPIPE.
const UNREAD: u8 = 141;
/// Commands submitted and not yet printed.
pub(super) const WINDOW: usize = 16_384;

pub(super) struct Settings {
    pub template: Template,
    /// Without a command line.
    pub request: ExecRequest,
    pub priority: u8,
    pub resources: u8,
    pub prefer: Option<Preference>,
    pub retries: u32,
    /// Bounds the commands in flight.
    pub window: Window,
    pub is_tagged: bool,
    pub halt: Halt,
    pub results: Option<Results>,
    pub is_logged: bool,
    pub done: Done,
    /// What a number counts: "line", or "command".
    pub noun: &'static str,
}

#[derive(Debug)]
pub(super) enum Event {
    Ended(u64, TaskOutcome),
    /// Ctrl-C: a step of [`midflight_terminal::signals::Shutdown::each_step`].
    Interrupted(u32),
    Input(Vec<Entry>),
    /// The end of the input, or why it cannot be read.
    InputEnded(Result<()>),
    Room,
    /// The output cannot be written.
    Unwritten,
    Unlogged,
}

#[derive(Debug)]
struct Run {
    place: u64,
    /// From 1.
    sequence: u64,
    entry: Entry,
    /// Empty until it is submitted.
    command: Vec<u8>,
    /// Earlier runs of the same command.
    before: u32,
    /// From 1; 0 for none.
    slot: u32,
    bytes: usize,
    submitted: SystemTime,
}

/// Why nothing more is submitted.
#[derive(Debug)]
enum Stop {
    Interrupted,
    Halted(u8),
    /// The joblog cannot be written; the writer knows why.
    Unlogged,
    /// stdout is closed: drops the remaining results.
    Unwritten,
    Failed(anyhow::Error),
}

pub(super) struct Outcome {
    pub summary: Option<String>,
    pub failed: u64,
    pub interrupted: bool,
    pub code: Option<u8>,
    pub result: Result<()>,
}

pub(super) struct Session<'a> {
    client: &'a Client,
    settings: Settings,
    input: Input,
    outputs: Outputs,
    waiting: Waiting,
    events: Sender<Event>,
    /// Numbers of the next run, output place and command.
    next_run: u64,
    next_place: u64,
    sequence: u64,
    /// An earlier run has them.
    skipped: u64,
    again: VecDeque<Run>,
    open: HashMap<u64, Run>,
    open_bytes: usize,
    slots: Slots,
    jobs: Vec<JobHandle>,
    report: Report,
    progress: Arc<Progress>,
    started: Instant,
    told: Instant,
    stop: Option<Stop>,
    stop_at: Option<Instant>,
    /// Running commands were asked to stop.
    is_stopping: bool,
    /// Latest end of the wait for open commands.
    until: Option<Instant>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        client: &'a Client,
        settings: Settings,
        input: Input,
        outputs: Outputs,
        waiting: Waiting,
        events: Sender<Event>,
        progress: Arc<Progress>,
    ) -> Self {
        let report = Report::new(settings.noun);
        let now = Instant::now();
        Self {
            client,
            settings,
            input,
            outputs,
            waiting,
            events,
            next_run: 0,
            next_place: 0,
            sequence: 0,
            skipped: 0,
            again: VecDeque::new(),
            open: HashMap::new(),
            open_bytes: 0,
            slots: Slots::default(),
            jobs: Vec::new(),
            report,
            progress,
            started: now,
            told: now,
            stop: None,
            stop_at: None,
            is_stopping: false,
            until: None,
        }
    }

    pub(super) fn run(mut self, events: &Receiver<Event>) -> Result<Outcome> {
        while !self.is_over() {
            if let Ok(event) = events.recv_timeout(self.patience()) {
                self.handle(event);
                while let Ok(event) = events.try_recv() {
                    self.handle(event);
                }
            }
            self.look();
            self.fill()?;
        }
        self.give_up_the_rest();
        let written = self.outputs.finish();
        let (interrupted, code, head) = match &self.stop {
            _ if matches!(written, Ok(Written::Unread)) => (false, Some(UNREAD), ""),
            Some(Stop::Interrupted) => (true, None, "interrupted: "),
            Some(Stop::Halted(code)) => (false, Some(*code), "halted: "),
            _ => (false, None, ""),
        };
        let unread = if self.input.is_read() { "" } else { "; the rest of the input was not read" };
        let summary = match &self.stop {
            Some(Stop::Unwritten) => None,
            _ if code == Some(UNREAD) => None,
            _ => self.report.summary(head).map(|summary| summary + unread),
        };
        let result = match self.stop {
            Some(Stop::Failed(error)) => Err(error),
            _ => Ok(()),
        };
        Ok(Outcome { summary, failed: self.report.not_ok(), interrupted, code, result: written.and(result) })
    }

    fn is_over(&self) -> bool {
        let none_left = self.again.is_empty() && self.input.is_read() && self.input.pending() == 0;
        let is_late = self.until.is_some_and(|until| until <= Instant::now());
        (self.open.is_empty() && (none_left || self.stop.is_some())) || is_late
    }

    fn patience(&self) -> Duration {
        let times = [self.stop_at.filter(|_| !self.is_stopping), self.until];
        let next = times.into_iter().flatten().min();
        next.map_or(LOOK_EVERY, |next| next.saturating_duration_since(Instant::now()).min(LOOK_EVERY))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Ended(number, outcome) => self.ended(number, outcome),
            Event::Interrupted(1) if self.stop.is_none() => {
                self.stop(Stop::Interrupted);
                let running = "what runs may finish; Ctrl-C again stops it";
                self.tell_people(&format!("interrupted: cancelling what has not started, {running}"));
            }
            Event::Interrupted(..3) if !self.is_stopping => {
                self.stop_running();
                self.tell_people("stopping what runs; Ctrl-C again ends at once");
            }
            Event::Interrupted(_) => {
                self.stop = Some(Stop::Interrupted);
                self.until = Some(Instant::now());
            }
            Event::Input(batch) => self.input.add(batch),
            Event::InputEnded(Ok(())) => self.input.end(),
            Event::InputEnded(Err(error)) => {
                self.input.end();
                self.stop(Stop::Failed(error));
            }
            Event::Room => {}
            Event::Unwritten => {
                self.stop(Stop::Unwritten);
                self.until = Some(Instant::now());
            }
            Event::Unlogged => self.stop(Stop::Unlogged),
        }
    }

    fn fill(&mut self) -> Result<()> {
        let waiting = self.again.len() + self.input.pending();
        let window = self.settings.window;
        if window.size().saturating_sub(self.open.len()) < window.refill().min(waiting) {
            return Ok(());
        }
        while self.stop.is_none() {
            let window_end = self.outputs.room(WINDOW as u64);
            let mut runs: Vec<(Run, Vec<u8>)> = Vec::new();
            while runs.len() < JOB && self.open.len() + runs.len() < window.size() && self.open_bytes < IN_FLIGHT_BYTES
            {
                let Some(run) = self.next(window_end) else { break };
                runs.extend(self.prepare(run));
            }
            if runs.is_empty() {
                return Ok(());
            }
            self.submit(runs)?;
        }
        Ok(())
    }

    fn next(&mut self, window_end: u64) -> Option<Run> {
        if let Some(run) = self.again.pop_front() {
            return Some(run);
        }
        let entry = if self.next_place < window_end && self.stop.is_none() { self.input.next()? } else { return None };
        self.sequence += 1;
        let (place, sequence) = (self.next_place, self.sequence);
        self.next_place += 1;
        let (command, submitted) = (Vec::new(), SystemTime::UNIX_EPOCH);
        Some(Run { place, sequence, entry, command, before: 0, slot: 0, bytes: 0, submitted })
    }

    /// `None` if it is already done or cannot be built.
    fn prepare(&mut self, mut run: Run) -> Option<(Run, Vec<u8>)> {
        if self.settings.template.has_slot() {
            run.slot = self.slots.take();
        }
        match self.request(&run) {
            Ok((command, argument)) => {
                run.command = command;
                let Settings { template, done, .. } = &mut self.settings;
                let values = Values { arguments: &run.entry.arguments, sequence: run.sequence, slot: run.slot };
                match done.has(run.sequence, &run.command, template.in_each_slot(values)) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.skip(run);
                        return None;
                    }
                    Err(error) => {
                        self.stop(Stop::Failed(error));
                        self.skip(run);
                        return None;
                    }
                }
                run.bytes = argument.len();
                run.submitted = joblog::date();
                self.open_bytes += run.bytes;
                Some((run, argument))
            }
            Err(why) => {
                run.command = run.entry.arguments.join(&b' ');
                run.command.truncate(COMMAND_LINE_MAX); // the joblog's limit
                run.submitted = joblog::date();
                self.finish(run, End::Lost(why), Captured::default());
                None
            }
        }
    }

    fn request(&self, run: &Run) -> Result<(Vec<u8>, Vec<u8>), String> {
        run.entry.check()?;
        let values = Values { arguments: &run.entry.arguments, sequence: run.sequence, slot: run.slot };
        let command_line = self.settings.template.expand(values)?;
        let request = ExecRequest { command_line, ..self.settings.request.clone() };
        let argument = request.encode().map_err(|error| error.to_string())?;
        Ok((request.command_line, argument))
    }

    fn submit(&mut self, runs: Vec<(Run, Vec<u8>)>) -> Result<()> {
        let first = self.next_run;
        let Settings { priority, resources, prefer, .. } = self.settings;
        let mut job = Job::default();
        for (run, argument) in runs {
            let mut task = TaskSpec::new(COMMAND, argument);
            (task.priority, task.resources, task.prefer) = (priority, resources, prefer);
            // A fetched argument tells that an executor has taken the command (see `waiting`).
            task.by_reference = self.waiting.needs_fetches();
            job.tasks.push(task);
            self.open.insert(self.next_run, run);
            self.next_run += 1;
        }
        let events = self.events.clone();
        let handle = self.client.submit_to(job, move |place, outcome| {
            // After a third Ctrl-C the receiver is gone.
            let _ = events.send(Event::Ended(first + place as u64, outcome));
        })?;
        self.jobs.retain(|job| job.open() > 0);
        self.jobs.push(handle);
        Ok(())
    }

    fn ended(&mut self, number: u64, outcome: TaskOutcome) {
        let Some(mut run) = self.open.remove(&number) else { return };
        self.open_bytes -= run.bytes;
        let (end, captured) = match outcome {
            Err(Error::Task(TaskError::Cancelled)) if self.is_stopping => {
                (End::Undone("stopped".into()), Captured::default())
            }
            outcome => end_of(outcome),
        };
        self.settings.window.note(captured.in_memory());
        let failed = !end.is_ok() && end != End::Cancelled;
        if failed && run.before < self.settings.retries && self.stop.is_none() {
            self.slots.give_back(std::mem::take(&mut run.slot));
            run.before += 1;
            self.again.push_back(run);
            return;
        }
        self.finish(run, end, captured);
    }

    /// There is no retry.
    fn finish(&mut self, run: Run, mut end: End, captured: Captured) {
        self.slots.give_back(run.slot);
        let mut log = match self.settings.is_logged {
            true => joblog::line(run.sequence, &run.command, &end, captured.len(), run.submitted),
            false => Vec::new(),
        };
        let mut unwritten = None;
        if let (Some(results), End::Ran(_)) = (&self.settings.results, &end)
            && let Err(why) = results.write(&run.entry.arguments, run.sequence, &captured)
        {
            end = End::Undone(why.clone());
            log.clear();
            unwritten = Some(why);
        }
        let number = run.entry.number;
        let place = format!("{} {number}", self.settings.noun);
        let note = |end: &End| end.note(&place, &run.command, self.settings.request.timeout);
        let tag = self.settings.is_tagged.then(|| run.entry.arguments.join(&b' '));
        let output = Output { tag, captured, note: note(&end), log, number };
        if let Err(why) = self
            .outputs
            .put(run.place, output, |why| Output { note: note(&End::Undone(why.into())), ..Output::default() })
        {
            end = End::Undone(why);
        }
        self.report.add(number, &end);
        if let Some(why) = unwritten {
            let help = "make room; with --joblog, --resume then goes on";
            self.stop(Stop::Failed(anyhow!(
                "nothing new has started since the results of {place} were lost: {why}; {help}"
            )));
        }
        let halt = self.settings.halt;
        if self.stop.is_none() && halt.is_due(self.report.ok(), self.report.failed()) {
            self.stop(Stop::Halted(halt.code(&end)));
            if halt.now {
                self.stop_at = Some(Instant::now() + QUEUED_WITHIN);
                self.until = Some(Instant::now() + STOPPED_WITHIN);
            }
        }
    }

    fn skip(&mut self, run: Run) {
        self.slots.give_back(run.slot);
        self.skipped += 1;
        // Cannot fail: an empty output needs no space.
        let _ = self.outputs.put(run.place, Output::default(), |_| Output::default());
    }

    /// Cancels commands that have not started, and waits for running ones.
    fn stop(&mut self, why: Stop) {
        if self.stop.is_some() {
            return;
        }
        self.stop = Some(why);
        for job in &self.jobs {
            job.cancel_queued();
        }
        for run in std::mem::take(&mut self.again) {
            self.finish(run, End::Cancelled, Captured::default());
        }
        for entry in self.input.abandon() {
            self.report.add(entry.number, &End::Cancelled);
        }
    }

    fn stop_running(&mut self) {
        self.is_stopping = true;
        for job in &self.jobs {
            job.cancel();
        }
    }

    fn give_up_the_rest(&mut self) {
        let mut rest: Vec<Run> = self.open.drain().map(|(_, run)| run).collect();
        rest.sort_by_key(|run| run.place);
        for run in rest {
            self.finish(run, End::Undone("not waited for".into()), Captured::default());
        }
    }

    fn look(&mut self) {
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            self.progress.tell(|| self.words());
            self.look_for_executors();
        }
        if !self.is_stopping && self.stop_at.is_some_and(|at| at <= Instant::now()) {
            self.stop_running();
        }
    }

    fn look_for_executors(&mut self) {
        let open = if self.stop.is_none() { self.open.len() } else { 0 };
        match self.waiting.look(self.client, open) {
            Ok(None) => {}
            Ok(Some(question)) => self.tell_people(&question),
            Err(error) => {
                self.until = Some(Instant::now() + LOOK_EVERY);
                self.stop(Stop::Failed(error));
            }
        }
    }

    fn words(&self) -> String {
        let ended = self.report.ended();
        let elapsed = self.started.elapsed();
        let total = self.sequence - self.skipped + self.input.pending() as u64;
        let of = if self.input.is_read() { format!("/{}", thousands(total)) } else { String::new() };
        let failed = match self.report.failed() {
            0 => String::new(),
            failed => format!(", {} failed", thousands(failed)),
        };
        let rate = (ended as f64 / elapsed.as_secs_f64().max(1e-3)) as u64;
        format!("{}{of} commands{failed}, {}/s, {}s", thousands(ended), thousands(rate), elapsed.as_secs())
    }

    fn tell_people(&self, words: &str) {
        self.progress.suspend(|| say(words));
    }
}

fn end_of(outcome: TaskOutcome) -> (End, Captured) {
    let lost = |why: &str| (End::Lost(why.to_owned()), Captured::default());
    match outcome {
        Ok(result) => match Captured::of(result) {
            Some((result, captured)) => (End::Ran(result), captured),
            None => lost("the executor's answer is no command's result: it must be of this version"),
        },
        Err(Error::Task(TaskError::Cancelled)) => (End::Cancelled, Captured::default()),
        Err(error) if is_output_not_kept(&error) => (End::Undone(error.to_string()), Captured::default()),
        Err(error) => lost(&error.to_string()),
    }
}

/// The command ran, but its output had no room, at the executor or here.
fn is_output_not_kept(error: &Error) -> bool {
    match error {
        Error::Task(TaskError::NotKept { .. }) => true,
        Error::Task(TaskError::Failed { message, .. }) => message.starts_with(OUTPUT_NOT_KEPT),
        _ => false,
    }
}

/// Slot numbers, from 1. No two running commands have the same.
#[derive(Debug, Default)]
struct Slots {
    free: Vec<u32>,
    most: u32,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.most += 1;
            self.most
        })
    }

    fn give_back(&mut self, slot: u32) {
        if slot > 0 {
            self.free.push(slot);
        }
    }
}
