//! An operator with a built-in selector, and an `RsNode`, which get the same requests and answers.

use midflight_cache::rsnode::{RsNode, RsNodeConfig};
use midflight_cache::select::{Candidates, Choice, Counts, Selector, Server, Status};
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Outcome, Rule, RuleOrder, Selection, Verdict};
use midflight_dataplane::program::Engine;
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_spec::transcript::EngineExt;
use midflight_wire::cache::{Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, NetrsResponse, Packet, ServerStatus, parse};
use proptest::prelude::*;
use siphasher::sip::SipHasher24;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zerocopy::{FromBytes, IntoBytes};

pub(crate) const SERVERS: u16 = 6;
const RSNODE: u16 = 1;
const UNDER_WAY: u32 = 8;
const EXPIRE: Nanos = 200 * MS;
/// Replica groups by id; the first has all servers.
const GROUPS: [(u32, &[u8]); 4] = [(1, &[0, 1, 2, 3, 4, 5]), (2, &[0, 1, 2]), (0x00ab_cdef, &[5, 3, 4]), (4, &[2])];
/// Requests that may still be answered, or answered again.
const REMEMBERED: usize = 40;

fn server(number: u8) -> SocketAddr {
    ([10, 0, 2, number], 7800).into()
}

fn client(number: u8) -> SocketAddr {
    ([10, 0, 1, number], 7000).into()
}

fn other_operator() -> SocketAddr {
    ([10, 9, 0, 2], 7900).into()
}

fn own() -> SocketAddr {
    ([10, 9, 0, 1], 7900).into()
}

pub(crate) fn config(selection: Selection) -> CacheConfig {
    CacheConfig {
        selection,
        servers: SERVERS.into(),
        replica_groups: GROUPS.len() as u32,
        under_way: UNDER_WAY,
        expire_ns: EXPIRE,
        ..CacheConfig::default()
    }
}

/// Gives a selector the random bits that the core draws.
pub(crate) struct SameBits {
    inner: Box<dyn Selector + Send>,
    state: u64,
}

impl SameBits {
    pub(crate) fn new(inner: Box<dyn Selector + Send>, secret: u128) -> Self {
        let hasher = SipHasher24::new_with_keys(secret as u64, (secret >> 64) as u64);
        Self { inner, state: hasher.hash([3_u64, 0, 0, 0].as_bytes()) }
    }
}

impl Selector for SameBits {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, _random: u64) -> Choice {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.inner.choose(now, candidates, bits ^ (bits >> 31))
    }
    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        self.inner.answered(now, server, took, status);
    }
    fn expired(&mut self, now: Nanos, server: Server) {
        self.inner.expired(now, server);
    }
    fn outstanding(&self, server: Server) -> u32 {
        self.inner.outstanding(server)
    }
    fn counts(&self) -> Counts {
        self.inner.counts()
    }
    fn set_selectors(&mut self, selectors: u32) {
        self.inner.set_selectors(selectors);
    }
}

/// Defect of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    Nothing,
    Request,
    Server,
    Client,
    Retained,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request of a replica group; the last one is unknown.
    Ask {
        group: usize,
        client: u8,
        backup: u8,
    },
    /// An answer to a recent request.
    Answer {
        which: usize,
        again: bool,
        wrong: Wrong,
        status: Option<(u16, u16, u32)>,
    },
    Wait(Nanos),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let ask =
        (0..GROUPS.len() + 1, 0..3_u8, 0..7_u8).prop_map(|(group, client, backup)| Step::Ask { group, client, backup });
    let wrong = prop_oneof![
        16 => Just(Wrong::Nothing),
        1 => Just(Wrong::Request),
        1 => Just(Wrong::Server),
        1 => Just(Wrong::Client),
        1 => Just(Wrong::Retained),
    ];
    let queue = prop_oneof![20 => 0..40_u16, 1 => Just(u16::MAX)];
    let service = prop_oneof![20 => 1..20_000_u32, 1 => Just(0), 1 => Just(60_000_000), 1 => Just(60_000_001)];
    let status = proptest::option::weighted(0.9, (queue, any::<u16>(), service));
    let answer = (0..REMEMBERED, any::<u8>(), wrong, status).prop_map(|(which, again, wrong, status)| Step::Answer {
        which,
        again: again < 20,
        wrong,
        status,
    });
    let wait = prop_oneof![
        10 => 0..5 * MS,
        3 => 5 * MS..60 * MS,
        1 => Just(EXPIRE - 1),
        1 => Just(EXPIRE),
        1 => Just(10 * SECOND),
    ];
    prop_oneof![8 => ask, 7 => answer, 3 => wait.prop_map(Step::Wait)]
}

