//! The reference model of the cache program: what each packet must cause at an operator, in plain Rust.
//!
//! It was written from `docs/internals/cache.md` and the packet formats, as simply as possible: maps, and a new
//! packet for each that is passed on. It must match an engine in bytes, verdicts and counts.

use midflight_dataplane::cache::{CacheConfig, CacheProgram, Outcome, Rule, RuleOrder, Stats, TIERS_MAX, Verdict};
use midflight_dataplane::program::{Called, Engine};
use midflight_dataplane::{Cookies, Datagram, Out};
use midflight_wire::cache::{
    Ends, ILLEGAL_RSNODE, Kind, NETRS_MAGIC, NETRS_VERSION, NETRS_XOR, Netrs, NetrsRequest, NetrsResponse, Packet,
    Reject, parse,
};
use midflight_wire::{Address, PACKET_MAX};
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// An operator treats all requests alike, so cookies depend on addresses only.
const IDENTITY: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host { rack: u16, group: Option<u16> },
    Server { rack: u16 },
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RsNode {
    Here,
    At(SocketAddr),
}

/// The operator of `docs/internals/cache.md`.
#[derive(Clone, Debug)]
pub struct Model {
    config: CacheConfig,
    cookies: Cookies,
    rack: Option<u16>,
    selector: Option<SocketAddr>,
    racks: HashMap<u16, (SocketAddr, u32)>,
    /// Hosts have port 0.
    places: HashMap<SocketAddr, Place>,
    rsnodes: HashMap<u16, RsNode>,
    groups: HashMap<u16, u16>,
    counts: HashMap<u16, [u64; TIERS_MAX]>,
    stats: Stats,
    /// The current datagram is a request with its cookie.
    is_genuine: bool,
}

type Effect = Result<Vec<Datagram>, Verdict>;

struct Answer<'a> {
    response: NetrsResponse,
    ends: &'a Ends,
    /// Status, ends and the application's answer.
    rest: &'a [u8],
}

impl Model {
    /// A fresh operator.
    #[must_use]
    pub fn new(config: &CacheConfig, secret: u128) -> Self {
        Self {
            config: *config,
            cookies: Cookies::new(secret, config.cookie_ns),
            rack: None,
            selector: None,
            racks: HashMap::new(),
            places: HashMap::new(),
            rsnodes: HashMap::new(),
            groups: HashMap::new(),
            counts: HashMap::new(),
            stats: Stats::new_zeroed(),
            is_genuine: false,
        }
    }

    /// The monitor's counts of a traffic group.
    #[must_use]
    pub fn counts(&self, group: u16) -> [u64; TIERS_MAX] {
        self.counts.get(&group).copied().unwrap_or_default()
    }

    fn take(&mut self, now: u64, from: SocketAddr, bytes: &[u8]) -> (Verdict, Vec<Datagram>) {
        match valid_start(bytes) {
            Err(Verdict::BadVersion) => {
                return (Verdict::BadVersion, vec![(from, Netrs::new(Kind::Version).as_bytes().to_vec())]);
            }
            Err(verdict) => return (verdict, Vec::new()),
            Ok(kind) => self.stats.packets[kind as usize] += 1,
        }
        let said = match parse(bytes) {
            Ok(Packet::Request(request, ends, asked)) => match self.request(now, from, request, ends, asked) {
                Err(Verdict::NoCookie) => return (Verdict::NoCookie, vec![(from, self.cookie(now, from, ends))]),
                said => said,
            },
            Ok(Packet::Response(kind @ (Kind::Response | Kind::Monitored), response, status, ends, answered)) => {
                let rest = &bytes[bytes.len() - status.len() - size_of::<Ends>() - answered.len()..];
                self.response(from, kind, Answer { response: *response, ends, rest })
            }
            Err(Reject::Truncated) if !is_for_clients(bytes) => Err(Verdict::Truncated),
            Err(Reject::LongStatus) if !is_for_clients(bytes) => Err(Verdict::LongStatus),
            _ => Err(Verdict::NotForSwitch),
        };
        match said {
            Ok(sent) => (Verdict::Forwarded, sent),
            Err(verdict) => (verdict, Vec::new()),
        }
    }

