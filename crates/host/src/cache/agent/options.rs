//! Addresses, bounds and times of an agent, with their defaults.

use crate::clock::nanos;
use crate::error::Error;
use crate::socket::SocketBuffers;
use midflight_cache::backend::BackendAddress;
use midflight_cache::client::ANSWERED_MAX;
use midflight_cache::server::{ServerConfig, ServiceTime};
use midflight_wire::PACKET_MAX;
use midflight_wire::cache::backend::BackendTell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The endpoint frees a slot this long after `backend_timeout`, should the agent fail to.
const SERVE_SLACK: Duration = Duration::from_secs(1);
/// Clock and kernel do not accept every duration.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Options of an agent. [`AgentOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// UDP and TCP address for operators and clients; also the agent's name in requests.
    pub address: SocketAddr,
    /// The rack's operator; `None`: only direct requests are answered.
    pub operator: Option<SocketAddr>,
    /// Permitted senders: operators and selectors; `None`: any, for networks that filter.
    pub senders: Option<BTreeSet<IpAddr>>,
    /// On loopback: serve only this user and root; `None`: all users.
    pub only_user: Option<u32>,
    /// The backend.
    pub backend: BackendAddress,
    /// Requests by datagram in progress, each with its own backend connection. Default 4.
    pub slots: usize,
    /// Requests by datagram that may wait. Default 1,024.
    pub queue_max: usize,
    /// Longest wait of a request by datagram before it is refused. Default 1 s.
    pub wait_max: Duration,
    /// Timeout for a response from the backend. Default 1 s.
    pub backend_timeout: Duration,
    /// Longest answer in a datagram, in bytes without UDP and IP headers: 256 to 1,232. Default 1,232.
    pub datagram_max: usize,
    /// The service time to report. Default: that of the request.
    pub service_time: ServiceTime,
    /// Requests by stream in progress, each with its own backend connection. Default 4.
    pub stream_slots: usize,
    /// Streams at a time, up to 2 MiB each. A single source address gets at most 8/9 (T14). Default 256.
    pub connections_max: usize,
    /// Timeout for a stream's first request to begin, and for each request, or its first 256 KiB, to arrive. Default 2 s.
    pub request_timeout: Duration,
    /// Idle timeout of a stream. Default 5 s.
    pub idle_timeout: Duration,
    /// Timeout for 256 KiB of a request or a response. Default 10 s.
    pub progress_timeout: Duration,
    /// Sizes of the UDP socket's kernel buffers.
    pub buffers: SocketBuffers,
}

impl AgentOptions {
    /// The defaults. Set `operator` and `senders` for other than direct requests.
    #[must_use]
    pub fn new(address: SocketAddr, backend: BackendAddress) -> Self {
        Self {
            address,
            operator: None,
            senders: None,
            only_user: None,
            backend,
            slots: 4,
            queue_max: 1_024,
            wait_max: Duration::from_secs(1),
            backend_timeout: Duration::from_secs(1),
            datagram_max: PACKET_MAX,
            service_time: ServiceTime::default(),
            stream_slots: 4,
            connections_max: 256,
            request_timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(5),
            progress_timeout: Duration::from_secs(10),
            buffers: SocketBuffers::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Invalid(text));
        if self.address.ip().is_unspecified() {
            return wrong(format!(
                "requests name the agent by its address, and {} is none: listen on the one that operators send to",
                self.address
            ));
        }
        if !(256..=PACKET_MAX).contains(&self.datagram_max) {
            return wrong(format!("`datagram_max` is {}: set it to 256 to {PACKET_MAX}", self.datagram_max));
        }
        for (name, value) in [("stream_slots", self.stream_slots), ("connections_max", self.connections_max)] {
            if !(1..=1 << 16).contains(&value) {
                return wrong(format!("`{name}` is {value}: set it to 1 to 65,536"));
            }
        }
        for (name, time) in [
            ("backend_timeout", self.backend_timeout),
            ("request_timeout", self.request_timeout),
            ("idle_timeout", self.idle_timeout),
            ("progress_timeout", self.progress_timeout),
        ] {
            if time.is_zero() || time > LONGEST {
                return wrong(format!("`{name}` is {time:?}: set it to more than nothing, and at most a day"));
            }
        }
        Ok(())
    }

    pub(super) fn server_config(&self, address: SocketAddr, secret: u128) -> ServerConfig {
        // Without an operator, only direct requests are accepted.
        let senders = if self.operator.is_none() { Some(BTreeSet::new()) } else { self.senders.clone() };
        ServerConfig {
            senders,
            slots: self.slots,
            queue_max: self.queue_max,
            wait_max: nanos(self.wait_max),
            serve_max: nanos(self.backend_timeout + SERVE_SLACK),
            service_time: self.service_time,
            ..ServerConfig::new(address, self.operator.unwrap_or(address), secret)
        }
    }

    /// Longest value, in bytes, that fits into an answer by datagram.
    pub(super) fn value_in_datagram_max(&self) -> usize {
        ANSWERED_MAX - (PACKET_MAX - self.datagram_max) - size_of::<BackendTell>()
    }
}
