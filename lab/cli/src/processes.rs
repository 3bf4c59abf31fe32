//! Switches and executors as processes of this program.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Held while a process is started.
static STARTING: RwLock<()> = RwLock::new(());

/// Blocks every later start.
pub(crate) fn start_no_more() {
    std::mem::forget(STARTING.write().unwrap_or_else(PoisonError::into_inner));
}

/// Killed on drop.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let stdout = BufReader::new(child.stdout.take().context("a child without stdout")?);
        Ok(Self { child, stdout })
    }

    /// Its next line of stdout.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stdout.read_line(&mut line)? > 0, "a child process ended before it was ready");
        Ok(line)
    }

    /// The rest of its stdout, until it exits.
    pub(crate) fn rest(&mut self) -> Result<String> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).context("cannot read what a child process prints")?;
        Ok(rest)
    }

    /// Its stderr, if piped; only the first caller gets it.
    pub(crate) fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        Ok(Duration::from_nanos(self.scheduled()?[0]))
    }

    /// Nanoseconds on a CPU of all threads, nanoseconds of waiting for one, and how often they got one.
    pub(crate) fn scheduled(&self) -> Result<[u64; 3]> {
        let threads = format!("/proc/{}/task", self.child.id());
        let mut all = [0; 3];
        for thread in std::fs::read_dir(&threads).with_context(|| format!("cannot read {threads}"))? {
            let path = thread?.path().join("schedstat");
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut words = text.split_whitespace().map(|word| word.parse::<u64>().ok());
            for sum in &mut all {
                let number = words.next().flatten();
                *sum += number.with_context(|| format!("{} has an unknown format", path.display()))?;
            }
        }
        Ok(all)
    }

    /// Does nothing if the process has exited.
    pub(crate) fn signal(&self, signal: Signal) {
        // The id stays reserved until the child is waited for.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot wait for a child process")
    }

    /// `None` after `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            let ended = self.ended()?;
            if ended.is_some() || Instant::now() >= deadline {
                return Ok(ended);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn ours() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("cannot find this program")?))
}

/// A switch, and the address that it serves.
pub(crate) fn switch(command: &mut Command) -> Result<(Process, SocketAddr)> {
    let mut process = Process::start(command)?;
    let line = process.line()?;
    let address = line.split_whitespace().nth(2).and_then(|word| word.parse().ok());
    let address = address.with_context(|| format!("the switch said {line:?} instead of its address"))?;
    Ok((process, address))
}

/// Waits until all slots are registered.
pub(crate) fn executor(program: Command, switch: SocketAddr, slots: u32) -> Result<Process> {
    executor_with(program, switch, slots, &[])
}

/// [`executor`] with more arguments.
pub(crate) fn executor_with(mut program: Command, switch: SocketAddr, slots: u32, more: &[&str]) -> Result<Process> {
    let (switch, slots) = (switch.to_string(), slots.to_string());
    let mut process = Process::start(program.args(["executor", "--switch", &switch, "--slots", &slots]).args(more))?;
    process.line()?;
    Ok(process)
}