/// A request as both have sent it to a server.
struct Sent {
    of_core: Vec<u8>,
    of_rsnode: Vec<u8>,
    to: SocketAddr,
}

pub(crate) struct Pair<E> {
    core: E,
    rsnode: RsNode,
    now: Nanos,
    requests: u64,
    sequence: u16,
    sent: VecDeque<Sent>,
    /// Tells a selector the core's choice.
    forced: Option<Arc<AtomicU32>>,
}

impl<E: Engine<Program = CacheProgram>> Pair<E> {
    pub(crate) fn new(mut core: E, selector: Box<dyn Selector + Send>) -> Self {
        let hosts = (0..3).map(|number| Rule::Host { ip: client(number).ip(), rack: 1, group: None });
        let servers = (0..6).map(|number| Rule::Server { address: server(number), rack: 0 });
        let rules = [
            Rule::Own { rack: Some(0), selector: None },
            Rule::Rack { rack: 0, operator: Some(own()), marker: 1 },
            Rule::Rack { rack: 1, operator: Some(other_operator()), marker: 2 },
            Rule::Operator(other_operator()),
            Rule::Serve(RSNODE),
        ];
        let rsnode = RsNodeConfig { under_way: UNDER_WAY, expire: EXPIRE, ..RsNodeConfig::new(own()) };
        let all: Vec<_> = (0..6).map(server).collect();
        let mut rsnode = RsNode::new(rsnode, &all, 1, |_| selector).expect("few servers");
        let groups = GROUPS.map(|(id, numbers)| (id, numbers.iter().copied().map(server).collect::<Vec<_>>()));
        for rule in rules.into_iter().chain(hosts).chain(servers) {
            done(&mut core, RuleOrder::from(rule));
        }
        for (id, servers) in groups {
            done(&mut core, RuleOrder::replica_group(id, &servers));
            rsnode.set_group(id, &servers).expect("a good group");
        }
        Self { core, rsnode, now: 20 * SECOND, requests: 0, sequence: 0, sent: VecDeque::new(), forced: None }
    }

    pub(crate) fn set_selectors(&mut self, selectors: u32) {
        done(&mut self.core, RuleOrder::selectors(selectors));
        self.rsnode.set_selectors(selectors);
    }