    fn request(&mut self, now: u64, from: SocketAddr, request: &NetrsRequest, ends: &Ends, asked: &[u8]) -> Effect {
        let host = self.places.get(&SocketAddr::new(from.ip(), 0));
        let passed = |start: Netrs, ends: &Ends| {
            let request = NetrsRequest { start, ..*request };
            [request.as_bytes(), ends.as_bytes(), asked].concat()
        };
        match self.places.get(&from).or(host).copied() {
            Some(Place::Operator) => {
                let id = request.start.rsnode.get();
                if self.rsnodes.get(&id) == Some(&RsNode::Here) && self.selector.is_some() {
                    return self.select(passed(request.start, ends));
                }
                self.degrade(ends, |start| passed(start, ends), request.start, true)
            }
            Some(Place::Host { rack, group }) if Some(rack) == self.rack => {
                if !self.has_cookie(now, from, ends) {
                    return Err(Verdict::NoCookie);
                }
                self.is_genuine = true;
                let ends = Ends { client: from.into(), ..*ends };
                let label = group.and_then(|group| self.groups.get(&group).copied());
                let Some(id) = label.filter(|&id| id != ILLEGAL_RSNODE) else {
                    return self.degrade(&ends, |start| passed(start, &ends), request.start, false);
                };
                let Some(rsnode) = self.rsnodes.get(&id).copied() else {
                    return self.degrade(&ends, |start| passed(start, &ends), request.start, true);
                };
                self.stats.labelled += 1;
                let start = Netrs { rsnode: id.into(), ..request.start };
                match (rsnode, self.selector) {
                    (RsNode::At(operator), _) => Ok(vec![(operator, passed(start, &ends))]),
                    (RsNode::Here, Some(_)) => self.select(passed(start, &ends)),
                    (RsNode::Here, None) => self.degrade(&ends, |start| passed(start, &ends), start, true),
                }
            }
            _ => Err(Verdict::UnknownSender),
        }
    }

    fn select(&mut self, request: Vec<u8>) -> Effect {
        self.stats.selected += 1;
        Ok(self.selector.into_iter().map(|selector| (selector, request.clone())).collect())
    }

    /// Sends a request without a selector to the client's backup.
    fn degrade(&mut self, ends: &Ends, passed: impl FnOnce(Netrs) -> Vec<u8>, start: Netrs, is_orphan: bool) -> Effect {
        let backup = SocketAddr::from(ends.server);
        if !matches!(self.places.get(&backup), Some(Place::Server { .. })) {
            return Err(Verdict::UnknownServer);
        }
        let counter = if is_orphan { &mut self.stats.without_rsnode } else { &mut self.stats.degraded };
        *counter += 1;
        let kind = Kind::Monitored as u8 | NETRS_XOR;
        Ok(vec![(backup, passed(Netrs { rsnode: ILLEGAL_RSNODE.into(), kind, ..start }))])
    }

    fn response(&mut self, from: SocketAddr, kind: Kind, mut answer: Answer<'_>) -> Effect {
        let is_from_operator = match self.places.get(&from) {
            Some(Place::Operator) => true,
            Some(Place::Server { .. }) if SocketAddr::from(answer.ends.server) != from => {
                return Err(Verdict::OtherServer);
            }
            Some(Place::Server { rack }) => {
                answer.response.marker = self.racks.get(rack).map_or(0, |(_, marker)| *marker).into();
                false
            }
            _ => return Err(Verdict::UnknownSender),
        };
        if kind == Kind::Monitored {
            return self.deliver(&answer, !is_from_operator);
        }
        let rsnode = self.rsnodes.get(&answer.response.start.rsnode.get()).copied();
        if let (Some(RsNode::At(operator)), false) = (rsnode, is_from_operator) {
            return Ok(vec![(operator, joined(&answer))]);
        }
        answer.response.start.kind = Kind::Monitored as u8;
        let is_here = rsnode == Some(RsNode::Here);
        if !is_here {
            self.stats.not_copied += 1;
        }
        let mut sent = self.deliver(&answer, true)?;
        if let (true, Some(selector)) = (is_here, self.selector) {
            self.stats.copied += 1;
            sent.push((selector, joined(&answer)));
        }
        Ok(sent)
    }

