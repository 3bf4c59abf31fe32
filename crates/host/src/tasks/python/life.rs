//! A worker's process, and ending it with all its descendants.

use super::channel::Channel;
use super::places::{Place, Room};
use crate::tasks::exec::marks::{Mark, kill_marked};
use crate::tasks::exec::reaper::Record;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::Duration;

const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// A process whose status has not been collected.
#[derive(Debug)]
pub(super) struct Life {
    child: Child,
    /// Dropped before the status is collected, which frees the process id.
    record: Option<Record>,
    place: Place,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    pub(super) signal: Option<u8>,
    pub(super) code: i32,
    /// Killed, but alive: the kernel waits for something, such as a disk.
    pub(super) is_stuck: bool,
    pub(super) lines: String,
}

impl Ended {
    /// For users: "signal 11, SIGSEGV", "exit code 3".
    pub(super) fn how(&self) -> String {
        if self.is_stuck {
            return "it was killed, and does not end".to_owned();
        }
        match self.signal {
            Some(signal) => match Signal::from_named_raw(signal.into()) {
                Some(named) => format!("signal {signal}, {}", name(named)),
                None => format!("signal {signal}"),
            },
            None => format!("exit code {}", self.code),
        }
    }

    pub(super) fn last_line(&self) -> &str {
        self.lines.lines().last().unwrap_or("it said nothing")
    }
}

fn name(signal: Signal) -> String {
    format!("{signal:?}").trim_matches('"').replace("Signal::", "SIG")
}

impl Life {
    pub(super) fn new(child: Child, record: Record, place: Place) -> Self {
        Self { child, record: Some(record), place }
    }

    /// Allows another worker while this one waits for other tasks.
    pub(super) fn make_room(&self) -> Room {
        self.place.make_room()
    }

    pub(super) fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn mark(&self) -> Option<Mark> {
        self.record.as_ref().map(Record::mark)
    }

    /// Also kills descendants of a process that died by itself. Its id stays reserved until its status is collected.
    fn kill(&self) {
        let _ = kill_process_group(self.group(), Signal::KILL); // fails if it has ended
        kill_marked(&self.mark().into_iter().collect::<HashSet<_>>());
    }

    fn collect(mut self) -> Ended {
        self.record = None;
        let status = self.child.wait().ok();
        let signal = status.and_then(|status| status.signal()).and_then(|signal| u8::try_from(signal).ok());
        let code = status.and_then(|status| status.code()).unwrap_or(0);
        Ended { signal, code, ..Ended::default() }
    }

    /// Ends a process that was just started and cannot be used.
    pub(super) fn discard(self) {
        self.kill();
        self.collect();
    }

    pub(super) fn end(self, channel: &Channel) -> Ended {
        self.kill();
        if channel.has_ended_within(KILL_PATIENCE) {
            return self.collect();
        }
        tracing::warn!(
            "the Python worker {} was killed and does not end: is a disk or a network file system slow?",
            self.child.id()
        );
        // It keeps its place while it lives.
        let waits = std::thread::Builder::new().name("mf-python-end".into()).spawn(move || {
            let _ = waitid(WaitId::Pid(self.group()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            self.collect()
        });
        if let Err(error) = waits {
            tracing::warn!("no thread can be had to wait for it: {error}");
        }
        Ended { is_stuck: true, ..Ended::default() }
    }
}
