//! Runs a compiler: with a timeout, ended with this process, shielded from Ctrl-C, and with bounded output.

use crate::P4Error;
use midflight_host::process::children::{Outputs, be_ours_alone, kill_with_its_own};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a compiler's output to keep.
const SAID_BYTES: usize = 256 << 10;
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Ran {
    /// `None`: it timed out and was killed.
    pub(crate) status: Option<ExitStatus>,
    /// The end of its stdout and stderr.
    pub(crate) said: String,
}

/// A running compiler. It is killed on drop, with all that it has started.
struct Compiler(Child);

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ = kill_with_its_own(&mut self.0); // it may have ended by itself
    }
}

/// Runs it to its end, for at most `patience` and until the flag is set.
pub(crate) fn run(command: &mut Command, patience: Duration, interrupted: &AtomicBool) -> Result<Ran, P4Error> {
    let program = Path::new(command.get_program()).display().to_string();
    let failed = |error| P4Error::io(format!("run {program}"))(error);
    let (reader, writer) = io::pipe().map_err(failed)?;
    be_ours_alone(command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer));
    let spawned = command.spawn();
    // It holds the pipe's other end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut compiler = Compiler(spawned.map_err(failed)?);
    let outputs = Outputs::listen("mf-compiler", reader, SAID_BYTES, ()).map_err(failed)?;
    let status = wait(&mut compiler.0, patience, interrupted).map_err(P4Error::io(format!("wait for {program}")))?;
    if status.is_none() && interrupted.load(Ordering::Relaxed) {
        return Err(P4Error::Interrupted);
    }
    drop(compiler);
    Ok(Ran { status, said: outputs.last_lines() })
}

/// How it has ended; `None`: it has not, in time or before the flag was set.
fn wait(child: &mut Child, patience: Duration, interrupted: &AtomicBool) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() > until || interrupted.load(Ordering::Relaxed) => return Ok(None),
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}
