//! What runs beside an operator that is an RSNode: it takes requests and copies of answers from the operator, has its selector choose,
//! and sends each request to a server (NetRS IV-C).
//!
//! | where | what |
//! |---|---|
//! | `table` | requests under way, by the retaining value (RV) that their answers repeat |
//! | `groups` | replica groups: which servers have a key |
//! | `waiting` | requests that rate control holds |

pub(crate) mod groups;
pub(crate) mod table;
mod waiting;

pub use groups::{GroupError, Most};

use crate::select::{Choice, Counts, Learned, Selector, Server, Status, Tally};
use groups::Groups;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_wire::replicas::{Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, Packet, ServerStatus, parse};
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
    /// The operator that it stands beside: datagrams of others are not taken.
    pub operator: SocketAddr,
    /// Requests under way that it remembers, at most 65,536; further ones are sent, and their answers teach nothing. Default 8,192.
    pub under_way: u32,
    /// A request without an answer for this long does not count as outstanding any more. Default 1 s.
    pub expire: Nanos,
    /// Requests that wait for rate control; further ones go to their backups. Default 1,024.
    pub waiting: usize,
    /// A request that rate control has held for so long goes to its backup. Default 20 ms, an interval of C3's.
    pub hold: Nanos,
}

impl RsNodeConfig {
    /// The defaults.
    #[must_use]
    pub fn new(operator: SocketAddr) -> Self {
        Self { operator, under_way: 8_192, expire: SECOND, waiting: 1_024, hold: 20 * MS }
    }
}

/// What became of requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RsNodeCounters {
    /// Requests that were sent to a server that the selector has chosen.
    pub selected: u64,
    /// Of these, requests that found the table full: their answers are not copied to this RSNode.
    pub untracked: u64,
    /// Requests of a replica group that is not known: they went to their backups (N3).
    pub unknown_group: u64,
    /// Requests that had to wait when as many did already: they went to their backups.
    pub waiting_full: u64,
    /// Requests that rate control held for too long: they went to their backups.
    pub held_too_long: u64,
    /// Requests for their backup that name no server: dropped.
    pub unknown_server: u64,
    /// Answers that were those of requests under way.
    pub answered: u64,
    /// Answers of no request under way: late, twice or forged.
    pub unmatched: u64,
    /// Answers without a status that can be read.
    pub without_status: u64,
    /// Requests whose answers did not come in time.
    pub expired: u64,
    /// Datagrams that are neither requests nor answers, or not from the operator.
    pub foreign: u64,
}

/// An RSNode's side of an operator, as a state machine.
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

/// A server, as the selector of an RSNode sees it: for people who look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenServer {
    /// Where it is.
    pub address: SocketAddr,
    /// Requests that were neither answered nor have expired.
    pub outstanding: u32,
    /// What became of the requests to it so far.
    pub tally: Tally,
    /// What was learned of it; `None`: nothing, or it is too old.
    pub learned: Option<Learned>,
}

/// An RSNode knows its servers by numbers of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} servers: an RSNode knows 65,535 at most")]
pub struct TooManyServers(usize);

impl RsNode {
    /// One that knows no replica groups. `servers`: all that there may be; `selector` makes a selector for so many. `seed` is random.
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

    /// One that learns its servers from its replica groups, so many at most.
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

    /// A replica group: who has its keys. A group that is known is not changed.
    ///
    /// # Errors
    /// Where a server is not known, the servers are no candidates, or the group has others.
    pub fn set_group(&mut self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        self.groups.set(group, servers)
    }

    /// What became of requests and answers.
    #[must_use]
    pub fn counters(&self) -> RsNodeCounters {
        self.counters
    }

    /// What its selector did not believe.
    #[must_use]
    pub fn disbelieved(&self) -> Counts {
        self.selector.counts()
    }

    /// How many selectors choose among the same servers, from now on.
    pub fn set_selectors(&mut self, selectors: u32) {
        self.selector.set_selectors(selectors);
    }

    /// Its selector.
    #[must_use]
    pub fn selector(&self) -> &dyn Selector {
        &*self.selector
    }

    /// At most `count` of its servers, from the one of this number on, as its selector sees them.
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

    /// Requests under way.
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
        // Who came first of a group is served first.
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

    /// To the server that the selector has chosen.
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
            // Its answer goes past this RSNode: it would be nobody's here.
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

    /// To the client's backup, as a packet that no operator treats.
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

    /// Requests that waited may go now, or have waited for too long.
    fn try_waiting(&mut self, now: Nanos) {
        while let Some(group) = self.waiting.due(now) {
            let random = self.random.next_u64();
            let candidates = self.groups.get(group).filter(|_| !self.waiting.is_too_old(group, now));
            match candidates.map(|candidates| self.selector.choose(now, &candidates, random)) {
                // A selector names a later time; if one did not, this would not end.
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
