//! Runs measurements as processes, one at a time, and leaves no process behind.
//!
//! Systems start daemons in process groups and sessions of their own. This process adopts orphans (it is a "subreaper"), so leftovers are
//! always among its descendants. A child's stdin is a pipe from this process, so that the child can notice if this process is killed.

use anyhow::{Context, Result};
use midflight_terminal::signals::Shutdown;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, waitpid,
};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout after SIGTERM or SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// Time for leftover processes to exit by themselves.
const LEAVE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const STDOUT_MAX: u64 = 1 << 20;
/// Prefix of stderr lines that explain a failure, as does a panic's message before its backtrace.
const COMPLAINT: &str = "error: ";
const PANIC: &str = " panicked at ";
const REASON_MAX: usize = 400;

/// Why a process has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("cannot start {0}")]
    Start(String, #[source] std::io::Error),
    /// With its error message, if it printed one.
    #[error("{}", complaint.clone().unwrap_or_else(|| status.to_string()))]
    Ended { status: ExitStatus, complaint: Option<String> },
    #[error("it took longer than {}", humantime::format_duration(*.0))]
    TooLong(Duration),
    #[error("interrupted")]
    Interrupted,
}

#[derive(Debug)]
pub(super) struct Keeper {
    stop: Arc<AtomicBool>,
}

impl Keeper {
    /// SIGINT and SIGTERM now stop the running child, and this process adopts orphans.
    pub(super) fn new() -> Result<Self> {
        set_child_subreaper(Some(getpid())).context("cannot adopt what measurements leave behind")?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopper = Arc::clone(&stop);
        Shutdown::new()?.each(move |_count| stopper.store(true, Ordering::Relaxed));
        Ok(Self { stop })
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns stdout. `heard` gets each line of stderr, and returns whether it is mere progress; the error message is among the others.
    pub(super) fn run(
        &self,
        command: &mut Command,
        limit: Duration,
        heard: impl FnMut(&str) -> bool + Send + 'static,
    ) -> Result<String, Failure> {
        let program = Path::new(command.get_program()).display().to_string();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::Start(program, error))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let said = thread::spawn(move || stdout.map_or_else(String::new, read_all));
        let complaint = thread::spawn(move || stderr.and_then(|stderr| listen(stderr, heard)));
        let status = self.wait(&mut child, limit);
        end(&mut child, status.is_some());
        let said = said.join().unwrap_or_default();
        let complaint = complaint.join().ok().flatten();
        match status {
            Some(status) if status.success() => Ok(said),
            Some(status) => Err(Failure::Ended { status, complaint }),
            None if self.stopped() => Err(Failure::Interrupted),
            None => Err(Failure::TooLong(limit)),
        }
    }

    /// `None` after the limit or a signal.
    fn wait(&self, child: &mut Child, limit: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < limit && !self.stopped() {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            thread::sleep(LOOK_EVERY);
        }
        None
    }
}

/// Stops the child if it still runs, and then all its leftovers.
fn end(child: &mut Child, ended: bool) {
    if !ended {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // It may exit at this moment.
        let _ = pid.map(|pid| kill_process_group(pid, Signal::TERM));
        await_that(GRACE, || !matches!(child.try_wait(), Ok(None)));
    }
    let left = |signal: Option<Signal>| {
        let descendants = descendants(getpid());
        for &pid in &descendants {
            let _ = signal.map(|signal| kill_process(pid, signal));
            // Only orphans are this process's to wait for.
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        descendants.len()
    };
    if await_that(LEAVE, || left(None) == 0) {
        return;
    }
    eprintln!("{} processes were left behind: killing them", left(None));
    if !await_that(GRACE, || left(Some(Signal::KILL)) == 0) {
        eprintln!("{} processes cannot be killed", left(None));
    }
    // Still a descendant: it did not exit in time.
    let _ = child.try_wait();
}

fn await_that(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if so() {
            return true;
        }
        if started.elapsed() > limit {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        // It may have exited since.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![root.as_raw_nonzero().get()];
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(below.iter().filter_map(|&pid| Pid::from_raw(pid)));
        next.extend(below);
    }
    found
}

/// The parent in a line of `/proc/PID/stat`: the second word after the command's name, which may contain anything.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn read_all(stdout: ChildStdout) -> String {
    let mut bytes = Vec::new();
    // Keep what was read before an error.
    let _ = stdout.take(STDOUT_MAX).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the error message: the first line with the prefix, because others follow from it, or else the last line.
fn listen(stderr: ChildStderr, mut heard: impl FnMut(&str) -> bool) -> Option<String> {
    let (mut first, mut last) = (None, None);
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        let progress = heard(&line);
        if progress || line.trim().is_empty() {
            continue;
        }
        if line.starts_with(COMPLAINT) || line.contains(PANIC) {
            first = first.or(Some(line));
        } else {
            last = Some(line);
        }
    }
    first.or(last).map(|line| shortened(line.trim()))
}

/// Cut, without the prefix.
fn shortened(complaint: &str) -> String {
    complaint
        .strip_prefix("error: ")
        .unwrap_or(complaint)
        .chars()
        .filter(|c| !c.is_control())
        .take(REASON_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_whatever_the_command_is_called() {
        assert_eq!(parent("12 (cat) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a) b (c)) R 8 1 1"), Some(8));
        assert_eq!(parent("12 (cat"), None);
        assert_eq!(parent(""), None);
    }

    #[test]
    fn a_complaint_is_short_and_printable() {
        assert_eq!(shortened("error: no go: install Go"), "no go: install Go");
        assert_eq!(shortened(&format!("\u{1b}[31m{}", "x".repeat(1_000))).len(), REASON_MAX);
    }
}
