//! Addresses, bounds and times of an agent, with the default of each.

use crate::clock::nanos;
use crate::error::Error;
use crate::socket::SocketBuffers;
use midflight_replicas::client::ANSWERED_MAX;
use midflight_replicas::server::{ServerConfig, ServiceTime};
use midflight_replicas::store::StoreAddress;
use midflight_wire::PACKET_MAX;
use midflight_wire::replicas::store::StoreTell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A slot whose store says nothing is free by `store_timeout`; this long later the endpoint frees it itself, should that ever fail.
const SERVE_SLACK: Duration = Duration::from_secs(1);
/// The longest time that may be set; clock and kernel do not accept every number.
const LONGEST: Duration = Duration::from_secs(86_400);

/// How an agent runs. [`AgentOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Where operators and clients reach it, by UDP and TCP, and the address by which requests name it.
    pub address: SocketAddr,
    /// The operator of its rack; `None`: it answers direct requests only.
    pub operator: Option<SocketAddr>,
    /// The addresses of operators and selectors, from which requests may come; `None`: from anywhere, where the network keeps others away.
    pub senders: Option<BTreeSet<IpAddr>>,
    /// On loopback: sockets of other users than this one and root are not served; `None`: all are.
    pub only_user: Option<u32>,
    /// The store.
    pub store: StoreAddress,
    /// Requests in datagrams that the store is asked at once, each over a connection of its own. Default 4.
    pub slots: usize,
    /// Requests in datagrams that may wait. Default 1,024.
    pub queue_max: usize,
    /// A request in a datagram that has waited for longer is refused. Default 1 s.
    pub wait_max: Duration,
    /// A store that does not answer for longer is not waited for. Default 1 s.
    pub store_timeout: Duration,
    /// Bytes of the longest answer in a datagram, with all headers but those of UDP and IP: 256 to 1,232, the default.
    pub datagram_max: usize,
    /// What it says of its service time. Default: that of the request.
    pub service_time: ServiceTime,
    /// Requests of streams that the store is asked at once, each over a connection of its own. Default 4.
    pub stream_slots: usize,
    /// Streams at once. A source address that is alone gets 8/9 of them (T14). Each may take 2 MiB. Default 256.
    pub connections_max: usize,
    /// A stream begins its first request within this time, and ends each request, or its first 256 KiB, within this time of its
    /// beginning. Default 2 s.
    pub request_timeout: Duration,
    /// A stream on which nothing more is asked for this long is closed. Default 5 s.
    pub idle_timeout: Duration,
    /// A stream on which 256 KiB of a request or an answer take longer than this is closed. Default 10 s.
    pub progress_timeout: Duration,
    /// Sizes of the kernel's buffers of its UDP socket.
    pub buffers: SocketBuffers,
}

impl AgentOptions {
    /// The defaults. Only direct requests are answered: set `operator`, and `senders`.
    #[must_use]
    pub fn new(address: SocketAddr, store: StoreAddress) -> Self {
        Self {
            address,
            operator: None,
            senders: None,
            only_user: None,
            store,
            slots: 4,
            queue_max: 1_024,
            wait_max: Duration::from_secs(1),
            store_timeout: Duration::from_secs(1),
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

    /// What the endpoint does not check itself.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Configuration(text));
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
            ("store_timeout", self.store_timeout),
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
        // Without an operator nobody may send other requests than direct ones.
        let senders = if self.operator.is_none() { Some(BTreeSet::new()) } else { self.senders.clone() };
        ServerConfig {
            senders,
            slots: self.slots,
            queue_max: self.queue_max,
            wait_max: nanos(self.wait_max),
            serve_max: nanos(self.store_timeout + SERVE_SLACK),
            service_time: self.service_time,
            ..ServerConfig::new(address, self.operator.unwrap_or(address), secret)
        }
    }

    /// Bytes of the longest value that an answer in a datagram has room for.
    pub(super) fn value_in_datagram_max(&self) -> usize {
        ANSWERED_MAX - (PACKET_MAX - self.datagram_max) - size_of::<StoreTell>()
    }
}
