//! A backend's address and protocol, written as one word.

use super::Dialect;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use thiserror::Error;

/// A backend's location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// `HOST:PORT`; the host name is resolved at each connection attempt.
    Tcp(String),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendAddress {
    /// Its protocol.
    pub dialect: Dialect,
    /// Its location.
    pub at: At,
}

/// An invalid backend address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} names no backend: {why}; write memcached://HOST:PORT, memcached:///PATH, redis://HOST:PORT, redis://HOST:PORT/DATABASE or \
     redis+unix:///PATH"
)]
pub struct AddressError {
    text: String,
    why: &'static str,
}

impl FromStr for BackendAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|why| AddressError { text: text.into(), why })
    }
}

fn parse(text: &str) -> Result<BackendAddress, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or("it has no ://")?;
    if rest.contains('@') {
        return Err("names and passwords are not supported");
    }
    let redis = |database| Dialect::Redis { database };
    match (scheme, rest.starts_with('/')) {
        ("memcached", true) => Ok(BackendAddress { dialect: Dialect::Memcached, at: unix(rest)? }),
        ("memcached", false) => Ok(BackendAddress { dialect: Dialect::Memcached, at: tcp(rest, "11211")? }),
        ("redis+unix", true) => Ok(BackendAddress { dialect: redis(0), at: unix(rest)? }),
        ("redis+unix", false) => Err("its path does not begin with /"),
        ("redis", true) => Err("it has no host; of a Unix socket write redis+unix"),
        ("redis", false) => {
            let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
            let is_number = database.bytes().all(|byte| byte.is_ascii_digit());
            let database = if database.is_empty() { Some(0) } else { database.parse().ok().filter(|_| is_number) };
            let dialect = redis(database.ok_or("its database is no number")?);
            Ok(BackendAddress { dialect, at: tcp(place, "6379")? })
        }
        _ => Err("it is neither memcached nor Redis"),
    }
}

fn unix(path: &str) -> Result<At, &'static str> {
    if path.len() < 2 { Err("it has no path") } else { Ok(At::Unix(path.into())) }
}

/// `HOST` or `HOST:PORT`; an IPv6 address is in brackets.
fn tcp(place: &str, port: &str) -> Result<At, &'static str> {
    let after_brackets = place.rsplit(']').next().unwrap_or(place);
    let (host, port) = match after_brackets.rsplit_once(':') {
        Some((_, own)) => (&place[..place.len() - own.len() - 1], own),
        None => (place, port),
    };
    if host.is_empty() || host.contains(['/', ' ']) {
        return Err("it has no host");
    }
    if host.contains(':') && !host.starts_with('[') {
        return Err("an IPv6 address stands in brackets");
    }
    match port.parse::<u16>() {
        Ok(1..) => Ok(At::Tcp(format!("{host}:{port}"))),
        _ => Err("its port is none"),
    }
}

impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.dialect, &self.at) {
            (Dialect::Memcached, At::Tcp(place)) => write!(f, "memcached://{place}"),
            (Dialect::Memcached, At::Unix(path)) => write!(f, "memcached://{}", path.display()),
            (Dialect::Redis { database: 0 }, At::Tcp(place)) => write!(f, "redis://{place}"),
            (Dialect::Redis { database }, At::Tcp(place)) => write!(f, "redis://{place}/{database}"),
            (Dialect::Redis { .. }, At::Unix(path)) => write!(f, "redis+unix://{}", path.display()),
        }
    }
}
