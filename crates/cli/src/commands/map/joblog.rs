//! `--joblog`: a line for each ended command, in GNU parallel's format; and what `--resume` reads.

use super::COMMAND_SHOWN;
use super::report::{End, shown};
use anyhow::{Context, Result, ensure};
use midflight_terminal::usage;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HEADER: &[u8] = b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
const FIELDS: usize = 9;
/// A command line and eight short fields.
const LINE_MAX: u64 = (256 << 10) as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    All,
    Succeeded,
}

#[derive(Debug)]
pub(super) struct Joblog {
    path: PathBuf,
    file: File,
    /// End of the last complete line.
    end: u64,
}

impl Joblog {
    /// Truncates an existing file.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = midflight_files::options().write(true).create(true).truncate(false).open(path);
        let file = locked(path, file)?;
        if file.metadata().is_ok_and(|file| file.is_file()) {
            file.set_len(0).with_context(|| format!("cannot write the joblog {}", path.display()))?;
        }
        let mut log = Self { path: path.to_owned(), file, end: 0 };
        log.add(HEADER).with_context(|| format!("cannot write the joblog {}: make room", path.display()))?;
        Ok(log)
    }

    /// Appends to it, and returns what it lists.
    pub(super) fn resume(path: &Path, resume: Resume) -> Result<(Self, Done)> {
        let file = midflight_files::options().read(true).append(true).create(true).open(path);
        let file = locked(path, file)?;
        let (done, end, is_cut) = Done::of(&file, path, resume)?;
        if is_cut {
            super::say(&format!("the last line of {} is cut short: its command runs again", path.display()));
            file.set_len(end).with_context(|| format!("cannot cut the last line of {}", path.display()))?;
        }
        let mut log = Self { path: path.to_owned(), file, end };
        log.file.seek(SeekFrom::End(0)).with_context(|| format!("cannot write {}", path.display()))?;
        if end == 0 {
            log.add(HEADER).with_context(|| format!("cannot write the joblog {}: make room", path.display()))?;
        }
        Ok((log, done))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a whole line, or nothing.
    pub(super) fn add(&mut self, line: &[u8]) -> std::io::Result<()> {
        let written = self.file.write_all(line);
        match &written {
            Ok(()) => self.end += line.len() as u64,
            // A device or a pipe, without lines to resume from.
            Err(_) => {
                drop(self.file.set_len(self.end).and_then(|()| self.file.seek(SeekFrom::Start(self.end)).map(drop)))
            }
        }
        written
    }
}

