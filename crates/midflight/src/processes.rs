//! Switches and executors as processes of this same program, for benchmarks and soaks.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A running subcommand; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let stdout = BufReader::new(child.stdout.take().context("a child without stdout")?);
        Ok(Self { child, stdout })
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stdout.read_line(&mut line)? > 0, "a child process ended before it was ready");
        Ok(line)
    }

    /// CPU time of all its threads so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let threads = format!("/proc/{}/task", self.child.id());
        let mut ns = 0;
        for thread in std::fs::read_dir(&threads).with_context(|| format!("cannot read {threads}"))? {
            let path = thread?.path().join("schedstat");
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let on_cpu = text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok());
            ns += on_cpu.with_context(|| format!("{} is not what it should be", path.display()))?;
        }
        Ok(Duration::from_nanos(ns))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, to be run again.
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

/// An executor; all its slots are registered when this returns.
pub(crate) fn executor(mut program: Command, switch: SocketAddr, slots: u32) -> Result<Process> {
    let (switch, slots) = (switch.to_string(), slots.to_string());
    let mut process = Process::start(program.args(["executor", "--switch", &switch, "--slots", &slots]))?;
    process.line()?;
    Ok(process)
}
