//! Jobs and commands, as the store keeps them and the protocol carries them.

use midflight_tasks::place::Preference;
use midflight_wire::tasks::PATIENCE_MAX;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Number of commands of a job.
pub const COMMANDS_MAX: u32 = 1 << 20;
/// Bytes of all command lines of a job whose commands each have their own.
pub const ITEMS_BYTES_MAX: usize = 256 << 20;
/// Number of jobs that a job may depend on.
pub const AFTER_MAX: usize = 1_024;
/// Bytes of a job's command line or argument, directory and environment together: its row is one message.
pub const SPEC_BYTES_MAX: usize = 4 << 20;
/// Bytes of a failure's message that the store keeps.
const WHY_MAX: usize = 4_096;
/// Bytes of a job's name.
pub const NAME_MAX: usize = 256;

/// Milliseconds since 1970.
pub type UnixMs = u64;

/// Indices of an array: `first`, `first + step`, … up to at most `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indices {
    /// First index.
    pub first: u32,
    /// No index is larger.
    pub last: u32,
    /// Step; not 0.
    pub step: u32,
}

impl Indices {
    /// Number of indices.
    #[must_use]
    pub fn count(self) -> u32 {
        match self.last.checked_sub(self.first) {
            Some(span) if self.step > 0 => (span / self.step).saturating_add(1),
            _ => 0,
        }
    }
}

/// The end of another job that a dependency requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// The other job has succeeded.
    Succeeded,
    /// The other job has ended.
    Ended,
    /// The other job has failed.
    Failed,
}

/// A dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// The other job.
    pub job: u64,
    /// How it must end.
    pub when: When,
}

/// A job as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Shown to the user.
    pub name: String,
    /// The function: `exec` for command lines.
    pub function: String,
    /// The command line or argument; unused if each command has its own.
    pub argument: Vec<u8>,
    /// The indices of its commands; if each command has its own line, from 1 to their number.
    pub indices: Vec<Indices>,
    /// Whether each command has its own line.
    pub has_items: bool,
    /// Working directory of command lines, on the executor's machine.
    pub directory: Option<Vec<u8>>,
    /// Environment variables of command lines.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Timeout for one run of a command line.
    pub timeout: Option<Duration>,
    /// Retry budget of a command that failed.
    pub retries: u32,
    /// 1 (the highest) to 8.
    pub priority: u8,
    /// Resources that executors must have, one bit each.
    pub resources: u8,
    /// The placement preference of its commands.
    pub prefer: Prefer,
    /// The jobs that it depends on.
    pub after: Vec<After>,
}

/// A [`Preference`], as it is stored: the number of a place, and the patience in milliseconds.
pub type Prefer = Option<(u32, u32)>;

pub(crate) fn preference(prefer: Prefer) -> Option<Preference> {
    prefer.map(|(place, patience_ms)| Preference { place, patience_ms })
}

impl JobSpec {
    /// A job that calls `function` with `argument` for each index; the rest as `midflight submit` without options.
    #[must_use]
    pub fn new(name: &str, function: &str, argument: Vec<u8>, indices: Vec<Indices>) -> Self {
        Self {
            name: name.to_owned(),
            function: function.to_owned(),
            argument,
            indices,
            has_items: false,
            directory: None,
            environment: Vec::new(),
            timeout: None,
            retries: 0,
            priority: 4,
            resources: 0,
            prefer: None,
            after: Vec::new(),
        }
    }

    /// Number of its commands.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.indices.iter().fold(0, |count, indices| indices.count().saturating_add(count))
    }

    /// The index of the command at this place, counted from 0.
    #[must_use]
    pub fn index(&self, place: u32) -> Option<u32> {
        let mut left = place;
        for indices in &self.indices {
            match left.checked_sub(indices.count()) {
                Some(rest) => left = rest,
                None => return Some(indices.first + left * indices.step),
            }
        }
        None
    }

    /// The place of the command with this index; the first one if there are several.
    #[must_use]
    pub fn place(&self, index: u32) -> Option<u32> {
        let mut before = 0;
        for indices in &self.indices {
            let offset = index.checked_sub(indices.first).filter(|offset| offset % indices.step == 0);
            if let Some(offset) = offset.filter(|_| index <= indices.last) {
                return Some(before + offset / indices.step);
            }
            before += indices.count();
        }
        None
    }

    fn bytes(&self) -> usize {
        let environment = self.environment.iter().map(|(name, value)| name.len() + value.len());
        let directory = self.directory.as_ref().map_or(0, Vec::len);
        let indices = self.indices.len() * size_of::<Indices>();
        self.function.len() + self.argument.len() + directory + indices + environment.sum::<usize>()
    }

    /// Checks every bound that the submitter relies on.
    ///
    /// # Errors
    /// What is out of range, and its bound.
    pub fn check(&self) -> Result<(), String> {
        let count = self.count();
        if count == 0 || count > COMMANDS_MAX {
            return Err(format!("a job has 1 to {COMMANDS_MAX} commands, not {count}: divide it"));
        }
        if let Some(Indices { first, last, step }) = self.indices.iter().find(|indices| indices.count() == 0) {
            return Err(format!("{first} to {last} in steps of {step} is no index: begin with the smaller one"));
        }
        if self.name.len() > NAME_MAX {
            return Err(format!("the name has {} bytes, and may have {NAME_MAX}", self.name.len()));
        }
        let bytes = self.bytes();
        if bytes > SPEC_BYTES_MAX {
            return Err(format!(
                "its command line, directory and environment have {bytes} bytes, and may have {SPEC_BYTES_MAX}: write them to a file"
            ));
        }
        if self.after.len() > AFTER_MAX {
            return Err(format!("it waits for {} jobs, and may wait for {AFTER_MAX}", self.after.len()));
        }
        if self.prefer.is_some_and(|(place, patience_ms)| place == 0 || patience_ms > PATIENCE_MAX) {
            return Err(format!("a place has a number above 0, and patience is at most {PATIENCE_MAX} ms"));
        }
        if !(1..=8).contains(&self.priority) {
            return Err(format!("priority {} does not exist: use 1 to 8", self.priority));
        }
        Ok(())
    }
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits for other jobs.
    Waiting,
    /// Its commands run, or wait for executors.
    Running,
    /// All commands have succeeded.
    Succeeded,
    /// All commands have ended, and some have not succeeded.
    Failed,
    /// Was cancelled.
    Cancelled,
    /// Was not begun, because a job that it depends on did not end as required.
    Skipped,
}

