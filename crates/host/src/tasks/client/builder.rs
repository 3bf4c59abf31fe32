//! Configuration and start of a client.

use super::Client;
use crate::blob::BlobOptions;
use crate::error::Error;
use crate::socket::busy_poll::BUSY_POLL;
use std::net::SocketAddr;
use std::time::Duration;

/// Default time for the first answer, of all clients.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Builds a [`Client`]; see [`Client::builder`].
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    pub(super) switches: Vec<SocketAddr>,
    pub(super) bind: Option<SocketAddr>,
    pub(super) uid: u32,
    pub(super) max_open: usize,
    pub(super) wait_for_room: bool,
    pub(super) value_max: u32,
    pub(super) files: bool,
    pub(super) blobs: BlobOptions,
    pub(super) fetchers: usize,
    pub(super) connect_timeout: Duration,
    pub(super) busy_poll: Duration,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            switches: Vec::new(),
            bind: None,
            uid: rustix::process::getuid().as_raw(),
            max_open: 1 << 20,
            wait_for_room: true,
            value_max: 64 << 20,
            files: false,
            blobs: BlobOptions::default(),
            fetchers: 16,
            connect_timeout: CONNECT_TIMEOUT,
            busy_poll: BUSY_POLL,
        }
    }
}

impl ClientBuilder {
    /// Adds a switch, at least one. The first is preferred; the others are used when it fails.
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

    /// Local UDP address, also for the TCP server of arguments. Default: loopback if all switches are on loopback, else all interfaces.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// User id, the first part of a task's name. Default: that of the process.
    #[must_use]
    pub fn uid(mut self, uid: u32) -> Self {
        self.uid = uid;
        self
    }

    /// Open tasks at a time. Default 1,048,576.
    #[must_use]
    pub fn max_open(mut self, most: usize) -> Self {
        self.max_open = most;
        self
    }

    /// Whether `submit` waits at `max_open` instead of failing. Default yes.
    #[must_use]
    pub fn wait_for_room(mut self, waits: bool) -> Self {
        self.wait_for_room = waits;
        self
    }

    /// Longest result in bytes fetched into memory ([`TaskResult::value`](crate::TaskResult::value)). Default 64 MiB.
    #[must_use]
    pub fn value_max(mut self, bytes: u32) -> Self {
        self.value_max = bytes;
        self
    }

    /// Whether longer results are fetched into files ([`TaskResult::file`](crate::TaskResult::file)). Default no: they end as
    /// [`TaskError::TooLarge`](crate::TaskError::TooLarge).
    #[must_use]
    pub fn files(mut self, files: bool) -> Self {
        self.files = files;
        self
    }

    /// Bounds of arguments by reference and of results in files.
    #[must_use]
    pub fn blobs(mut self, options: BlobOptions) -> Self {
        self.blobs = options;
        self
    }

    /// Concurrent fetches of results; from one address at most half of them, rounded up. Default 16.
    #[must_use]
    pub fn fetchers(mut self, most: usize) -> Self {
        self.fetchers = most;
        self
    }

    /// How long [`connect`](Self::connect) waits for a switch. Default 3 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long a waiting thread polls the socket before it sleeps, yielding the core to others; saves wake-ups. Default 100 µs; zero:
    /// never.
    #[must_use]
    pub fn busy_poll(mut self, longest: Duration) -> Self {
        self.busy_poll = longest;
        self
    }

    /// Starts the client, and waits until a switch has answered.
    ///
    /// # Errors
    ///
    /// As [`connect_lazy`](Self::connect_lazy), and if no switch answers in time.
    pub fn connect(self) -> Result<Client, Error> {
        let (addresses, within) = (self.switches.clone(), self.connect_timeout);
        let client = self.connect_lazy()?;
        if client.wait_connected(within) { Ok(client) } else { Err(Error::NotConnected { addresses, within }) }
    }

    /// Starts the client, which contacts its switches in the background; see [`Client::wait_connected`].
    ///
    /// # Errors
    ///
    /// If an option is out of range or the kernel refuses sockets or threads.
    pub fn connect_lazy(self) -> Result<Client, Error> {
        Client::start(self)
    }
}
