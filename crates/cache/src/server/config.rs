pub use midflight_endpoint::config::OutOfRange as ConfigError;
use midflight_endpoint::config::in_range;
use midflight_endpoint::{Nanos, SECOND};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// The service time that a server reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceTime {
    /// That of the answered request; selectors average.
    #[default]
    Present,
    /// A mean over its requests, with weight 1/8 for the newest.
    Mean,
}

/// Addresses, bounds and times of a server. [`ServerConfig::new`] sets the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address that requests name.
    pub address: SocketAddr,
    /// The operator of its rack.
    pub operator: SocketAddr,
    /// Addresses of operators and selectors whose requests are accepted; `None`: all, if the network protects the server. Direct requests
    /// need a cookie instead.
    pub senders: Option<BTreeSet<IpAddr>>,
    /// Random key of the cookies.
    pub secret: u128,
    /// Requests served concurrently; 1 to 65,536, default 4.
    pub slots: usize,
    /// Bound on queued requests; at most 65,534, which fits a status. Default 1,024.
    pub queue_max: usize,
    /// Longest wait in the queue; then the request is refused. Default 1 s.
    pub wait_max: Nanos,
    /// Time for the application to answer; then its slot is freed. Default 10 s.
    pub serve_max: Nanos,
    /// The reported service time.
    pub service_time: ServiceTime,
    /// A cookie is valid in its interval of this length and in the next. Default 5 s.
    pub cookie: Nanos,
}

impl ServerConfig {
    /// The defaults, which accept requests from anywhere: set `senders`.
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