    /// Sends an answer to the client, or to its rack's operator if it has not come from another operator for this rack.
    fn deliver(&mut self, answer: &Answer<'_>, may_pass: bool) -> Effect {
        let client = SocketAddr::from(answer.ends.client);
        let host = self.places.get(&SocketAddr::new(client.ip(), 0)).copied();
        let Some(Place::Host { rack, group }) = host.filter(|_| client.port() != 0) else {
            return Err(Verdict::UnknownClient);
        };
        if Some(rack) == self.rack {
            if self.places.contains_key(&client) {
                return Err(Verdict::UnknownClient);
            }
            self.count(answer.response.marker.get(), rack, group);
            self.stats.delivered += 1;
            return Ok(vec![(client, joined(answer))]);
        }
        let operator = self.racks.get(&rack).filter(|_| may_pass);
        operator.map(|&(operator, _)| vec![(operator, joined(answer))]).ok_or(Verdict::UnknownClient)
    }

    fn count(&mut self, marker: u32, rack: u16, group: Option<u16>) {
        let (Some(&(_, own)), Some(group)) = (self.racks.get(&rack), group) else { return };
        let masks = self.config.masks;
        let in_common = |tier: &usize| masks[*tier] != 0 && (own ^ marker) & masks[*tier] == 0;
        let tier = (1..TIERS_MAX).rev().find(in_common).unwrap_or(0);
        self.counts.entry(group).or_default()[tier] += 1;
    }

    fn has_cookie(&self, now: u64, from: SocketAddr, ends: &Ends) -> bool {
        let said = ends.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
        let before = now.checked_sub(self.config.cookie_ns);
        [Some(now), before].into_iter().flatten().any(|at| self.cookies.give(at, IDENTITY, from) == said)
    }

    fn cookie(&self, now: u64, from: SocketAddr, asked: &Ends) -> Vec<u8> {
        let mut client = Address::new_zeroed();
        client.ip[..8].copy_from_slice(&self.cookies.give(now, IDENTITY, from).to_be_bytes());
        let ends = Ends { client, request: asked.request, ..Ends::new_zeroed() };
        [Netrs::new(Kind::Cookie).as_bytes(), ends.as_bytes()].concat()
    }

