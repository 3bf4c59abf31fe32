//! An RSNode's selector process. It takes requests and copies of answers from its operator, chooses a server, and sends the request there
//! (NetRS IV-C).
//!
//! | file | content |
//! |---|---|
//! | `table` | requests in flight, by the retaining value (RV) that their answers repeat |
//! | `groups` | replica groups and their servers |
//! | `waiting` | requests held by rate control |

pub(crate) mod groups;
pub(crate) mod table;
mod waiting;

pub use groups::{GroupError, Most};

use crate::select::{Choice, Counts, Learned, Selector, Server, Status, Tally};
use groups::Groups;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_wire::cache::{Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, Packet, ServerStatus, parse};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::net::SocketAddr;
use table::{Table, UnderWay};
use thiserror::Error;
use waiting::Waiting;
use zerocopy::{FromBytes, IntoBytes};

/// Bounds and times of an RSNode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RsNodeConfig {
    /// Its operator; datagrams from others are dropped.
    pub operator: SocketAddr,
    /// Requests in flight to track; at most 65,536, default 8,192. Others are sent too, but their answers are not seen.
    pub under_way: u32,
    /// Time after which a request without an answer is no longer outstanding. Default 1 s.
    pub expire: Nanos,
    /// Bound on requests held by rate control; others go to their backups. Default 1,024.
    pub waiting: usize,
    /// Longest hold by rate control; then the request goes to its backup. Default 20 ms, an interval of C3's.
    pub hold: Nanos,
}

impl RsNodeConfig {
    /// The defaults.
    #[must_use]
    pub fn new(operator: SocketAddr) -> Self {
        Self { operator, under_way: 8_192, expire: SECOND, waiting: 1_024, hold: 20 * MS }
    }
}

midflight_endpoint::counters! {
    /// Outcomes of requests and answers.
    pub struct RsNodeCounters {
        /// Requests sent to a selected server.
        pub selected,
        /// Selected requests that found the table full, so their answers are not copied to this RSNode.
        pub untracked,
        /// Requests of an unknown replica group; sent to their backups (N3).
        pub unknown_group,
        /// Requests that rate control could not hold, because too many waited; sent to their backups.
        pub waiting_full,
        /// Requests held too long by rate control; sent to their backups.
        pub held_too_long,
        /// Requests dropped: their backup is not a known server.
        pub unknown_server,
        /// Answers that match a request in flight.
        pub answered,
        /// Answers without such a request: late, duplicate or forged.
        pub unmatched,
        /// Answers without a readable status.
        pub without_status,
        /// Requests not answered in time.
        pub expired,
        /// Datagrams that are neither requests nor answers, or not from the operator.
        pub foreign,
    }
}

/// An RSNode as a state machine.
pub struct RsNode {
    config: RsNodeConfig,
    selector: Box<dyn Selector + Send>,
    groups: Groups,
    table: Table,
    random: Pcg64Mcg,
    waiting: Waiting,
    ready: VecDeque<(SocketAddr, Vec<u8>)>,
    counters: RsNodeCounters,
}

impl std::fmt::Debug for RsNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RsNode").field("config", &self.config).field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// A selector's view of a server, for display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenServer {
    /// Its address.
    pub address: SocketAddr,
    /// Requests neither answered nor expired.
    pub outstanding: u32,
    /// Totals of its requests.
    pub tally: Tally,
    /// What is known of it; `None`: nothing recent.
    pub learned: Option<Learned>,
}

/// More servers than 16-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} servers: an RSNode knows 65,535 at most")]
pub struct TooManyServers(usize);

impl RsNode {
    /// An RSNode without replica groups. `servers` lists all servers; `selector` creates a selector for their number; `seed` is random.
    ///
    /// # Errors
    /// If there are more than 65,535 servers.
    pub fn new(
        config: RsNodeConfig,
        servers: &[SocketAddr],
        seed: u64,
        selector: impl FnOnce(u16) -> Box<dyn Selector + Send>,
    ) -> Result<Self, TooManyServers> {
        let count = u16::try_from(servers.len()).map_err(|_| TooManyServers(servers.len()))?;
        Ok(Self::with(config, Groups::new(servers), seed, selector(count)))
    }

