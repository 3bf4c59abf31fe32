//! Configuration of a cache client.

use super::client::{CacheClient, Parts};
use super::counters::Counts;
use super::handler::AnswerHandler;
use super::long::LongGets;
use super::streams::Streams;
use crate::clock;
use crate::driver::Driver;
use crate::error::Error;
use crate::socket::Socket;
use crate::socket::busy_poll::BUSY_POLL;
use crate::tasks::client::{CONNECT_TIMEOUT, local_for};
use crate::waker::Waker;
use midflight_cache::client::{Client, ClientConfig};
use midflight_cache::keyspace::Keyspace;
use midflight_cache::select::Algorithm;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Any key: what matters is that a server answers.
const PROBE_KEY: &str = "midflight";
const REPLICAS: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(2);
/// The clock does not accept every duration.
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3_600);

/// Builds a [`CacheClient`]; see [`CacheClient::builder`].
#[derive(Clone, Debug, Default)]
pub struct CacheBuilder {
    operator: Option<SocketAddr>,
    direct: Option<(Algorithm, u32)>,
    servers: Vec<SocketAddr>,
    replicas: Option<usize>,
    version: u16,
    bind: Option<SocketAddr>,
    timeout: Option<Duration>,
    in_flight: Option<usize>,
    connect_timeout: Option<Duration>,
    busy_poll: Option<Duration>,
}

impl CacheBuilder {
    /// The rack's operator: the network selects the replica that answers.
    #[must_use]
    pub fn operator(mut self, address: SocketAddr) -> Self {
        self.operator = Some(address);
        self
    }

    /// This client, one of `selectors`, selects the replica by this algorithm. No operator.
    #[must_use]
    pub fn direct(mut self, selector: Algorithm, selectors: u32) -> Self {
        self.direct = Some((selector, selectors));
        self
    }

    /// Adds a server: the address of its agent.
    #[must_use]
    pub fn server(mut self, address: SocketAddr) -> Self {
        self.servers.push(address);
        self
    }

    /// Adds servers. Their order does not matter.
    #[must_use]
    pub fn servers(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.servers.extend(addresses);
        self
    }

    /// Servers per key: 1 to 8. Default 3, or all if fewer.
    #[must_use]
    pub fn replicas(mut self, count: usize) -> Self {
        self.replicas = Some(count);
        self
    }

    /// Version of the server list, 0 to 4095. Raise it with every change, for all clients and the controller. Default 0.
    #[must_use]
    pub fn version(mut self, version: u16) -> Self {
        self.version = version;
        self
    }

    /// Local UDP address. Default: loopback if the operator, or all servers, are on loopback, else all interfaces.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Timeout of an operation. Default 2 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gets in flight: 1 to 65,536; four times as many may wait. Default 1,024.
    #[must_use]
    pub fn in_flight(mut self, most: usize) -> Self {
        self.in_flight = Some(most);
        self
    }

    /// How long [`connect`](Self::connect) waits for an answer. Default 3 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// How long a waiting thread polls the socket before it sleeps, yielding the core to others; saves wake-ups. Default 100 µs; zero:
    /// never.
    #[must_use]
    pub fn busy_poll(mut self, longest: Duration) -> Self {
        self.busy_poll = Some(longest);
        self
    }

    /// Starts the client, and waits until a server has answered a get.
    ///
    /// # Errors
    ///
    /// As [`connect_lazy`](Self::connect_lazy), and if no server answers in time.
    pub fn connect(self) -> Result<CacheClient, Error> {
        let within = self.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let addresses = self.operator.map_or_else(|| self.servers.clone(), |operator| vec![operator]);
        let client = self.connect_lazy()?;
        client.submit_get(PROBE_KEY)?.wait_timeout(within).ok_or(Error::NotConnected { addresses, within })??;
        Ok(client)
    }

    /// Starts the client, which sends nothing before the first operation.
    ///
    /// # Errors
    ///
    /// If the selection is not specified, servers or bounds are out of range, or the kernel refuses sockets or threads.
    pub fn connect_lazy(self) -> Result<CacheClient, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::invalid(&error);
        let replicas = self.replicas.unwrap_or(REPLICAS.min(self.servers.len()));
        let keyspace = Arc::new(Keyspace::new(&self.servers, replicas, self.version).map_err(|error| wrong(&error))?);
        let timeout = self.timeout.unwrap_or(TIMEOUT);
        if !TIMEOUTS.contains(&timeout) {
            return Err(Error::Invalid(format!("a timeout of {timeout:?}: it must be 1 ms to 1 h")));
        }
        let mut config = ClientConfig::new(rand::random());
        config.timeout = clock::nanos(timeout);
        config.under_way_max = self.in_flight.unwrap_or(config.under_way_max);
        config.queued_max = config.under_way_max.saturating_mul(4);
        let open_max = config.under_way_max + config.queued_max;
        let (endpoint, asked) = match (self.operator, self.direct) {
            (Some(operator), None) => (Client::new(config, operator), vec![operator]),
            (None, Some((selector, selectors))) => {
                let endpoint = Client::direct(config, &self.servers, |servers| selector.selector(servers, selectors));
                (endpoint, self.servers)
            }
            _ => {
                let both =
                    "say who selects: the operator of this machine's rack, or this client (direct), and not both";
                return Err(Error::Invalid(both.into()));
            }
        };
        let mut endpoint = endpoint.map_err(|error| wrong(&error))?;
        for (group, servers) in keyspace.groups() {
            endpoint.set_group(group, servers).map_err(|error| wrong(&error))?;
        }
        let counts = Arc::new(Counts::default());
        let streams = Arc::new(Streams::new(Arc::clone(&counts)));
        let long = Arc::new(LongGets::new(Arc::clone(&streams), Arc::clone(&counts)));
        let handler = AnswerHandler::new(Arc::clone(&keyspace), Arc::clone(&counts), Arc::clone(&long));
        let socket = Socket::bind(self.bind.unwrap_or_else(|| local_for(&asked)))?;
        let driver = Driver::new(endpoint, handler, socket, Waker::new()?);
        let busy_poll = self.busy_poll.unwrap_or(BUSY_POLL);
        CacheClient::start(Parts { driver, keyspace, streams, long, counts, open_max, timeout, busy_poll })
    }
}
