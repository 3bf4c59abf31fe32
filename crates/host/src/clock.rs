//! The clock that endpoints are driven by.

use midflight_endpoint::{Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};

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

/// The time of day, in seconds since 1970: only for others who want a date. It jumps when somebody sets the clock.
#[cfg(feature = "agent")]
pub(crate) fn unix_s() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0)
}

fn nanos_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// A duration in nanoseconds, at most 584 years.
#[must_use]
pub fn nanos(duration: std::time::Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