impl JobState {
    /// Whether the state is final.
    #[must_use]
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }

    /// The state as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }
}

/// Commands that have ended, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Exited with 0.
    pub succeeded: u32,
    /// Ended otherwise, or could not be run.
    pub failed: u32,
    /// May have run.
    pub lost: u32,
    /// Cancelled, also before they began.
    pub cancelled: u32,
}

/// A job and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// The job's number.
    pub job: u64,
    /// The job as submitted.
    pub spec: JobSpec,
    /// Its state.
    pub state: JobState,
    /// Place of the first command that was not begun.
    pub next: u32,
    /// Commands that were begun and have not ended.
    pub open: u32,
    /// Commands that have ended.
    pub counts: Counts,
    /// Whether a user has cancelled it.
    pub cancel: bool,
    /// When it was accepted.
    pub submitted: UnixMs,
    /// When its first command was sent.
    pub begun: Option<UnixMs>,
    /// When its last command ended.
    pub ended: Option<UnixMs>,
    /// Bytes of its command lines and outputs.
    pub bytes: u64,
    /// Commands whose outputs were not kept for lack of space.
    pub left_out: u32,
}

impl JobRow {
    /// Number of its commands.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.spec.count()
    }
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Exited with 0.
    Succeeded,
    /// Exited otherwise, or could not be run.
    Failed,
    /// Timed out.
    TimedOut,
    /// May have run.
    Lost,
    /// Was cancelled.
    Cancelled,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRow {
    /// Its outcome.
    pub how: How,
    /// Its exit code, if it ran and was a command line.
    pub code: Option<i32>,
    /// The signal that ended its shell.
    pub signal: Option<u8>,
    /// The host where it ran.
    pub host: String,
    /// When it started, by the executor's clock.
    pub started: Option<UnixMs>,
    /// How long it ran.
    pub ran: Duration,
    /// Number of earlier runs.
    pub tries: u32,
    /// Bytes of its stdout.
    pub stdout: u64,
    /// Bytes of its stderr.
    pub stderr: u64,
    /// Whether its outputs are kept.
    pub kept: bool,
    /// Why it has no result; empty if it has one.
    pub why: String,
}

impl EndedRow {
    pub(crate) fn without_result(how: How, why: impl Into<String>, tries: u32) -> Self {
        let mut why = why.into();
        why.truncate(why.floor_char_boundary(WHY_MAX)); // a function's message may be as long as a result
        Self {
            how,
            code: None,
            signal: None,
            host: String::new(),
            started: None,
            ran: Duration::ZERO,
            tries,
            stdout: 0,
            stderr: 0,
            kept: true,
            why,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn spec() -> JobSpec {
        let indices = vec![Indices { first: 1, last: 7, step: 3 }, Indices { first: 20, last: 21, step: 1 }];
        JobSpec::new("a job", "exec", b"true".to_vec(), indices)
    }

    #[test]
    fn places_are_indices_in_their_order() {
        let spec = spec();
        assert_eq!(spec.count(), 5);
        let indices: Vec<_> = (0..5).map(|place| spec.index(place).unwrap()).collect();
        assert_eq!(indices, [1, 4, 7, 20, 21]);
        assert_eq!(spec.index(5), None);
        assert!((0..5).all(|place| spec.place(indices[place as usize]) == Some(place)));
        assert_eq!((spec.place(2), spec.place(8), spec.place(0)), (None, None, None));
    }

    #[test]
    fn a_job_out_of_bounds_is_refused() {
        assert_eq!(spec().check(), Ok(()));
        let none = JobSpec { indices: Vec::new(), ..spec() };
        let many = JobSpec { indices: vec![Indices { first: 0, last: u32::MAX, step: 1 }; 2], ..spec() };
        assert!([none, many].iter().all(|spec| spec.check().unwrap_err().contains("commands")));
        for (first, last, step) in [(2, 1, 1), (1, 2, 0)] {
            let mut one = spec();
            one.indices.push(Indices { first, last, step });
            assert!(one.check().unwrap_err().contains("is no index"));
        }
    }
}
