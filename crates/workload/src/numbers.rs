//! Fields of a line as numbers.

use super::lines::Reason;

/// 146 years: no time of a trace is further from zero, so the difference of two fits 64 bits.
const LONGEST_NS: u64 = 1 << 62;

/// Seconds with decimals, as nanoseconds.
pub(super) fn seconds(field: &'static str, text: &str) -> Result<u64, Reason> {
    let wrong = || not_a_number(field, text, "a number of seconds from 0 to 4.6e9");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    let ns = (seconds * 1e9).round();
    if (0.0..=LONGEST_NS as f64).contains(&ns) { Ok(ns as u64) } else { Err(wrong()) }
}

/// Whole units of `unit_ns` nanoseconds, as nanoseconds.
pub(super) fn whole(field: &'static str, text: &str, unit_ns: u64) -> Result<u64, Reason> {
    let units = integer(field, text)?;
    let ns = units.checked_mul(unit_ns).filter(|&ns| ns <= LONGEST_NS);
    ns.ok_or_else(|| not_a_number(field, text, "a time within 146 years"))
}

/// As [`whole`], but may be negative.
pub(super) fn signed(field: &'static str, text: &str, unit_ns: u64) -> Result<i64, Reason> {
    match text.strip_prefix('-') {
        Some(before) => Ok(-(whole(field, before, unit_ns)? as i64)),
        None => Ok(whole(field, text, unit_ns)? as i64),
    }
}

pub(super) fn integer(field: &'static str, text: &str) -> Result<u64, Reason> {
    if text.is_empty() {
        return Err(Reason::Empty { field });
    }
    text.parse().map_err(|_| not_a_number(field, text, "a whole number from 0"))
}

pub(super) fn not_a_number(field: &'static str, text: &str, wanted: &'static str) -> Reason {
    const SHOWN: usize = 32;
    let mut short: String = text.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    Reason::NotANumber { field, text: short, wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_take_decimals_and_refuse_what_is_no_time() {
        assert_eq!(seconds("arrival", "0.0131529"), Ok(13_152_900));
        for text in ["-1", "NaN", "inf", "1e300", "", "abc"] {
            assert!(seconds("arrival", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_field_is_shortened_in_the_message() {
        let reason = integer("tasks", &"x".repeat(1000)).unwrap_err();
        assert!(reason.to_string().len() < 100, "{reason}");
    }

    #[test]
    fn whole_units_that_overflow_are_refused() {
        assert_eq!(whole("time", "7", 1_000), Ok(7_000));
        assert!(whole("time", &u64::MAX.to_string(), 1_000).is_err());
    }
}