/// Locks the file against other `map` processes.
fn locked(path: &Path, file: std::io::Result<File>) -> Result<File> {
    let file = file.map_err(|error| unusable(path, &error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(unusable(path, &"another run writes it: wait for its end, or name another file")),
        // A file system without locks cannot report a holder.
        _ => Ok(file),
    }
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> anyhow::Error {
    usage::error(format!("--joblog {}: {why}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "a joblog has dates, as the clocks of its readers show them")]
pub(super) fn date() -> SystemTime {
    SystemTime::now()
}

/// `received` counts bytes of output; `started` is used if the command has no result. Empty if the command did not start.
pub(super) fn line(sequence: u64, command: &[u8], end: &End, received: u64, started: SystemTime) -> Vec<u8> {
    let (host, started, run_time, code, signal) = match end {
        End::Cancelled | End::Undone(_) => return Vec::new(),
        End::Lost(_) => {
            let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
            ("-", since, started.elapsed().unwrap_or_default(), -1, 0)
        }
        End::Ran(result) => {
            let (code, signal) = match (result.timed_out, result.signal) {
                (true, signal) => (-1, signal.unwrap_or(0)),
                (false, Some(signal)) => (0, signal),
                (false, None) => (result.code, 0),
            };
            (result.host.as_str(), result.started, result.run_time, code, signal)
        }
    };
    let seconds = |time: Duration| time.as_secs_f64();
    let mut line = format!(
        "{sequence}\t{host}\t{:.3}\t{:10.3}\t{}\t{received}\t{code}\t{signal}\t",
        seconds(started),
        seconds(run_time),
        command.len()
    )
    .into_bytes();
    line.extend(logged(command));
    line.push(b'\n');
    line
}

/// A line end becomes a NUL byte, as in GNU parallel.
fn logged(command: &[u8]) -> impl Iterator<Item = u8> + '_ {
    command.iter().map(|&byte| if byte == b'\n' { 0 } else { byte })
}

/// Commands of a joblog by number; about 50 bytes each.
#[derive(Debug, Default)]
pub(super) struct Done {
    by_sequence: HashMap<u64, Logged>,
}

#[derive(Clone, Copy, Debug)]
struct Logged {
    command: u64,
    is_done: bool,
}

impl Done {
    /// The file need not exist.
    pub(super) fn open(path: &Path, resume: Resume) -> Result<Self> {
        match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unusable(path, &error)),
            Ok(file) => Self::of(&file, path, resume).map(|(done, ..)| done),
        }
    }

    /// See [`Self::read`].
    fn of(file: &File, path: &Path, resume: Resume) -> Result<(Self, u64, bool)> {
        let read = Self::read(BufReader::new(file), resume);
        read.with_context(|| format!("cannot go on with the joblog {}", path.display()))
    }

    /// Returns the commands, the end of the last complete line, and whether bytes follow it.
    fn read(mut log: impl BufRead, resume: Resume) -> Result<(Self, u64, bool)> {
        let mut done = Self::default();
        let mut end = 0;
        for number in 1.. {
            let mut line = Vec::new();
            let length = std::io::Read::take(&mut log, LINE_MAX).read_until(b'\n', &mut line)? as u64;
            if !line.ends_with(b"\n") {
                ensure!(length < LINE_MAX, bad_line(number, "is too long"));
                ensure!(number > 1 || HEADER.starts_with(&line), bad_line(number, "is not a joblog's"));
                return Ok((done, end, length > 0));
            }
            end += length;
            if number == 1 {
                ensure!(line == HEADER, bad_line(number, "is not a joblog's"));
                continue;
            }
            let fields: Vec<_> = line[..line.len() - 1].splitn(FIELDS, |&byte| byte == b'\t').collect();
            let [sequence, _, _, _, _, _, code, signal, command] = fields[..] else {
                return Err(bad_line(number, "has too few fields"));
            };
            let sequence = parse(sequence).ok_or_else(|| bad_line(number, "does not begin with a number"))?;
            let ok = parse::<i32>(code) == Some(0) && parse::<i32>(signal) == Some(0);
            let is_done = ok || resume == Resume::All;
            done.by_sequence.insert(sequence, Logged { command: hash(command.iter().copied()), is_done });
        }
        Ok((done, end, false)) // the loop has no end of its own
    }

    /// Whether to skip this command. `others` are the forms it may have had in the earlier run.
    ///
    /// # Errors
    /// If the joblog has another command under this number.
    pub(super) fn has(
        &mut self,
        sequence: u64,
        command: &[u8],
        mut others: impl Iterator<Item = Vec<u8>>,
    ) -> Result<bool> {
        let Some(before) = self.by_sequence.remove(&sequence) else { return Ok(false) };
        let is_it = |command: &[u8]| hash(logged(command)) == before.command;
        ensure!(
            is_it(command) || others.any(|other| is_it(&other)),
            usage::error(format!(
                "the joblog has another command as number {sequence} than `{}`: --resume needs the input and the command of the first run",
                shown(command, COMMAND_SHOWN)
            ))
        );
        Ok(before.is_done)
    }
}

fn bad_line(number: u64, what: &str) -> anyhow::Error {
    usage::error(format!("line {number} {what}: give the joblog of an earlier run, or remove that line"))
}

fn parse<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.trim().parse().ok()
}

fn hash(command: impl Iterator<Item = u8>) -> u64 {
    let mut hasher = DefaultHasher::new();
    command.collect::<Vec<u8>>().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_tasks::functions::ExecResult;
    use std::iter::empty;

    fn result(code: i32, signal: Option<u8>) -> End {
        End::Ran(ExecResult {
            code,
            signal,
            host: "worker".into(),
            started: Duration::from_millis(1_500_250),
            run_time: Duration::from_millis(20),
            ..ExecResult::default()
        })
    }

    #[test]
    fn a_line_has_parallels_columns() {
        let line = |end: &End| String::from_utf8(line(3, b"echo a\ntrue", end, 3, UNIX_EPOCH)).unwrap();
        assert_eq!(line(&result(2, None)), "3\tworker\t1500.250\t     0.020\t11\t3\t2\t0\techo a\0true\n");
        assert!(line(&result(137, Some(9))).contains("\t0\t9\techo"));
        assert!(line(&End::Lost("gone".into())).contains("\t-1\t0\techo"));
        assert_eq!(line(&End::Undone("stopped".into())), "");
        assert_eq!(line(&End::Cancelled), "");
    }

    fn log(lines: &[&[u8]]) -> Vec<u8> {
        [HEADER, &lines.concat()].concat()
    }

    #[test]
    fn what_is_in_the_log_is_not_run_again() {
        let lines =
            [&line(1, b"a\nb", &result(0, None), 0, UNIX_EPOCH)[..], &line(2, b"c", &result(1, None), 0, UNIX_EPOCH)];
        let read = |resume| Done::read(&log(&lines)[..], resume).unwrap().0;
        let (mut all, mut ok) = (read(Resume::All), read(Resume::Succeeded));
        assert!(
            all.has(1, b"a\nb", empty()).unwrap()
                && all.has(2, b"c", empty()).unwrap()
                && !all.has(3, b"d", empty()).unwrap()
        );
        assert!(ok.has(1, b"a\nb", empty()).unwrap() && !ok.has(2, b"c", empty()).unwrap());
        let error = read(Resume::All).has(2, b"other", empty()).unwrap_err();
        assert!(error.is::<usage::UsageError>() && error.to_string().contains("number 2"), "{error}");
        let others = [b"other".to_vec(), b"c".to_vec()];
        assert!(read(Resume::All).has(2, b"it", others.into_iter()).unwrap());
    }

    #[test]
    fn a_log_may_be_cut_at_every_byte() {
        let first = line(1, b"a", &result(0, None), 0, UNIX_EPOCH);
        let whole = log(&[&first, &line(2, b"b", &result(0, None), 0, UNIX_EPOCH)]);
        for length in 0..HEADER.len() {
            let (_, end, is_cut) = Done::read(&whole[..length], Resume::All).unwrap();
            assert_eq!((end, is_cut), (0, length > 0));
        }
        for length in HEADER.len()..whole.len() {
            let (mut done, end, is_cut) = Done::read(&whole[..length], Resume::All).unwrap();
            let lines = usize::from(length >= HEADER.len() + first.len());
            assert_eq!(end as usize, HEADER.len() + lines * first.len(), "{length}");
            assert_eq!(is_cut, length as u64 > end);
            assert_eq!(done.has(1, b"a", empty()).unwrap(), lines == 1);
            assert!(!done.has(2, b"b", empty()).unwrap());
        }
    }

    #[test]
    fn what_is_no_joblog_is_refused_with_its_line() {
        for (text, part) in [
            (&b"a\n"[..], "line 1 is not"),
            (b"precious data", "line 1 is not"),
            (&log(&[b"x\n"]), "line 2 has too few"),
            (&log(&[b"x\t\t\t\t\t\t\t\t\n"]), "line 2 does not begin"),
        ] {
            let error = Done::read(text, Resume::All).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
