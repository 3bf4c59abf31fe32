//! The size of a queue in a pipeline.

use midflight_asic::Program;
use midflight_dataplane::TasksConfig;
use std::time::Duration;

/// Entries of all levels together that fit a pipeline.
const ENTRIES_MAX: u32 = 64 << 10;
const POLL: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) program: Program,
    /// Priority levels, 1 to 4.
    pub(super) levels: u32,
    /// Entries per level, a power of two.
    pub(super) entries: u32,
    pub(super) poll_us: u16,
}

impl Queue {
    pub(super) const LEVELS_MAX: u32 = 4;

    /// As `tasks` configures, but at most four levels of 16,384 entries, or fewer levels with more entries each.
    pub(super) fn of(program: Program, tasks: &TasksConfig, poll: Option<Duration>) -> Self {
        let levels = tasks.levels.clamp(1, Self::LEVELS_MAX);
        let rows = levels.next_power_of_two();
        let wanted = (tasks.queue / rows).max(2);
        let poll_us = u16::try_from(poll.unwrap_or(POLL).as_micros()).unwrap_or(u16::MAX);
        Self { program, levels, entries: (1 << wanted.ilog2()).min(ENTRIES_MAX / rows), poll_us }
    }
}