    /// An RSNode that learns its servers from its replica groups, within bounds.
    #[must_use]
    pub fn learning(
        config: RsNodeConfig,
        most: Most,
        seed: u64,
        selector: impl FnOnce(u16) -> Box<dyn Selector + Send>,
    ) -> Self {
        Self::with(config, Groups::learning(most), seed, selector(most.servers))
    }

    fn with(config: RsNodeConfig, groups: Groups, seed: u64, selector: Box<dyn Selector + Send>) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let generation = random.next_u32() as u16;
        Self {
            table: Table::new(config.under_way, generation),
            groups,
            selector,
            random,
            waiting: Waiting::new(config.waiting, config.hold),
            config,
            ready: VecDeque::new(),
            counters: RsNodeCounters::default(),
        }
    }

    /// Adds a replica group. An existing group is not changed.
    ///
    /// # Errors
    /// If a server is unknown, the servers are not valid candidates, or the group exists with others.
    pub fn set_group(&mut self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        self.groups.set(group, servers)
    }

    /// Outcomes of requests and answers.
    #[must_use]
    pub fn counters(&self) -> RsNodeCounters {
        self.counters
    }

    /// The selector's counts of implausible input.
    #[must_use]
    pub fn disbelieved(&self) -> Counts {
        self.selector.counts()
    }

    /// Sets how many selectors share the servers.
    pub fn set_selectors(&mut self, selectors: u32) {
        self.selector.set_selectors(selectors);
    }

    /// Its selector.
    #[must_use]
    pub fn selector(&self) -> &dyn Selector {
        &*self.selector
    }

    /// The selector's view of at most `count` servers, from number `first` on.
    #[must_use]
    pub fn servers(&self, now: Nanos, first: usize, count: usize) -> Vec<SeenServer> {
        let numbered = self.groups.addresses().iter().zip(0..=u16::MAX).skip(first).take(count);
        let see = |(&address, number)| SeenServer {
            address,
            outstanding: self.selector.outstanding(Server(number)),
            tally: self.selector.tally(Server(number)),
            learned: self.selector.learned(now, Server(number)),
        };
        numbered.map(see).collect()
    }

    /// Requests in flight.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.table.len()
    }

    fn request(&mut self, now: Nanos, datagram: &[u8]) {
        let Ok((request, _)) = NetrsRequest::ref_from_prefix(datagram) else { return };
        let Some(candidates) = self.groups.get(request.group()) else {
            self.counters.unknown_group += 1;
            if planted(224) {
                return self.send(now, datagram, Server(0));
            }
            return self.degrade(datagram);
        };
        // A group's requests are served in order.
        let choice = match self.waiting.again(request.group()) {
            None => self.selector.choose(now, &candidates, self.random.next_u64()),
            Some(again) => Choice::Wait(again),
        };
        match choice {
            Choice::Send(server) => self.send(now, datagram, server),
            Choice::Wait(again) => {
                if !self.waiting.push(now, request.group(), datagram, again) {
                    self.counters.waiting_full += 1;
                    self.degrade(datagram);
                }
            }
        }
    }

    fn send(&mut self, now: Nanos, datagram: &[u8], server: Server) {
        let Some(to) = self.groups.address(server) else { return };
        let mut bytes = datagram.to_vec();
        let Ok((request, rest)) = NetrsRequest::mut_from_prefix(&mut bytes) else { return };
        let Ok((ends, _)) = Ends::mut_from_prefix(rest) else { return };
        ends.server = to.into();
        let entry = UnderWay { server, client: ends.client, request: ends.request.get(), sent: now };
        match self.table.add(entry) {
            Some(retained) => {
                request.start.retained = retained.into();
                request.start.kind = Kind::Response as u8 | NETRS_XOR;
            }
            // Not tracked, so the operator must not copy its answer here.
            None => {
                self.counters.untracked += 1;
                if !planted(223) {
                    self.selector.expired(now, server);
                }
                request.start.kind = Kind::Monitored as u8 | NETRS_XOR;
            }
        }
        self.counters.selected += 1;
        self.ready.push_back((to, bytes));
    }

    /// Sends the request to the client's backup, as a packet that operators ignore.
    fn degrade(&mut self, datagram: &[u8]) {
        let mut bytes = datagram.to_vec();
        let Ok((request, rest)) = NetrsRequest::mut_from_prefix(&mut bytes) else { return };
        request.start.kind = Kind::Monitored as u8 | NETRS_XOR;
        let Ok((ends, _)) = Ends::ref_from_prefix(rest) else { return };
        let backup = SocketAddr::from(ends.server);
        if !self.groups.has_server(backup) {
            self.counters.unknown_server += 1;
            return;
        }
        self.ready.push_back((backup, bytes));
    }

    fn answer(&mut self, now: Nanos, start: &Netrs, ends: &Ends, status: &[u8]) {
        let Some(server) = self.groups.server(ends.server.into()) else {
            self.counters.unmatched += 1;
            return;
        };
        let of = |entry: &UnderWay| (entry.server, entry.client, entry.request);
        let is_its = |entry: &UnderWay| planted(221) || of(entry) == (server, ends.client, ends.request.get());
        let Some(entry) = self.table.take(start.retained.get(), is_its) else {
            self.counters.unmatched += 1;
            return;
        };
        self.counters.answered += 1;
        let status = ServerStatus::ref_from_bytes(status).ok().map(|status| Status {
            queue: status.queue.get(),
            service_us: status.service_us.get(),
            sequence: status.sequence.get(),
        });
        self.counters.without_status += u64::from(status.is_none());
        self.selector.answered(now, server, now.saturating_sub(entry.sent), status);
    }

    fn try_waiting(&mut self, now: Nanos) {
        while let Some(group) = self.waiting.due(now) {
            let random = self.random.next_u64();
            let candidates = self.groups.get(group).filter(|_| !self.waiting.is_too_old(group, now));
            match candidates.map(|candidates| self.selector.choose(now, &candidates, random)) {
                // Guards against a selector that names no later time, which would loop forever.
                Some(Choice::Wait(again)) => self.waiting.put_off(group, again.max(now + 1)),
                Some(Choice::Send(server)) => {
                    let datagram = self.waiting.pop(group).unwrap_or_default();
                    self.send(now, &datagram, server);
                }
                None => {
                    let datagram = self.waiting.pop(group).unwrap_or_default();
                    self.counters.held_too_long += 1;
                    self.degrade(&datagram);
                }
            }
        }
    }

    fn expire(&mut self, now: Nanos) {
        let Some(until) = now.checked_sub(self.config.expire) else { return };
        while let Some(entry) = self.table.expire(until) {
            self.counters.expired += 1;
            if !planted(222) {
                self.selector.expired(now, entry.server);
            }
        }
    }
}

impl Endpoint for RsNode {
    type Event = ();

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        self.expire(now);
        if from != self.config.operator {
            self.counters.foreign += 1;
            return;
        }
        match parse(datagram) {
            Ok(Packet::Request(..)) => self.request(now, datagram),
            Ok(Packet::Response(_, response, status, ends, _)) => {
                self.answer(now, &response.start, ends, status);
                self.try_waiting(now);
            }
            _ => self.counters.foreign += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.expire(now);
        self.try_waiting(now);
    }

    fn poll_transmit(&mut self, _now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, bytes) = self.ready.pop_front()?;
        buffer.clear();
        buffer.extend_from_slice(bytes.as_bytes());
        Some(to)
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let expires = self.table.oldest().map(|sent| sent.saturating_add(self.config.expire));
        [expires, self.waiting.next()].into_iter().flatten().min()
    }
}
