//! The clock that endpoints are driven by.

use midflight_endpoint::{Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC`: never goes back, and is the same in all processes of a machine.
#[must_use]
pub fn now() -> Nanos {
    nanos_of(ClockId::Monotonic)
}

/// The same of `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
#[must_use]
pub fn now_counting_suspension() -> Nanos {
    nanos_of(ClockId::Boottime)
}

/// The time of day, since 1970: only for others who want a date. It jumps when somebody sets the clock.
#[must_use]
pub fn unix() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Realtime)).unwrap_or_default() // before 1970
}

fn nanos_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// A duration in nanoseconds, at most 584 years.
#[must_use]
pub fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