    fn set(&mut self, rule: Rule) -> Outcome {
        let CacheConfig { places, racks, groups, rsnodes, .. } = self.config;
        let is_rack = |rack: u16| u32::from(rack) < racks;
        let is_group = |group: u16| u32::from(group) < groups;
        let is_id = |id: u16| id != 0 && u32::from(id) <= rsnodes;
        let (address, place) = match rule {
            Rule::Own { rack, .. } if !rack.is_none_or(is_rack) => return Outcome::Bad,
            Rule::Own { selector: Some(selector), .. } if self.places.contains_key(&selector) => return Outcome::Bad,
            Rule::Own { rack, selector } => {
                (self.rack, self.selector) = (rack, selector);
                return Outcome::Done;
            }
            Rule::Rack { rack, .. } if !is_rack(rack) => return Outcome::Bad,
            Rule::Rack { rack, operator, marker } => {
                change(&mut self.racks, rack, operator.map(|operator| (operator, marker)));
                return Outcome::Done;
            }
            Rule::RsNode { id, .. } | Rule::Serve(id) if !is_id(id) => return Outcome::Bad,
            Rule::RsNode { id, operator } => {
                change(&mut self.rsnodes, id, operator.map(RsNode::At));
                return Outcome::Done;
            }
            Rule::Serve(id) => {
                self.rsnodes.insert(id, RsNode::Here);
                return Outcome::Done;
            }
            Rule::Group { group, rsnode } if !is_group(group) || !rsnode.is_none_or(is_id) => return Outcome::Bad,
            Rule::Group { group, rsnode } => {
                self.groups.insert(group, rsnode.unwrap_or(ILLEGAL_RSNODE));
                return Outcome::Done;
            }
            Rule::Gone(address) => {
                self.places.remove(&address);
                return Outcome::Done;
            }
            Rule::Host { rack, group, .. } if !is_rack(rack) || !group.is_none_or(is_group) => return Outcome::Bad,
            Rule::Host { ip, rack, group } => (SocketAddr::new(ip, 0), Place::Host { rack, group }),
            Rule::Server { address, rack } if !is_rack(rack) || address.port() == 0 => return Outcome::Bad,
            Rule::Server { address, rack } => (address, Place::Server { rack }),
            Rule::Operator(address) if address.port() == 0 => return Outcome::Bad,
            Rule::Operator(address) => (address, Place::Operator),
        };
        if self.selector == Some(address) {
            return Outcome::Bad;
        }
        if !self.places.contains_key(&address) && self.places.len() as u32 >= places {
            return Outcome::NoRoom;
        }
        self.places.insert(address, place);
        Outcome::Done
    }
}

fn change<V>(map: &mut HashMap<u16, V>, key: u16, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

fn joined(answer: &Answer<'_>) -> Vec<u8> {
    [answer.response.as_bytes(), answer.rest].concat()
}

/// Misdirected packets, whatever they hold.
fn is_for_clients(bytes: &[u8]) -> bool {
    Netrs::ref_from_prefix(bytes).is_ok_and(|(start, _)| [Kind::Cookie as u8, Kind::Direct as u8].contains(&start.kind))
}

/// The kind of a datagram for a switch, or what is wrong with its header.
fn valid_start(bytes: &[u8]) -> Result<Kind, Verdict> {
    let (start, _) = Netrs::ref_from_prefix(bytes).map_err(|_| Verdict::Truncated)?;
    if start.magic.get() != NETRS_MAGIC {
        return Err(Verdict::BadMagic);
    }
    if bytes.len() > PACKET_MAX {
        return Err(Verdict::Trailing);
    }
    if start.kind == Kind::Version as u8 {
        return Err(Verdict::NotForSwitch);
    }
    if start.version != NETRS_VERSION {
        return Err(Verdict::BadVersion);
    }
    let kind = Kind::from_number(start.kind & !NETRS_XOR).ok_or(Verdict::UnknownOperation)?;
    if start.kind & NETRS_XOR != 0 { Err(Verdict::NotForSwitch) } else { Ok(kind) }
}

impl Engine for Model {
    type Program = CacheProgram;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        self.is_genuine = false;
        let (verdict, owed) = self.take(now_ns, from, datagram);
        self.stats.reasons[verdict as usize] += 1;
        out.owe(&owed)?;
        if self.is_genuine {
            out.set_genuine();
        }
        Ok(verdict)
    }

    fn tick(&mut self, _now_ns: u64, out: &mut Out) -> Called<u32> {
        out.clear();
        Ok(0)
    }

    fn order(&mut self, order: &mut RuleOrder) -> Called<bool> {
        let outcome = order.rule().map_or(Outcome::Bad, |rule| self.set(rule));
        order.set_outcome(outcome);
        Ok(true)
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn check(&self) -> Result<(), String> {
        let is_sound =
            |(address, place): (&SocketAddr, &Place)| (address.port() == 0) == matches!(place, Place::Host { .. });
        if self.places.iter().all(is_sound) { Ok(()) } else { Err("a host has a port, or a server none".to_owned()) }
    }
}