    pub(crate) fn force(&mut self, forced: Arc<AtomicU32>) {
        self.forced = Some(forced);
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Ask { group, client, backup } => self.ask(group, client, backup),
            Step::Answer { which, again, wrong, status } => self.answer(which, again, wrong, status),
            Step::Wait(time) => {
                self.now += time;
                // Each tick visits a part of the expired ones.
                while self.core.ask_tick(self.now).0 > 0 {}
                self.rsnode.handle_timeout(self.now);
            }
        }
        self.compare();
    }

    fn ask(&mut self, group: usize, asks: u8, backup: u8) {
        self.requests += 1;
        let start = Netrs { rsnode: RSNODE.into(), ..Netrs::new(Kind::Request) };
        let id = GROUPS.get(group).map_or(77, |(id, _)| *id);
        let request = NetrsRequest { start, group: NetrsRequest::group_bytes(id) };
        // The last backup is no server.
        let ends = Ends {
            client: client(asks).into(),
            server: server(backup).into(),
            request: (self.requests << 40 | 5).into(),
            tag: 0.into(),
        };
        let bytes = [request.as_bytes(), ends.as_bytes(), b"get k"].concat();
        let (verdict, sent) = self.core.ask(self.now, other_operator(), &bytes);
        if let (Some(forced), Some((to, _))) = (&self.forced, sent.first()) {
            let chosen = (0..6_u8).find(|&number| server(number) == *to).expect("a server");
            forced.store(chosen.into(), Ordering::Relaxed);
        }
        self.rsnode.handle(self.now, own(), &bytes);
        let mut buffer = Vec::new();
        let right = self.rsnode.poll_transmit(self.now, &mut buffer).map(|to| (to, buffer));
        let wanted = if right.is_some() { Verdict::Forwarded } else { Verdict::UnknownServer };
        assert_eq!(verdict, wanted);
        let Some((right_to, right)) = right else { return assert!(sent.is_empty()) };
        let [(to, bytes)] = &sent[..] else { panic!("{sent:?}") };
        let (kind, right_kind) = (start_of(bytes).kind, start_of(&right).kind);
        assert_eq!((*to, kind), (right_to, right_kind), "where request {} goes", self.requests);
        let (own, other) = (ends_of(bytes), ends_of(&right));
        assert_eq!((own.client, own.server, own.request), (other.client, other.server, other.request));
        assert_eq!(bytes[bytes.len() - 5..], right[right.len() - 5..]);
        if kind == Kind::Response as u8 | NETRS_XOR {
            assert_eq!(start_of(bytes).rsnode.get(), RSNODE);
            self.sent.push_back(Sent { of_core: bytes.clone(), of_rsnode: right, to: *to });
            let surplus = self.sent.len().saturating_sub(REMEMBERED);
            self.sent.drain(..surplus);
        }
    }

    fn answer(&mut self, which: usize, again: bool, wrong: Wrong, status: Option<(u16, u16, u32)>) {
        if self.sent.is_empty() {
            return;
        }
        let at = which % self.sent.len();
        self.sequence = self.sequence.wrapping_add(1);
        let status = status.map_or_else(Vec::new, |(queue, sequence, service_us)| {
            // Mostly a later one.
            let sequence = if sequence < 6_000 { sequence } else { self.sequence };
            let status = ServerStatus { queue: queue.into(), sequence: sequence.into(), service_us: service_us.into() };
            status.as_bytes().to_vec()
        });
        let sent = &self.sent[at];
        let from = if matches!(wrong, Wrong::Server) { other_than(sent.to) } else { sent.to };
        let to_core = answer(&sent.of_core, from, wrong, &status, Kind::Response);
        let copy = answer(&sent.of_rsnode, from, wrong, &status, Kind::Monitored);
        let (verdict, passed) = self.core.ask(self.now, from, &to_core);
        assert_eq!((verdict, passed.len()), (Verdict::Forwarded, 1), "every answer goes to its client");
        assert_eq!((passed[0].0, start_of(&passed[0].1).kind), (other_operator(), Kind::Monitored as u8));
        self.rsnode.handle(self.now, own(), &copy);
        if !again {
            self.sent.remove(at);
        }
    }

    fn compare(&self) {
        let (stats, right, believed) = (self.core.stats(), self.rsnode.counters(), self.rsnode.disbelieved());
        let of_core = [stats.selected, stats.untracked, stats.answered, stats.unmatched, stats.without_status];
        let of_rsnode = [right.selected, right.untracked, right.answered, right.unmatched, right.without_status];
        assert_eq!(of_core, of_rsnode, "selected, untracked, answered, unmatched, without status");
        // The core counts requests sent to a backup.
        assert_eq!(stats.unknown_group, right.unknown_group - right.unknown_server);
        assert_eq!(
            [stats.statuses_invalid, stats.statuses_outdated, stats.expired, stats.under_way],
            [believed.statuses_invalid, believed.statuses_outdated, right.expired, self.rsnode.under_way() as u64],
            "absurd, outdated, expired, under way"
        );
        self.core.check().expect("sound");
    }

    #[cfg(feature = "kernel")]
    pub(crate) fn answered(&self) -> u64 {
        self.core.stats().answered
    }

    pub(crate) fn events(&self) -> [u64; 9] {
        let stats = self.core.stats();
        [
            stats.selected,
            stats.untracked,
            stats.answered,
            stats.unmatched,
            stats.without_status,
            stats.unknown_group,
            stats.statuses_invalid,
            stats.statuses_outdated,
            stats.expired,
        ]
    }
}

fn done(core: &mut impl Engine<Program = CacheProgram>, mut order: RuleOrder) {
    core.ask_order(&mut order);
    assert_eq!(order.outcome(), Outcome::Done, "{order:?}");
}

fn start_of(bytes: &[u8]) -> &Netrs {
    Netrs::ref_from_prefix(bytes).expect("a packet").0
}

fn ends_of(request: &[u8]) -> &Ends {
    match parse(request) {
        Ok(Packet::ForServer(_, _, ends, _)) => ends,
        other => panic!("no request to a server: {other:?}"),
    }
}

fn other_than(to: SocketAddr) -> SocketAddr {
    if to == server(0) { server(1) } else { server(0) }
}

fn answer(asked: &[u8], from: SocketAddr, wrong: Wrong, status: &[u8], kind: Kind) -> Vec<u8> {
    let asked_start = start_of(asked);
    let flipped = if matches!(wrong, Wrong::Retained) { 0x8000 } else { 0 };
    let retained = asked_start.retained.get() ^ flipped;
    let start = Netrs { kind: kind as u8, retained: retained.into(), ..*asked_start };
    let mut ends = Ends { server: from.into(), ..*ends_of(asked) };
    match wrong {
        Wrong::Request => ends.request = (ends.request.get() ^ 1).into(),
        Wrong::Client => {
            let of_other = if SocketAddr::from(ends.client) == client(0) { client(1) } else { client(0) };
            ends.client = of_other.into();
        }
        _ => {}
    }
    let response = NetrsResponse { start, marker: 1.into(), status_length: (status.len() as u16).into() };
    [response.as_bytes(), status, ends.as_bytes(), b"value"].concat()
}
