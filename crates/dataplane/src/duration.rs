//! Durations in configurations, as text.

use midflight_endpoint::Nanos;
use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

/// Reads a duration such as "500ms".
///
/// # Errors
/// If the text is not a duration.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text)
        .map_err(|_| D::Error::custom(format!("\"{text}\" is not a duration such as \"500ms\" or \"1m 30s\"")))
}

/// Reads a duration in nanoseconds, at most 584 years.
///
/// # Errors
/// As [`duration`].
pub fn nanos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    duration(deserializer).map(|time| Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX))
}
