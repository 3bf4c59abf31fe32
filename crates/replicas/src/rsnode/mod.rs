//! What runs beside an operator that is an RSNode: it takes requests and copies of answers from the operator, has its selector choose,
//! and sends each request to a server (NetRS IV-C).
//!
//! | where | what |
//! |---|---|
//! | `table` | requests under way, by the retaining value (RV) that their answers repeat |
//! | `groups` | replica groups: which servers have a key |

mod groups;
mod table;

pub use groups::GroupError;

use crate::select::{Choice, Counts, Selector, Server, Status};
use groups::Groups;
use midflight_endpoint::{Endpoint, Nanos, SECOND};
use midflight_wire::replicas::{Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, Packet, ServerStatus, parse};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::net::SocketAddr;
use table::{Table, UnderWay};
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
}

impl RsNodeConfig {
    /// The defaults.
    #[must_use]
    pub fn new(operator: SocketAddr) -> Self {
        Self { operator, under_way: 8_192, expire: SECOND, waiting: 1_024 }
    }
}

/// What became of requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RsNodeCounters {
    /// Requests that were sent to a server that the selector has chosen.
    pub selected: u64,
    /// Of these, requests that found the table full: their answers teach nothing.
    pub untracked: u64,
    /// Requests of a replica group that is not known: they went to their backups (N3).
    pub unknown_group: u64,
    /// Requests that had to wait when as many did already: they went to their backups.
    pub waiting_full: u64,
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
    /// Requests that rate control holds, the oldest first, and when to try the first again.
    waiting: VecDeque<Vec<u8>>,
    again: Nanos,
    ready: VecDeque<(SocketAddr, Vec<u8>)>,
    counters: RsNodeCounters,
}

impl std::fmt::Debug for RsNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RsNode").field("config", &self.config).field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl RsNode {
    /// One that knows no replica groups. `servers`: all that there may be; the selector is for as many. `seed` is random.
    #[must_use]
    pub fn new(config: RsNodeConfig, selector: Box<dyn Selector + Send>, servers: &[SocketAddr], seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let generation = random.next_u32() as u16;
        Self {
            table: Table::new(config.under_way, generation),
            groups: Groups::new(servers),
            config,
            selector,
            random,
            waiting: VecDeque::new(),
            again: 0,
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

    /// Requests under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.table.len()
    }

    fn request(&mut self, now: Nanos, datagram: &[u8]) {
        let Ok((request, _)) = NetrsRequest::ref_from_prefix(datagram) else { return };
        let Some(candidates) = self.groups.get(request.group()) else {
            self.counters.unknown_group += 1;
            return self.degrade(datagram);
        };
        // Who came first is served first.
        let choice = match self.waiting.is_empty() {
            true => self.selector.choose(now, &candidates, self.random.next_u64()),
            false => Choice::Wait(self.again),
        };
        match choice {
            Choice::Send(server) => self.send(now, datagram, server),
            Choice::Wait(_) if self.waiting.len() >= self.config.waiting => {
                self.counters.waiting_full += 1;
                self.degrade(datagram);
            }
            Choice::Wait(again) => {
                self.again = again;
                self.waiting.push_back(datagram.to_vec());
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
            Some(retained) => request.start.retained = retained.into(),
            None => {
                self.counters.untracked += 1;
                self.selector.expired(now, server);
            }
        }
        request.start.kind = Kind::Response as u8 | NETRS_XOR;
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
        let is_its =
            |entry: &UnderWay| (entry.server, entry.client, entry.request) == (server, ends.client, ends.request.get());
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

    /// Requests that waited may go now.
    fn try_waiting(&mut self, now: Nanos) {
        while self.again <= now
            && let Some(datagram) = self.waiting.front()
        {
            let group = NetrsRequest::ref_from_prefix(datagram).map_or(0, |(request, _)| request.group());
            let choice = match self.groups.get(group) {
                Some(candidates) => self.selector.choose(now, &candidates, self.random.next_u64()),
                None => return,
            };
            match choice {
                Choice::Wait(again) => self.again = again,
                Choice::Send(server) => {
                    if let Some(datagram) = self.waiting.pop_front() {
                        self.send(now, &datagram, server);
                    }
                }
            }
        }
    }

    fn expire(&mut self, now: Nanos) {
        let Some(until) = now.checked_sub(self.config.expire) else { return };
        while let Some(entry) = self.table.expire(until) {
            self.counters.expired += 1;
            self.selector.expired(now, entry.server);
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
        let expires = self.table.oldest().map(|sent| sent + self.config.expire);
        let again = (!self.waiting.is_empty()).then_some(self.again);
        [expires, again].into_iter().flatten().min()
    }
}
