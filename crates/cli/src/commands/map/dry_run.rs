//! `--dry-run`: prints the commands that would run.

use super::joblog::Done;
use super::report::End;
use super::sources::{Entries, Entry};
use super::template::{Template, Values};
use super::{MOST_FAILED, say};
use anyhow::{Context, Result};
use midflight_tasks::functions::ExecRequest;
use std::io::{BufWriter, ErrorKind, Write};
use std::process::ExitCode;

pub(super) struct DryRun {
    pub template: Template,
    /// Without a command line.
    pub request: ExecRequest,
    pub done: Done,
    /// What a number counts: "line", or "command".
    pub noun: &'static str,
}

impl DryRun {
    /// Prints the commands. As in a run, the exit code counts those that cannot run. Stops when the reader closes the pipe.
    pub(super) fn run(mut self, mut entries: Entries) -> Result<ExitCode> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut failed = 0;
        for sequence in 1.. {
            let Some(entry) = entries.next()? else { break };
            let command = match self.command(&entry, sequence) {
                Ok(command) => command,
                Err(why) => {
                    failed += 1;
                    let place = format!("{} {}", self.noun, entry.number);
                    say(&End::Lost(why).note(&place, &entry.arguments.join(&b' '), None));
                    continue;
                }
            };
            let values = Values { arguments: &entry.arguments, sequence, slot: 1 };
            if self.done.has(sequence, &command, self.template.in_each_slot(values))? {
                continue;
            }
            let written = out.write_all(&command).and_then(|()| out.write_all(b"\n"));
            // Flush while no input is ready, for readers of a slow input.
            match written.and_then(|()| if entries.is_ready() { Ok(()) } else { out.flush() }) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                written => written.context("cannot write the output")?,
            }
        }
        match out.flush() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write the output"),
            _ => Ok(ExitCode::from(u8::try_from(failed.min(MOST_FAILED)).unwrap_or(u8::MAX))),
        }
    }

    /// The command line, or why an executor would refuse it.
    fn command(&self, entry: &Entry, sequence: u64) -> Result<Vec<u8>, String> {
        entry.check()?;
        let values = Values { arguments: &entry.arguments, sequence, slot: 1 };
        let command_line = self.template.expand(values)?;
        let request = ExecRequest { command_line, ..self.request.clone() };
        request.check().map_err(|error| error.to_string())?;
        Ok(request.command_line)
    }
}
