//! The configuration of a server, with the default of every bound and time.

use midflight_endpoint::{Nanos, SECOND};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// What a server says of its service time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceTime {
    /// That of the request that it answers: selectors average by themselves.
    #[default]
    Present,
    /// A mean of its requests, with weight 1/8 of the newest.
    Mean,
}

/// Addresses, bounds and times of a server. [`ServerConfig::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address by which operators know it, and requests name it.
    pub address: SocketAddr,
    /// The operator of its rack.
    pub operator: SocketAddr,
    /// The addresses of operators and selectors, from which requests may come; `None`: from anywhere, where the network keeps others away.
    pub senders: Option<BTreeSet<IpAddr>>,
    /// A random number of the caller's, which makes cookies.
    pub secret: u128,
    /// Requests that are served at once: 1 to 65,536. Default 4.
    pub slots: usize,
    /// Requests that may wait: at most 65,534, which a status can name. Default 1,024.
    pub queue_max: usize,
    /// A request that has waited for longer is refused. Default 1 s.
    pub wait_max: Nanos,
    /// A slot whose application says nothing for longer is free again. Default 10 s.
    pub serve_max: Nanos,
    /// What it says of its service time.
    pub service_time: ServiceTime,
    /// A cookie is valid in the interval of this length in which it was made, and in the next. Default 5 s.
    pub cookie: Nanos,
}

/// A number outside its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is {value}: set it to {range}")]
pub struct ConfigError {
    /// The field.
    pub name: &'static str,
    /// What it was set to.
    pub value: u64,
    /// What it may be.
    pub range: &'static str,
}

impl ServerConfig {
    /// The defaults. Requests may come from anywhere: set `senders`.
    #[must_use]
    pub fn new(address: SocketAddr, operator: SocketAddr, secret: u128) -> Self {
        Self {
            address,
            operator,
            senders: None,
            secret,
            slots: 4,
            queue_max: 1_024,
            wait_max: SECOND,
            serve_max: 10 * SECOND,
            service_time: ServiceTime::default(),
            cookie: 5 * SECOND,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let in_range = |name, value: u64, is_right: bool, range| {
            if is_right { Ok(()) } else { Err(ConfigError { name, value, range }) }
        };
        in_range("slots", self.slots as u64, (1..=1 << 16).contains(&self.slots), "1 to 65,536")?;
        in_range("queue_max", self.queue_max as u64, self.queue_max <= 65_534, "at most 65,534")?;
        for (name, value) in [("wait_max", self.wait_max), ("serve_max", self.serve_max), ("cookie", self.cookie)] {
            in_range(name, value, value > 0, "at least 1 ns")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_the_field_and_what_it_may_be() {
        let at = SocketAddr::from(([10, 0, 0, 1], 7800));
        let with = |change: fn(&mut ServerConfig)| {
            let mut config = ServerConfig::new(at, at, 1);
            change(&mut config);
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(with(|_| {}), Ok(()));
        assert_eq!(with(|c| c.slots = 0), Err("`slots` is 0: set it to 1 to 65,536".into()));
        assert_eq!(with(|c| c.queue_max = 65_535), Err("`queue_max` is 65535: set it to at most 65,534".into()));
        assert_eq!(with(|c| c.serve_max = 0), Err("`serve_max` is 0: set it to at least 1 ns".into()));
    }
}
