//! The process of a switch: `simple_switch` with a compiled program, at its ports.

use crate::P4Error;
use crate::thrift::Thrift;
use crate::tools::Bmv2Tools;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Where it listens for its controller, on this machine: BMv2's own default, so that `simple_switch_CLI` finds it.
pub(crate) const THRIFT_PORT: u16 = 9090;
/// How long it may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long after its connections have broken it may be there.
const TO_END: Duration = Duration::from_secs(1);

/// So much of its log may be one line.
const LAST_BYTES: usize = 4096;

/// A running switch; it ends when this is dropped, and with the thread that has started it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Readable once it has ended.
    descriptor: OwnedFd,
    /// What it writes to its standard error. The file's name may be gone.
    log: File,
}

impl Process {
    /// Starts it with a compiled program and these ports: their numbers, their interfaces. Its log goes beside the program.
    pub(crate) fn start(tools: &Bmv2Tools, json: &Path, ports: &[(u16, &str)]) -> Result<(Self, Thrift), P4Error> {
        check_free()?;
        let mut command = Command::new(&tools.switch);
        for (number, interface) in ports {
            command.arg("-i").arg(format!("{number}@{interface}"));
        }
        command.arg("--thrift-port").arg(THRIFT_PORT.to_string()).arg(json);
        let log = json.with_extension("log");
        let said = File::options().read(true).write(true).create(true).truncate(true).open(&log);
        let said = said.map_err(P4Error::io(format!("write {}", log.display())))?;
        let log = said.try_clone().map_err(P4Error::io("share a log"))?;
        // Ctrl-C is for its controller to act on.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).process_group(0);
        ends_with_us(&mut command);
        let child = command.spawn().map_err(P4Error::io(format!("run {}", tools.switch.display())))?;
        let mut process = Self { descriptor: descriptor(&child)?, child, log };
        let thrift = process.connect()?;
        Ok((process, thrift))
    }

    fn connect(&mut self) -> Result<Thrift, P4Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.check()?;
            match Thrift::connect(THRIFT_PORT) {
                Ok(thrift) => return Ok(thrift),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Readable once it has ended.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// An error once it has ended: how, and what it said last.
    pub(crate) fn check(&mut self) -> Result<(), P4Error> {
        let Some(status) = self.child.try_wait().map_err(P4Error::io("wait for simple_switch"))? else { return Ok(()) };
        let said = end(&self.log).unwrap_or_default();
        let last = said.trim().lines().next_back().map(|line| format!("; it said: {line}"));
        // These signals come from outside: it has nothing to say to that.
        let was_ended = matches!(status.signal(), Some(libc::SIGKILL | libc::SIGTERM));
        let last = last.filter(|_| !was_ended).unwrap_or_default();
        Err(P4Error::Switch { what: format!("{}{last}", how(status)) })
    }

    /// What a call to it has brought. Where that failed because the switch has ended, this is the error: its connections break a moment
    /// before the process is seen to have ended.
    pub(crate) fn or_its_end<T>(&mut self, called: Result<T, P4Error>) -> Result<T, P4Error> {
        let until = Instant::now() + TO_END;
        while called.is_err() && Instant::now() < until {
            self.check()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        called
    }

    #[cfg(all(test, feature = "compare"))]
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
    }
}

/// The kernel kills the process of this command when this thread ends, however it ends.
pub(crate) fn ends_with_us(command: &mut Command) {
    // SAFETY: between fork and exec there is one system call, which changes this process only.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Whether there is no switch yet: it would answer in the place of ours.
pub(crate) fn check_free() -> Result<(), P4Error> {
    let taken = |source| P4Error::Taken { port: THRIFT_PORT, source };
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, THRIFT_PORT)).map(drop).map_err(taken)
}

fn descriptor(child: &Child) -> Result<OwnedFd, P4Error> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH);
    let opened = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    opened.map_err(|error| P4Error::io("watch simple_switch")(error.into()))
}

/// The end of what a log has.
fn end(log: &File) -> io::Result<String> {
    let mut said = vec![0; LAST_BYTES];
    let from = log.metadata()?.len().saturating_sub(LAST_BYTES as u64);
    let length = log.read_at(&mut said, from)?;
    Ok(String::from_utf8_lossy(&said[..length]).into_owned())
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
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
