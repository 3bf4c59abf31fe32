//! Reading a trace: its format, its malformed lines, and the rows that give no task.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::alibaba::Alibaba;
use super::draconis::Draconis;
use super::google::Google;
use super::lines::{Lines, Malformed, Reason};
use super::tr::Tr;
use super::{Job, TaskSpec, Workload};

/// The formats of traces; each may be compressed by gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `arrival_s task_count mean_duration_s duration_1 … duration_n`, blank-separated.
    Tr,
    /// Alibaba 2017 `batch_task` CSV.
    Alibaba,
    /// `job_id,arrival_us,task_runtime_us,num_tasks`.
    Draconis,
    /// Google ClusterData 2011 `task_events` CSV.
    Google,
}

/// Options and bounds of the reader.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; `None`: detected from the first line.
    pub format: Option<Format>,
    /// Makes the first malformed line an error.
    pub strict: bool,
    /// How many malformed lines are kept to be shown; all are counted. Default 5.
    pub shown: usize,
    /// The longest line, in bytes. Default 16 MiB.
    pub max_line_bytes: usize,
    /// The most tasks in one job. Default 1 Mi.
    pub max_job_tasks: u64,
    /// The most tasks in total; a trace with more is refused. Default 32 Mi (16 bytes each in memory).
    pub max_tasks: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            strict: false,
            shown: 5,
            max_line_bytes: 16 << 20,
            max_job_tasks: 1 << 20,
            max_tasks: 32 << 20,
        }
    }
}

/// Why a well-formed row gives no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Alibaba: the status is not Terminated, so the duration is unknown.
    NotTerminated,
    /// Alibaba: Terminated, but times or instances are missing.
    EmptyField,
    /// Google: the time is before or after the trace.
    OutsideTrace,
    /// Google: scheduled, but never finished.
    NotFinished,
    /// Google: finished, but never scheduled.
    NotScheduled,
}

impl Skip {
    /// All, in the order of their counters.
    pub const ALL: [Self; 5] =
        [Self::NotTerminated, Self::EmptyField, Self::OutsideTrace, Self::NotFinished, Self::NotScheduled];

    /// The reason as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotTerminated => "not Terminated, so without a duration",
            Self::EmptyField => "Terminated but without times or instances",
            Self::OutsideTrace => "before or after the trace",
            Self::NotFinished => "scheduled but not finished",
            Self::NotScheduled => "finished but not scheduled",
        }
    }
}

/// The result of reading a trace.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The jobs.
    pub workload: Workload,
    /// The format of the file.
    pub format: Format,
    /// Lines in the file, including empty ones.
    pub lines: u64,
    /// Number of malformed lines.
    pub malformed: u64,
    /// The first malformed lines.
    pub shown: Vec<Malformed>,
    skipped: [u64; Skip::ALL.len()],
}

impl Reading {
    /// Reasons why well-formed rows gave no task, and their counts, where not 0.
    pub fn skipped(&self) -> impl Iterator<Item = (Skip, u64)> + '_ {
        Skip::ALL.into_iter().zip(self.skipped).filter(|&(_, count)| count > 0)
    }
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The format cannot be detected.
    #[error("{file}: cannot tell the format from the first line: say which with --format tr|alibaba|draconis|google")]
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// A line is malformed, and reading was strict.
    #[error("{0} (--strict)")]
    Malformed(Malformed),
    /// More tasks than the bound.
    #[error("{file}:{line}: more than {limit} tasks: cut the file into pieces")]
    TooManyTasks {
        /// The file.
        file: String,
        /// The line.
        line: u64,
        /// The bound.
        limit: u64,
    },
    /// No usable line.
    #[error("{file}: no tasks in {lines} lines ({malformed} malformed){first}")]
    Empty {
        /// The file.
        file: String,
        /// Lines in the file.
        lines: u64,
        /// Malformed lines.
        malformed: u64,
        /// The first malformed line, with a separator in front.
        first: String,
    },
}

pub(super) struct Jobs {
    jobs: Vec<Job>,
    held: u64,
    max_job_tasks: u64,
    skipped: [u64; Skip::ALL.len()],
}

impl Jobs {
    pub(super) fn push(&mut self, job: Job) {
        self.held += job.tasks.len() as u64;
        self.jobs.push(job);
    }

    /// Adds a job of `said` tasks that all take `duration_ns`.
    pub(super) fn push_equal(&mut self, arrival_ns: i64, duration_ns: u64, said: u64) -> Result<(), Reason> {
        let count = self.job_size(said)? as usize;
        if count == 0 {
            return Err(Reason::Count { said, listed: 0 });
        }
        self.push(Job { arrival_ns, tasks: vec![TaskSpec { duration_ns, priority: 0 }; count] });
        Ok(())
    }

    pub(super) fn skip(&mut self, why: Skip) {
        self.skipped[why as usize] += 1;
    }

    /// Refuses a stated number of tasks before anything is allocated for it.
    pub(super) fn job_size(&self, said: u64) -> Result<u64, Reason> {
        let limit = self.max_job_tasks;
        if said <= limit { Ok(said) } else { Err(Reason::JobTooLarge { said, limit }) }
    }

