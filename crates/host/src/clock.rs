//! Clocks.

use midflight_endpoint::{Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC`, which never goes back and is common to all processes.
#[must_use]
pub fn now() -> Nanos {
    nanos_of(ClockId::Monotonic)
}

/// Nanoseconds of `CLOCK_BOOTTIME`, which also counts suspension.
#[must_use]
pub fn now_counting_suspension() -> Nanos {
    nanos_of(ClockId::Boottime)
}

/// Time since 1970, for external uses that need a date. Jumps when the clock is set.
#[must_use]
pub fn unix() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Realtime)).unwrap_or_default() // before 1970
}

fn nanos_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// Converts to nanoseconds, saturating at 584 years.
#[must_use]
pub fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
