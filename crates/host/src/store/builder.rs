//! Configuration and start of a store client.

use super::client::StoreClient;
use super::handler::AnswerHandler;
use crate::clock;
use crate::driver::{Driver, Handler};
use crate::error::Error;
use crate::socket::Socket;
use crate::socket::busy_poll::BUSY_POLL;
use crate::tasks::client::{CONNECT_TIMEOUT, local_for};
use crate::waker::Waker;
use midflight_store::client::{Client, ClientConfig, Operation};
use std::net::SocketAddr;
use std::time::Duration;

/// Any key: what matters is that the store answers.
const PROBE_KEY: &str = "midflight";

/// Builds a [`StoreClient`]; see [`StoreClient::builder`].
#[derive(Clone, Debug, Default)]
pub struct StoreBuilder {
    switches: Vec<SocketAddr>,
    set: Option<u16>,
    bind: Option<SocketAddr>,
    lanes: Option<usize>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    busy_poll: Option<Duration>,
}

impl StoreBuilder {
    /// Adds a switch of the set, at least one. The next is used if one does not serve the set.
    #[must_use]
    pub fn switch(mut self, address: SocketAddr) -> Self {
        self.switches.push(address);
        self
    }

    /// Adds switches.
    #[must_use]
    pub fn switches(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.switches.extend(addresses);
        self
    }

    /// Number of the replica set. Default 1.
    #[must_use]
    pub fn set(mut self, number: u16) -> Self {
        self.set = Some(number);
        self
    }

    /// Local UDP address. Default: loopback if all switches are on loopback, else all interfaces.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Writes in flight: 1 to 256. Each takes a client id of the store. Default 16.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// Timeout of an operation. Default 10 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long [`connect`](Self::connect) waits for the store. Default 3 s.
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

    /// Starts the client, and waits until the store has answered a read.
    ///
    /// # Errors
    ///
    /// As [`connect_lazy`](Self::connect_lazy), and if the store does not answer in time.
    pub fn connect(self) -> Result<StoreClient, Error> {
        let within = self.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let addresses = self.switches.clone();
        let client = self.connect_lazy()?;
        let mut read = client.submit(Operation::Exists { key: PROBE_KEY.into() })?;
        read.wait_timeout(within).ok_or(Error::NotConnected { addresses, within })??;
        Ok(client)
    }

    /// Starts the client, which sends nothing before the first operation.
    ///
    /// # Errors
    ///
    /// If a bound is out of range or the kernel refuses sockets or threads.
    pub fn connect_lazy(self) -> Result<StoreClient, Error> {
        let bind = self.bind.unwrap_or_else(|| local_for(&self.switches));
        let mut config = ClientConfig::new(self.switches, self.set.unwrap_or(1), rand::random());
        config.lanes = self.lanes.unwrap_or(config.lanes);
        config.timeout = self.timeout.map_or(config.timeout, clock::nanos);
        let endpoint = Client::new(config, <AnswerHandler as Handler<Client>>::CLOCK());
        let endpoint = endpoint.map_err(|error| Error::invalid(&error))?;
        let driver = Driver::new(endpoint, AnswerHandler::default(), Socket::bind(bind)?, Waker::new()?);
        StoreClient::start(driver, self.busy_poll.unwrap_or(BUSY_POLL))
    }
}
