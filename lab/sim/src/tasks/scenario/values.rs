//! Values as people write them: times, nodes.

use midflight_endpoint::Nanos;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;

/// A time, written such as "500ns", "20us" or "1m 30s".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Nanos);

impl Time {
    pub(super) const fn us(us: u64) -> Self {
        Self(us * 1_000)
    }

    pub(super) const fn ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(std::time::Duration::from_nanos(self.0)).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a time of at least 0, such as \"500ns\", \"20us\" or \"1m 30s\"";
        let parse = |text: &str| humantime::parse_duration(text).ok()?.as_nanos().try_into().ok().map(Time);
        deserializer.deserialize_str(Words { expected: EXPECTED, parse })
    }
}

/// Reads words, and names the expected ones in errors.
struct Words<P> {
    expected: &'static str,
    parse: P,
}

impl<T, P: Fn(&str) -> Option<T>> Visitor<'_> for Words<P> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

/// A node, or all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A switch, from 0; without a number, all.
    Switch(Option<u32>),
    /// An executor, likewise.
    Executor(Option<u32>),
    /// A client, likewise.
    Client(Option<u32>),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(None) => f.write_str("switches"),
            Self::Executor(None) => f.write_str("executors"),
            Self::Client(None) => f.write_str("clients"),
            Self::Switch(Some(number)) => write!(f, "switch {number}"),
            Self::Executor(Some(number)) => write!(f, "executor {number}"),
            Self::Client(Some(number)) => write!(f, "client {number}"),
        }
    }
}

impl Who {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "switches" => return Some(Self::Switch(None)),
            "executors" => return Some(Self::Executor(None)),
            "clients" => return Some(Self::Client(None)),
            _ => {}
        }
        let (kind, number) = text.split_once(' ')?;
        let number = Some(number.trim().parse().ok()?);
        match kind {
            "switch" => Some(Self::Switch(number)),
            "executor" => Some(Self::Executor(number)),
            "client" => Some(Self::Client(number)),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str =
            "\"switch N\", \"executor N\" or \"client N\", or all: \"switches\", \"executors\", \"clients\"";
        deserializer.deserialize_str(Words { expected: EXPECTED, parse: Who::parse })
    }
}
