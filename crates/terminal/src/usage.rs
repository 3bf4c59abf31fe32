//! Exit codes, their errors, and parsers that several commands use.

use crate::columns::plain;
use anyhow::Result;
use std::net::SocketAddr;
use std::time::Duration;

/// The command line is wrong; the message says how to correct it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

/// A usage error with this message.
pub fn error(message: impl std::fmt::Display) -> anyhow::Error {
    UsageError(message.to_string()).into()
}

/// A signal ended the work; the message says what was done until then.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Interrupted(pub &'static str);

/// Exit code of a command that failed.
pub const FAILURE: u8 = 1;
/// Exit code of a wrong command line; also clap's.
pub const USAGE: u8 = 2;
/// Exit code of a command that succeeded, with the answer no.
pub const NO: u8 = 3;
/// Exit code of a check that reached a bound before it could decide.
pub const UNDECIDED: u8 = 4;
/// Exit code after Ctrl-C: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// An error and its causes on one line, without repetitions. It may quote text from another process.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line += &format!(": {cause}");
        }
    }
    plain(&line)
}

/// Parses a duration such as `2s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration_or_zero(text)?;
    if duration.is_zero() { Err("must be more than 0".into()) } else { Ok(duration) }
}

/// As [`duration`], but zero is valid.
///
/// # Errors
/// Says how to write one.
pub fn duration_or_zero(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| match text.parse::<u64>() {
        Ok(number) => format!("it has no unit: write {number}s for seconds, or as 500ms or 1m 30s"),
        Err(_) => "write it like 500ms, 2s or 1m 30s".to_owned(),
    })
}

/// The addresses of a comma-separated list of HOST:PORT.
pub fn resolve_all(list: &str) -> Result<Vec<SocketAddr>> {
    list.split(',').map(resolve).collect()
}

/// The first address of HOST:PORT.
pub fn resolve(name: &str) -> Result<SocketAddr> {
    midflight_host::resolve(name.trim()).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_port_says_how_to_write_it() {
        let error = resolve("localhost").unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(error.to_string().contains("as HOST:PORT"), "{error}");
    }

    #[test]
    fn lists_of_switches_keep_their_order() {
        let expected: Vec<SocketAddr> = vec!["127.0.0.1:1".parse().unwrap(), "127.0.0.2:2".parse().unwrap()];
        assert_eq!(resolve_all("127.0.0.1:1, 127.0.0.2:2").unwrap(), expected);
    }

    #[test]
    fn durations_are_more_than_zero() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("0s").is_err() && duration("5").is_err());
    }
}
