//! A closed loop: clients resubmit tasks that end.

use super::{Cell, Load};
use midflight_endpoint::Nanos;

/// As many tasks as fit in a packet.
const JOB: u32 = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    tasks: u32,
    /// Tasks that ended or were never submitted.
    pub(crate) owed: u32,
    until: Nanos,
}

impl Closed {
    /// A client's share, if each of the cell's clients is split into `shares`; `None` if the load is no closed loop.
    pub(crate) fn of(cell: &Cell, shares: u32) -> Option<Self> {
        let Load::Noop { clients, backlog } = cell.load else { return None };
        let all = u64::from(backlog) * cell.cluster.executors();
        let tasks = all.div_ceil(u64::from(clients) * u64::from(shares)) as u32;
        Some(Self { tasks, owed: tasks, until: cell.duration_ms * 1_000_000 })
    }

    /// Tasks to submit now, as one job.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<u32> {
        let job = JOB.min(self.tasks);
        if self.owed < job || now >= self.until {
            return None;
        }
        self.owed -= job;
        Some(job)
    }
}
