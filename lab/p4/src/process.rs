//! The process of a switch: `simple_switch` with a compiled program, at its ports.

use crate::P4Error;
use crate::thrift::Thrift;
use crate::tools::{Bmv2Tools, Patience};
use midflight_host::process::children::{Outputs, be_ours_alone, kill_with_its_own};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Port for the controller on this machine: BMv2's default, so that `simple_switch_CLI` finds it.
pub(crate) const THRIFT_PORT: u16 = 9090;

const CONNECT_EVERY: Duration = Duration::from_millis(50);
/// How long the process may outlive its connections.
const TO_END: Duration = Duration::from_secs(1);

/// Bytes of its output to keep.
const SAID_BYTES: usize = 4096;

/// A running switch; it ends when this is dropped, and with the thread that has started it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Readable once it has ended.
    descriptor: OwnedFd,
    said: Outputs,
}

impl Process {
    /// Starts it with a compiled program and these ports: numbers and interfaces.
    pub(crate) fn start(tools: &Bmv2Tools, json: &Path, ports: &[(u16, &str)]) -> Result<(Self, Thrift), P4Error> {
        check_free()?;
        let mut command = Command::new(&tools.switch);
        for (number, interface) in ports {
            command.arg("-i").arg(format!("{number}@{interface}"));
        }
        command.arg("--thrift-port").arg(THRIFT_PORT.to_string()).arg(json);
        let failed = |error| P4Error::io(format!("run {}", tools.switch.display()))(error);
        let (reader, writer) = io::pipe().map_err(failed)?;
        // It writes some of its reasons to stdout.
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        be_ours_alone(&mut command);
        let said = Outputs::listen("mf-bmv2-log", reader, SAID_BYTES, ()).map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        drop(command); // it holds the pipe's other end
        let descriptor = descriptor(&child).inspect_err(|_| {
            let _ = kill_with_its_own(&mut child); // the first error is returned
        })?;
        let mut process = Self { child, descriptor, said };
        let thrift = process.connect(tools)?;
        Ok((process, thrift))
    }

    fn connect(&mut self, tools: &Bmv2Tools) -> Result<Thrift, P4Error> {
        let Patience { starting, answering, .. } = tools.patience;
        let until = Instant::now() + starting;
        let path = tools.switch.display();
        loop {
            // Shows users of another program its path.
            self.check().map_err(|error| match error {
                P4Error::Switch { what } => P4Error::Switch { what: format!("({path}) {what}") },
                other => other,
            })?;
            if tools.interrupted.load(Ordering::Relaxed) {
                return Err(P4Error::Interrupted);
            }
            match Thrift::connect(THRIFT_PORT, answering) {
                Ok(thrift) => return Ok(thrift),
                Err(error) if Instant::now() > until => {
                    let what = format!("({path}) does not serve its controller after {starting:?}");
                    return Err(P4Error::Switch { what: format!("{what}: it hangs, or is another program: {error}") });
                }
                Err(_) => std::thread::sleep(CONNECT_EVERY),
            }
        }
    }

    /// Readable once it has ended.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// An error once it has ended: how, and its last output.
    pub(crate) fn check(&mut self) -> Result<(), P4Error> {
        let Some(status) = self.child.try_wait().map_err(P4Error::io("wait for simple_switch"))? else { return Ok(()) };
        let said = self.said.last_lines();
        let last = said.lines().next_back().map(|line| format!("; it said: {line}"));
        // These signals come from outside, so its output does not explain them.
        let was_ended = matches!(status.signal(), Some(libc::SIGKILL | libc::SIGTERM));
        let last = last.filter(|_| !was_ended).unwrap_or_default();
        Err(P4Error::Switch { what: format!("{}{last}", how(status)) })
    }

    /// Returns a call's result. If the call failed because the switch has ended, returns that error: its connections break a moment before
    /// the process is seen to have ended.
    pub(crate) fn or_its_end<T>(&mut self, called: Result<T, P4Error>) -> Result<T, P4Error> {
        let until = Instant::now() + TO_END;
        while called.is_err() && Instant::now() < until {
            self.check()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        called
    }

    #[cfg(all(test, feature = "compare"))]
    pub(crate) fn stop(&mut self) {
        rustix::process::kill_process(Pid::from_child(&self.child), rustix::process::Signal::STOP).expect("it runs");
    }

    #[cfg(all(test, feature = "compare"))]
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
    }
}

/// Checks that no other switch runs, which would answer in the place of ours.
pub(crate) fn check_free() -> Result<(), P4Error> {
    let taken = |source| P4Error::Taken { port: THRIFT_PORT, source };
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, THRIFT_PORT)).map(drop).map_err(taken)
}

fn descriptor(child: &Child) -> Result<OwnedFd, P4Error> {
    let opened = pidfd_open(Pid::from_child(child), PidfdFlags::empty());
    opened.map_err(|error| P4Error::io("watch simple_switch")(error.into()))
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("has ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => format!("has ended: {status}"),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_with_its_own(&mut self.child); // it may have ended by itself
    }
}
