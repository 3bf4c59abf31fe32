//! Differential test of the cache program: turns fuzzing input into packets, rules and time for an operator, gives
//! them to an engine and to the model, and compares all output.
//!
//! Clients, servers and two other operators send mostly valid packets; sometimes they repeat, forge or corrupt them.

use super::model::Model;
use crate::tasks::bytes::Bytes;
use crate::transcript::EngineExt;
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Rule, RuleOrder, Stats, TIERS_MAX, Verdict};
use midflight_dataplane::program::{Class, Engine, Verdict as _};
use midflight_dataplane::{Cookies, Datagram, Out};
use midflight_wire::cache::{
    Ends, ILLEGAL_RSNODE, Kind, NETRS_STATUS_MAX, Netrs, NetrsRequest, NetrsResponse, Packet, parse,
};
use midflight_wire::{Address, PACKET_MAX};
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const COOKIE_NS: u64 = 5000;
const LEAPS: [u64; 6] = [0, 1, 1, 100, COOKIE_NS / 2, COOKIE_NS];
const RACKS: u16 = 3;
const GROUPS: u16 = 3;
const RSNODES: u16 = 4;
/// Room for the hosts, servers and operators of the usual rules. There are more names.
const PLACES: u32 = 11;
const REMEMBERED: usize = 24;
const KINDS: [Kind; 6] = [Kind::Version, Kind::Request, Kind::Response, Kind::Monitored, Kind::Cookie, Kind::Direct];

fn client_address(number: u8) -> SocketAddr {
    ([10, 0, number % 3, 10 + number / 3], 7000).into()
}

fn server_address(number: u8) -> SocketAddr {
    ([10, 0, number % 3, 20 + number / 3], 7800).into()
}

fn operator_address(number: u8) -> SocketAddr {
    ([10, 9, 0, number], 7900).into()
}

fn selector_address() -> SocketAddr {
    ([10, 9, 0, 0], 7901).into()
}

/// Interprets `bytes` for an engine, compares it with the model, and returns the counters. `start` creates the engine
/// with its configuration and `secret`; `counts` reads its monitor's counts of a traffic group.
///
/// # Errors
/// If the engine differs from the model or breaks a rule.
pub fn interpret<E: Engine<Program = CacheProgram>>(
    bytes: &[u8],
    secret: u128,
    start: impl FnOnce(&CacheConfig) -> E,
    counts: impl Fn(&E, u16) -> [u64; TIERS_MAX],
) -> Result<Stats, String> {
    let config = CacheConfig {
        places: PLACES,
        racks: RACKS.into(),
        groups: GROUPS.into(),
        rsnodes: RSNODES.into(),
        cookie_ns: COOKIE_NS,
        ..CacheConfig::default()
    };
    let mut stage = Stage {
        engine: start(&config),
        model: Model::new(&config, secret),
        cookies: Cookies::new(secret, COOKIE_NS),
        bytes: Bytes(bytes),
        now: 2 * COOKIE_NS,
        sent: Vec::new(),
    };
    stage.usual_rules()?;
    while !stage.bytes.is_empty() {
        stage.step()?;
    }
    for group in 0..GROUPS {
        let (counted, right) = (counts(&stage.engine, group), stage.model.counts(group));
        if counted != right {
            return Err(format!("counted {counted:?} instead of {right:?} of group {group}"));
        }
    }
    Ok(stage.model.stats())
}

struct Stage<'a, E> {
    engine: E,
    model: Model,
    cookies: Cookies,
    bytes: Bytes<'a>,
    now: u64,
    /// Recent datagrams: to the operator with their sender, or from the operator with their receiver.
    sent: Vec<Datagram>,
}