    /// Counts things that a parser holds in memory like tasks.
    pub(super) fn remember(&mut self, count: u64) {
        self.held += count;
    }

    pub(super) fn forget(&mut self, count: u64) {
        self.held -= count;
    }
}

pub(super) trait Parser {
    /// Parses one line that is not empty. `first`: it is the first of the file, so it may be a header.
    fn line(&mut self, first: bool, line: &str, jobs: &mut Jobs) -> Result<(), Reason>;

    fn end(&mut self, _jobs: &mut Jobs) {}
}

/// Reads the trace at `path`, compressed or not.
pub fn read_file(path: &Path, options: &ReadOptions) -> Result<Reading, ReadError> {
    let file = path.display().to_string();
    let is_tr = path.extension().is_some_and(|extension| extension == "tr");
    let by_name = ReadOptions { format: options.format.or(is_tr.then_some(Format::Tr)), ..options.clone() };
    let input = File::open(path).map_err(|error| ReadError::Io { file: file.clone(), error })?;
    read(BufReader::new(input), &file, &by_name)
}

/// Reads a trace from `input`, compressed or not; `file` is its name in messages.
pub fn read(mut input: impl BufRead, file: &str, options: &ReadOptions) -> Result<Reading, ReadError> {
    let is_gzip = is_gzip(&mut input).map_err(|error| ReadError::Io { file: file.to_owned(), error })?;
    let plain: Box<dyn Read + '_> = if is_gzip { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) };
    Reader::new(file, options).read(BufReader::new(plain))
}

fn is_gzip(input: &mut impl BufRead) -> io::Result<bool> {
    Ok(input.fill_buf()?.starts_with(&[0x1f, 0x8b]))
}

struct Reader<'a> {
    file: &'a str,
    options: &'a ReadOptions,
    jobs: Jobs,
    malformed: u64,
    shown: Vec<Malformed>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a str, options: &'a ReadOptions) -> Self {
        let jobs =
            Jobs { jobs: Vec::new(), held: 0, max_job_tasks: options.max_job_tasks, skipped: [0; Skip::ALL.len()] };
        Self { file, options, jobs, malformed: 0, shown: Vec::new() }
    }

    fn read(mut self, input: impl BufRead) -> Result<Reading, ReadError> {
        let mut lines = Lines::new(input, self.options.max_line_bytes);
        let mut format = self.options.format;
        let mut parser = format.map(parser);
        let mut first = true;
        loop {
            let number = lines.number() + 1;
            let next = lines.next_line().map_err(|error| ReadError::Io { file: self.file.to_owned(), error })?;
            let Some(line) = next else { break };
            let parsed = match line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => {
                    if parser.is_none() {
                        format = detect(line);
                        parser = format.map(self::parser);
                    }
                    let unknown = || ReadError::UnknownFormat { file: self.file.to_owned() };
                    parser.as_mut().ok_or_else(unknown)?.line(first, line, &mut self.jobs)
                }
                Err(reason) => Err(reason),
            };
            first = false;
            self.note(number, parsed)?;
        }
        let (Some(format), Some(mut parser)) = (format, parser) else { return Err(self.empty(lines.number())) };
        parser.end(&mut self.jobs);
        self.finish(format, lines.number())
    }

    fn note(&mut self, line: u64, parsed: Result<(), Reason>) -> Result<(), ReadError> {
        if let Err(reason) = parsed {
            let malformed = Malformed { file: self.file.to_owned(), line, reason };
            if self.options.strict {
                return Err(ReadError::Malformed(malformed));
            }
            self.malformed += 1;
            if self.shown.len() < self.options.shown {
                self.shown.push(malformed);
            }
        }
        let limit = self.options.max_tasks;
        if self.jobs.held > limit {
            return Err(ReadError::TooManyTasks { file: self.file.to_owned(), line, limit });
        }
        Ok(())
    }

    fn finish(self, format: Format, lines: u64) -> Result<Reading, ReadError> {
        if self.jobs.jobs.is_empty() {
            return Err(self.empty(lines));
        }
        let workload = Workload::new(self.jobs.jobs);
        let (malformed, shown, skipped) = (self.malformed, self.shown, self.jobs.skipped);
        Ok(Reading { workload, format, lines, malformed, shown, skipped })
    }

    fn empty(self, lines: u64) -> ReadError {
        let first = self.shown.first().map_or(String::new(), |malformed| format!("; the first: {malformed}"));
        ReadError::Empty { file: self.file.to_owned(), lines, malformed: self.malformed, first }
    }
}

fn parser(format: Format) -> Box<dyn Parser> {
    match format {
        Format::Tr => Box::new(Tr),
        Format::Alibaba => Box::new(Alibaba),
        Format::Draconis => Box::new(Draconis),
        Format::Google => Box::new(Google::default()),
    }
}

fn detect(line: &str) -> Option<Format> {
    match line.split(',').count() {
        1 if line.split_ascii_whitespace().count() >= 4 => Some(Format::Tr),
        4 => Some(Format::Draconis),
        8 => Some(Format::Alibaba),
        13 => Some(Format::Google),
        _ => None,
    }
}
