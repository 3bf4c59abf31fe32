//! Numbers as text: times in a fitting unit, large numbers in groups of three digits.

use indicatif::{BinaryBytes, HumanCount};
use std::time::Duration;

/// From here on, times are written in whole seconds, minutes and hours.
const LONG_NS: u64 = 99_950_000_000;

/// Nanoseconds with a fitting unit and three digits: 12.3 µs; from a hundred seconds on as 2m 5s.
#[must_use]
pub fn time(ns: u64) -> String {
    if ns == 0 {
        return "0".into();
    }
    if ns >= LONG_NS {
        let seconds = Duration::from_nanos(ns).as_secs_f64().round();
        return humantime::format_duration(Duration::from_secs(seconds as u64)).to_string();
    }
    let (unit_ns, unit) = time_unit(ns as f64);
    let value = ns as f64 / unit_ns;
    let decimals = match value {
        _ if unit_ns == 1.0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Nanoseconds with a fitting unit and all their digits: 500 µs, 2.5 ms.
#[must_use]
pub fn short_time(ns: f64) -> String {
    let (unit_ns, unit) = time_unit(ns);
    if ns == 0.0 { "0".into() } else { format!("{} {unit}", short_number(ns / unit_ns)) }
}

/// The largest unit that is at most `ns`, in nanoseconds, and its name.
fn time_unit(ns: f64) -> (f64, &'static str) {
    match ns {
        ..1e3 => (1.0, "ns"),
        ..1e6 => (1e3, "µs"),
        ..1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A duration, as [`time`].
#[must_use]
pub fn duration(duration: Duration) -> String {
    time(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// 2300000 as 2.3 M, 0.5 as 0.5.
#[must_use]
pub fn short_number(value: f64) -> String {
    let (unit, name) = match value.abs() {
        1e6.. => (1e6, " M"),
        1e4.. => (1e3, " K"),
        _ => (1.0, ""),
    };
    let rounded = (value / unit * 1e3).round() / 1e3;
    if rounded.fract() == 0.0 && rounded >= 0.0 {
        return format!("{}{name}", thousands(rounded as u64));
    }
    format!("{rounded}{name}")
}

/// Bytes with a fitting unit: 17 B, 1.05 MiB.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

/// 1234567 as 1,234,567.
#[must_use]
pub fn thousands(number: u64) -> String {
    HumanCount(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_three_digits() {
        let written = [0, 999, 9_994, 12_345, 999_000, 5_000_000, 61_000_000_000].map(time);
        assert_eq!(written, ["0", "999 ns", "9.99 µs", "12.3 µs", "999 µs", "5.00 ms", "61.0 s"]);
        assert_eq!(
            [99_949, 99_950, 125_400, 7_384_000].map(|ms| time(ms * 1_000_000)),
            ["99.9 s", "1m 40s", "2m 5s", "2h 3m 4s"]
        );
    }

    #[test]
    fn short_ones_have_the_digits_that_they_need() {
        assert_eq!([0.0, 5e5, 2.5e6, 1e10].map(short_time), ["0", "500 µs", "2.5 ms", "10 s"]);
        assert_eq!([0.5, 9e3, 1e4, 2.3e6].map(short_number), ["0.5", "9,000", "10 K", "2.3 M"]);
        assert_eq!([0, 999, 1_234_567].map(thousands), ["0", "999", "1,234,567"]);
        assert_eq!([0, 999, 1_100_000, 10 << 30].map(bytes), ["0 B", "999 B", "1.05 MiB", "10.00 GiB"]);
    }
}