impl<E: Engine<Program = CacheProgram>> Stage<'_, E> {
    /// The operator of rack 0, which serves RSNode 1; RSNode 2 is another operator's; group 2 is degraded.
    fn usual_rules(&mut self) -> Result<(), String> {
        let racks = (0..RACKS).map(|rack| Rule::Rack {
            rack,
            operator: Some(operator_address(rack as u8)),
            marker: u32::from(rack / 2) << 16 | u32::from(rack),
        });
        let hosts = (0..6).map(|number| Rule::Host {
            ip: client_address(number).ip(),
            rack: u16::from(number % 3),
            group: Some(u16::from(number / 3 * 2)),
        });
        let servers = (0..3).map(|number| Rule::Server { address: server_address(number), rack: number.into() });
        let rules: Vec<Rule> = [Rule::Own { rack: Some(0), selector: Some(selector_address()) }]
            .into_iter()
            .chain(racks)
            .chain(hosts)
            .chain(servers)
            .chain((1..3).map(|number| Rule::Operator(operator_address(number))))
            .chain([Rule::Serve(1), Rule::RsNode { id: 2, operator: Some(operator_address(1)) }])
            .chain([Rule::Group { group: 0, rsnode: Some(1) }, Rule::Group { group: 1, rsnode: Some(2) }])
            .collect();
        rules.into_iter().try_for_each(|rule| self.order(rule))
    }

    fn step(&mut self) -> Result<(), String> {
        match self.bytes.next() {
            0..=99 => self.request(),
            100..=189 => self.answer(),
            190..=204 => self.repeat(),
            205..=224 => self.rule(),
            225..=234 => self.noise(),
            _ => {
                self.now += self.bytes.pick(&LEAPS);
                let mut out = Out::new();
                let visited = self.engine.tick(self.now, &mut out).map_err(|error| error.to_string())?;
                if visited == 0 && out.is_empty() { Ok(()) } else { Err("a tick did something".to_owned()) }
            }
        }
    }

    /// Mostly a client of this rack; sometimes another, a server, or an operator.
    fn anybody(&mut self) -> SocketAddr {
        let number = self.bytes.next();
        match number {
            0..=159 => client_address(number % 2 * 3),
            160..=199 => client_address(number % 7),
            200..=219 => server_address(number % 4),
            _ => operator_address(number % 4),
        }
    }

    fn rsnode(&mut self) -> u16 {
        self.bytes.pick(&[0, 1, 1, 2, 3, RSNODES, RSNODES + 1, ILLEGAL_RSNODE])
    }

    fn ends(&mut self, from: SocketAddr) -> Ends {
        let cookie_at = self.now.saturating_sub(self.bytes.pick(&[0, 0, 0, 0, 0, COOKIE_NS, 2 * COOKIE_NS]));
        let mut client = Address::new_zeroed();
        client.ip[..8].copy_from_slice(&self.cookies.give(cookie_at, 0, from).to_be_bytes());
        let backup = self.bytes.next();
        let server = if backup < 230 { server_address(backup % 3) } else { client_address(backup % 6) };
        Ends { client, server: server.into(), request: u64::from(self.bytes.next()).into(), tag: 0.into() }
    }

    fn request(&mut self) -> Result<(), String> {
        let from = self.anybody();
        let (ends, rsnode) = (self.ends(from), self.rsnode());
        let start = Netrs { rsnode: rsnode.into(), ..Netrs::new(Kind::Request) };
        let request = NetrsRequest { start, group: NetrsRequest::group_bytes(self.bytes.word()) };
        self.give(from, [request.as_bytes(), ends.as_bytes(), b"get k"].concat())
    }

    fn answer(&mut self) -> Result<(), String> {
        let requests: Vec<&Datagram> = self
            .sent
            .iter()
            .filter(|(_, bytes)| matches!(parse(bytes), Ok(Packet::Request(..) | Packet::ForServer(..))))
            .collect();
        if requests.is_empty() {
            return Ok(());
        }
        let (to, bytes) = requests[requests.len() - 1 - usize::from(self.bytes.next()) % requests.len()].clone();
        let Ok((asked, rest)) = NetrsRequest::ref_from_prefix(&bytes) else { return Ok(()) };
        let Ok((ends, _)) = Ends::ref_from_prefix(rest) else { return Ok(()) };
        let mut ends = *ends;
        match self.bytes.next() {
            0..=3 => ends.client.reserved = 0x5555.into(),
            4..=7 => ends.client.port = 0.into(),
            8..=11 => ends.client = operator_address(0).into(),
            _ => {}
        }
        let mut start = asked.start;
        start.kind = self.bytes.pick(&[Kind::Response, Kind::Response, Kind::Response, Kind::Monitored]) as u8;
        if self.bytes.next() < 40 {
            start.rsnode = self.rsnode().into();
        }
        let status = self.bytes.pick(&[8, 8, 8, 0, 5, NETRS_STATUS_MAX as u16, NETRS_STATUS_MAX as u16 + 1]);
        let marker = self.bytes.word() & 0x0001_0003;
        let response = NetrsResponse { start, marker: marker.into(), status_length: status.into() };
        let from = match self.bytes.next() {
            0..=159 => server_address(self.bytes.next() % 3),
            160..=229 => operator_address(1 + self.bytes.next() % 2),
            230..=239 => to,
            _ => self.anybody(),
        };
        if self.bytes.next() < 230 {
            ends.server = from.into();
        }
        let bytes = [response.as_bytes(), &vec![7; status.into()], ends.as_bytes(), b"value"].concat();
        self.give(from, bytes)
    }

    fn repeat(&mut self) -> Result<(), String> {
        if self.sent.is_empty() {
            return Ok(());
        }
        let (from, mut bytes) = self.sent[usize::from(self.bytes.next()) % self.sent.len()].clone();
        if self.bytes.next() < 128 && !bytes.is_empty() {
            let at = usize::from(self.bytes.next()) % bytes.len();
            bytes[at] ^= self.bytes.next();
        }
        self.give(from, bytes)
    }

    fn rule(&mut self) -> Result<(), String> {
        let number = self.bytes.next();
        let (rack, group) = (u16::from(number) % (RACKS + 1), u16::from(number) % (GROUPS + 1));
        let operator = Some(operator_address(number % 3)).filter(|_| number < 200);
        let id = self.rsnode();
        let rule = match self.bytes.below(11) {
            0 => {
                let selector = match number {
                    0..=199 => Some(selector_address()),
                    200..=209 => Some(operator_address(number % 4)),
                    _ => None,
                };
                Rule::Own { rack: (number < 230).then_some(rack / 3), selector }
            }
            1 => Rule::Rack { rack, operator, marker: u32::from(number) << 15 },
            2 => {
                let group = (number < 200).then_some(group);
                let host = if number % 16 == 15 { operator_address(0) } else { client_address(number % 7) };
                Rule::Host { ip: host.ip(), rack, group }
            }
            3 => Rule::Server { address: server_address(number % 4), rack },
            4 if number % 16 == 15 => Rule::Operator(selector_address()),
            4 => Rule::Operator(operator_address(number % 4)),
            5 => Rule::Gone(SocketAddr::new(client_address(number % 7).ip(), 0)),
            6 => Rule::Gone(server_address(number % 4)),
            7 => Rule::RsNode { id, operator },
            8 => Rule::Serve(id),
            9 => return self.usual_rules(),
            _ => Rule::Group {
                group,
                rsnode: (number < 200).then_some(id).filter(|&id| id != 0 && id != ILLEGAL_RSNODE),
            },
        };
        self.order(rule)
    }

    fn order(&mut self, rule: Rule) -> Result<(), String> {
        let (mut of_engine, mut of_model) = (RuleOrder::from(rule), RuleOrder::from(rule));
        self.engine.ask_order(&mut of_engine);
        self.model.ask_order(&mut of_model);
        if of_engine.outcome() != of_model.outcome() {
            let (said, right) = (of_engine.outcome(), of_model.outcome());
            return Err(format!("{said:?} instead of {right:?} of {rule:?}"));
        }
        self.compare_state()
    }

    /// Any bytes, mostly after a valid header.
    fn noise(&mut self) -> Result<(), String> {
        let from = self.anybody();
        let length = usize::from(self.bytes.next()) + if self.bytes.next() < 8 { PACKET_MAX - 100 } else { 0 };
        let mut bytes: Vec<u8> = (0..length.min(300)).map(|_| self.bytes.next()).collect();
        bytes.resize(length, 0);
        let start = match self.bytes.next() {
            0..=199 => Netrs::new(self.bytes.pick(&KINDS)),
            200..=229 => Netrs { version: self.bytes.next(), ..Netrs::new(self.bytes.pick(&KINDS)) },
            _ => Netrs { kind: self.bytes.next(), ..Netrs::new(Kind::Request) },
        };
        let known = bytes.len().min(size_of::<Netrs>());
        if self.bytes.next() < 240 {
            bytes[..known].copy_from_slice(&start.as_bytes()[..known]);
        }
        self.give(from, bytes)
    }

    fn give(&mut self, from: SocketAddr, bytes: Vec<u8>) -> Result<(), String> {
        let context = || format!("{} from {from} at {} ns", describe(&bytes), self.now);
        let (mut taken, mut out) = (bytes.clone(), Out::new());
        let verdict = self.engine.packet(self.now, from, &mut taken, &mut out).map_err(|error| error.to_string())?;
        let sent: Vec<Datagram> = out.all(&taken).map(|(to, bytes)| (to, bytes.to_vec())).collect();
        let (mut untouched, mut owed) = (bytes.clone(), Out::new());
        let right = self.model.packet(self.now, from, &mut untouched, &mut owed).map_err(|error| error.to_string())?;
        let wanted: Vec<Datagram> = owed.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect();
        if (verdict, out.is_genuine()) != (right, owed.is_genuine()) {
            return Err(format!("verdict {verdict:?} instead of {right:?} on {}", context()));
        }
        if sent != wanted {
            let list = |all: &[Datagram]| -> String {
                all.iter().map(|(to, bytes)| format!("\n  to {to}: {}", describe(bytes))).collect()
            };
            return Err(format!("sent:{}\ninstead of:{}\nafter {}", list(&sent), list(&wanted), context()));
        }
        check_refusal(verdict, &bytes, &sent).map_err(|what| format!("{what}, on {}", context()))?;
        self.compare_state().map_err(|what| format!("{what}\nafter {}", context()))?;
        self.sent.push((from, bytes));
        self.sent.extend(sent);
        let surplus = self.sent.len().saturating_sub(REMEMBERED);
        self.sent.drain(..surplus);
        Ok(())
    }

    fn compare_state(&self) -> Result<(), String> {
        let (counted, right) = (self.engine.stats(), self.model.stats());
        if counted != right {
            return Err(format!("counted {counted:?}\ninstead of {right:?}"));
        }
        self.engine.check().map_err(|what| format!("engine unsound: {what}"))?;
        self.model.check()
    }
}

/// N8: a refused datagram is answered by nothing but VERSION or COOKIE, which are shorter.
fn check_refusal(verdict: Verdict, came: &[u8], sent: &[Datagram]) -> Result<(), String> {
    if verdict.class() != Class::Refused {
        return Ok(());
    }
    let may_answer = matches!(verdict, Verdict::BadVersion | Verdict::NoCookie);
    if sent.len() > usize::from(may_answer) {
        return Err(format!("N8: {verdict:?} was answered"));
    }
    if sent.iter().any(|(_, answer)| answer.len() > came.len()) {
        return Err(format!("N8: the answer to {verdict:?} is longer than the question"));
    }
    Ok(())
}

fn describe(datagram: &[u8]) -> String {
    match parse(datagram) {
        Ok(packet) => format!("{packet:?}"),
        Err(reject) => format!("{} bytes ({reject})", datagram.len()),
    }
}
