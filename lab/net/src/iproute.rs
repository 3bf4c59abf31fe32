//! `ip` and `tc` of iproute2; one process executes many lines.

use crate::LabError;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Tool {
    Ip,
    Tc,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Batch {
    tool: Tool,
    /// For error messages.
    what: &'static str,
    force: bool,
    lines: String,
}

impl Batch {
    pub(crate) fn new(tool: Tool, what: &'static str) -> Self {
        Self { tool, what, force: false, lines: String::new() }
    }

    /// Continues after a failing line.
    pub(crate) fn forced(tool: Tool, what: &'static str) -> Self {
        Self { force: true, ..Self::new(tool, what) }
    }

    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.lines.push_str(line.as_ref());
        self.lines.push('\n');
    }

    /// Runs the lines in this thread's network namespace. The process inherits `held`: if we are killed, the lock lasts until the process
    /// ends too.
    pub(crate) fn run(self, held: Option<&File>) -> Result<(), LabError> {
        let output = self.output(held)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = match said.lines().next() {
            Some(line) if !line.is_empty() => line.to_owned(),
            _ => output.status.to_string(),
        };
        Err(LabError::Command { what: self.what, command: self.tool.name(), said })
    }

    fn output(&self, held: Option<&File>) -> Result<Output, LabError> {
        let name = self.tool.name();
        let mut command = Command::new(name);
        command.args(self.force.then_some("-force")).args(["-batch", "-"]);
        // We handle Ctrl-C ourselves, between two batches.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(file) = held {
            let file = file.try_clone().map_err(LabError::io("keep the lock"))?;
            let keep_open = move || Ok(fcntl_setfd(&file, FdFlags::empty())?);
            // SAFETY: only one system call runs between fork and exec; nothing is allocated.
            unsafe { command.pre_exec(keep_open) };
        }
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => LabError::MissingCommand(name),
            _ => LabError::io(format!("run {name}"))(error),
        })?;
        if let Some(mut stdin) = child.stdin.take() {
            // Fails if the command has exited; its stderr says why.
            let _ = stdin.write_all(self.lines.as_bytes());
        }
        child.wait_with_output().map_err(LabError::io(format!("wait for {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_said_is_in_the_error() {
        let mut batch = Batch::new(Tool::Ip, "set up nothing");
        batch.line("frobnicate");
        match batch.run(None) {
            Err(LabError::MissingCommand("ip")) => println!("SKIPPED: no `ip` here"),
            Err(error) => {
                assert!(error.to_string().starts_with("cannot set up nothing: ip says: "), "{error}");
                assert!(error.to_string().contains("frobnicate"), "{error}");
            }
            Ok(()) => panic!("ip knows no frobnicate"),
        }
    }
}
