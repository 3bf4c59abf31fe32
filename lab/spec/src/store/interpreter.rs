//! Differential test of the store program: turns fuzzing input into packets, orders and time, gives them to an engine
//! and to the model, and compares all output.
//!
//! Three replicas and three clients send mostly valid packets; sometimes they repeat, delay, forge or corrupt them.

use super::model::Model;
use crate::tasks::bytes::Bytes;
use crate::transcript::EngineExt;
use midflight_dataplane::program::{Class, Engine, Verdict as _};
use midflight_dataplane::store::{NewSet, Policy, ReplyCheck, SetOrder, Stats, StoreConfig, StoreProgram, Verdict};
use midflight_dataplane::{Cookies, Datagram, Out};
use midflight_wire::store::{
    EndSession, FLAG_DIRECT, FLAG_EXISTS, FLAG_SCAN, Heartbeat, Hello, Operation, Packet, Replica, Request, Status,
    Write, parse,
};
use midflight_wire::{Header, packet};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const T: u64 = 1000;
const COOKIE_NS: u64 = 5000;
const REPLICAS: u8 = 3;
const CLIENTS: u8 = 3;
const SETS: [u16; 4] = [1, 2, 300, 65535];
const LEAPS: [u64; 8] = [0, 1, 1, 10, 100, T / 2, T, COOKIE_NS];
const AGES: [u64; 8] = [0, 0, 0, 1, T / 2, T - 1, T, T + 1];
/// Two of one key group, the first and the last.
const HASHES: [u32; 4] = [0, 1, 0x8000_0000, u32::MAX];
const KEYS: [&[u8]; 3] = [b"", b"k", b"{user}.name"];
/// Datagrams that may be repeated, or answered by a replica.
const REMEMBERED: usize = 24;

fn replica_address(slot: u8) -> SocketAddr {
    ([10, 0, 0, slot + 1], 7001).into()
}

fn client_address(client: u8) -> SocketAddr {
    ([10, 0, 1, client + 1], 7000).into()
}

/// Interprets `bytes` for an engine, compares it with the model, and returns the counters. `start` creates the engine
/// with its configuration and `secret`.
///
/// # Errors
/// If the engine differs from the model or breaks a rule.
pub fn interpret<E: Engine<Program = StoreProgram>>(
    bytes: &[u8],
    secret: u128,
    start: impl FnOnce(&StoreConfig) -> E,
) -> Result<Stats, String> {
    let all = Compared { policies: &Policy::ALL, reply_checks: &MOSTLY_DIRECT, is_given: |_| true };
    interpret_by(bytes, secret, all, start)
}

/// Each at least once; most often the one with the most cases.
const MOSTLY_DIRECT: [ReplyCheck; 4] =
    [ReplyCheck::Strict, ReplyCheck::Relaxed, ReplyCheck::Direct, ReplyCheck::Direct];

/// What to compare for an engine whose contract allows differences.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// Policies it supports.
    pub policies: &'a [Policy],
    /// Reply checks it supports.
    pub reply_checks: &'a [ReplyCheck],
    /// Whether the engine gets a datagram.
    pub is_given: fn(&[u8]) -> bool,
}

/// [`interpret`] for an engine that differs from the model in what `compared` leaves out.
///
/// # Errors
/// If the engine differs from the model or breaks a rule.
pub fn interpret_by<E: Engine<Program = StoreProgram>>(
    bytes: &[u8],
    secret: u128,
    compared: Compared<'_>,
    start: impl FnOnce(&StoreConfig) -> E,
) -> Result<Stats, String> {
    let config = StoreConfig { sets: 2, kgroup_bits: 2, lease_ns: T, cookie_ns: COOKIE_NS };
    let mut stage = Stage {
        engine: start(&config),
        model: Model::new(&config, secret),
        cookies: Cookies::new(secret, COOKIE_NS),
        bytes: Bytes(bytes),
        compared,
        now: 2 * COOKIE_NS,
        incarnations: BTreeMap::new(),
        drawn: 0,
        sids: BTreeMap::new(),
        sent: Vec::new(),
    };
    SETS[..2].iter().try_for_each(|&number| stage.add(number, false))?;
    while !stage.bytes.is_empty() {
        stage.step()?;
    }
    Ok(stage.model.stats())
}

struct Stage<'a, E> {
    engine: E,
    model: Model,
    cookies: Cookies,
    bytes: Bytes<'a>,
    compared: Compared<'a>,
    now: u64,
    incarnations: BTreeMap<u16, u64>,
    drawn: u64,
    /// By set, the current session and the highest ended one, from the last STATE.
    sids: BTreeMap<u16, (u64, u64)>,
    /// Recent datagrams: to the switch with their sender, or from the switch with their receiver.
    sent: Vec<Datagram>,
}

impl<E: Engine<Program = StoreProgram>> Stage<'_, E> {
    fn step(&mut self) -> Result<(), String> {
        match self.bytes.next() {
            0..=90 => self.request(),
            91..=160 => self.reply(),
            161..=205 => self.heartbeat(),
            206..=212 => self.hello(),
            213..=218 => self.end_session(),
            219..=234 => self.repeat(),
            235..=238 => self.order(),
            239..=243 => self.noise(),
            _ => {
                self.now += self.bytes.pick(&LEAPS);
                let mut out = Out::new();
                let visited = self.engine.tick(self.now, &mut out).map_err(|error| error.to_string())?;
                if visited == 0 && out.is_empty() { Ok(()) } else { Err("a tick did something".to_owned()) }
            }
        }
    }

    fn set(&mut self) -> u16 {
        let which = self.bytes.next();
        if which < 200 { SETS[usize::from(which) % 2] } else { SETS[usize::from(which) % SETS.len()] }
    }

    fn replica(&mut self) -> u8 {
        self.bytes.next() % REPLICAS
    }

    fn sender(&mut self, from: SocketAddr) -> SocketAddr {
        match self.bytes.next() {
            0..=239 => from,
            240..=247 => replica_address(self.bytes.next() % (REPLICAS + 1)),
            _ => client_address(self.bytes.next() % CLIENTS),
        }
    }

    fn request(&mut self) -> Result<(), String> {
        let from = client_address(self.bytes.next() % CLIENTS);
        let key = self.bytes.pick(&KEYS);
        let is_write = self.bytes.next() < 90;
        let cookie_at = self.now.saturating_sub(self.bytes.pick(&[0, 0, 0, 0, 0, COOKIE_NS, 2 * COOKIE_NS]));
        let mut request = Request {
            request: u64::from(self.bytes.next()).into(),
            hash: self.bytes.pick(&HASHES).into(),
            set: self.set().into(),
            key_length: (key.len() as u16).into(),
            flags: self.bytes.pick(&[FLAG_DIRECT, FLAG_DIRECT, FLAG_EXISTS, FLAG_SCAN, 255]),
            ..Request::new(if is_write { Operation::Write } else { Operation::Read })
        };
        request.client.ip[..8].copy_from_slice(&self.cookies.give(cookie_at, 0, from).to_be_bytes());
        let write = if is_write { Write::new_zeroed().as_bytes().to_vec() } else { Vec::new() };
        let value: &[u8] = if is_write { b"value" } else { b"" };
        let from = self.sender(from);
        self.give(from, [request.as_bytes(), &write, key, value].concat())
    }

    fn reply(&mut self) -> Result<(), String> {
        let is_request = |(_, bytes): &&Datagram| matches!(parse(bytes), Ok(Packet::Read(..) | Packet::Write(..)));
        let requests: Vec<&Datagram> = self.sent.iter().filter(is_request).collect();
        if requests.is_empty() {
            return Ok(());
        }
        let (to, bytes) = requests[requests.len() - 1 - usize::from(self.bytes.next()) % requests.len()].clone();
        let Ok((asked, rest)) = Request::ref_from_prefix(&bytes) else { return Ok(()) };
        let is_write = asked.header.operation == Operation::Write as u8;
        let mut reply = *asked;
        reply.header.operation += 1;
        reply.index = reply.index.get().saturating_add_signed(self.bytes.pick(&[0, 1, 2, 5, -1])).into();
        reply.replicas = self.bytes.next() % 8;
        let status = match self.bytes.next() {
            0..=170 => Status::Done,
            171..=200 => Status::Behind,
            _ => self.bytes.pick(Status::ALL),
        };
        reply.status = status as u8;
        self.disturb(&mut reply);
        if is_write {
            reply.key_length = 0.into();
        }
        let rest: &[u8] = if is_write { b"" } else { rest };
        let from = self.sender(to);
        self.give(from, [reply.as_bytes(), rest, b"value"].concat())
    }

    /// Sometimes makes it a reply that no replica sends.
    fn disturb(&mut self, reply: &mut Request) {
        match self.bytes.next() {
            0 => reply.header.epoch = (reply.header.epoch.get() ^ 1).into(),
            1 => reply.slot = self.bytes.next(),
            2 => reply.seq = reply.seq.get().wrapping_sub(1).into(),
            3 => reply.sid = reply.sid.get().wrapping_add(1).into(),
            4 => reply.set = self.set().into(),
            5..=9 => reply.client = FromZeros::new_zeroed(),
            10 => reply.status = self.bytes.next(),
            11 => reply.hash = self.bytes.pick(&HASHES).into(),
            // Invalid for a WRITE too. For a READ, it says that the replica has applied a later write.
            12..=27 => reply.seq = reply.seq.get().wrapping_add(1).into(),
            _ => {}
        }
    }

    fn incarnation(&mut self, set: u16) -> u64 {
        let present = self.incarnations.get(&set).copied().unwrap_or(1);
        if self.bytes.next() < 8 { present ^ 1 } else { present }
    }

    /// Mostly the current session, or the next one if it has ended; sometimes one before or after it.
    fn sid(&mut self, set: u16) -> u64 {
        let (present, ended) = self.sids.get(&set).copied().unwrap_or_default();
        let alive = if present > ended { present } else { ended + 1 };
        match self.bytes.next() {
            0..=199 => alive,
            200..=225 => alive + 1,
            226..=240 => ((alive >> 32) + 1) << 32,
            241..=250 => alive.saturating_sub(1),
            _ => self.bytes.next().into(),
        }
    }

    fn heartbeat(&mut self) -> Result<(), String> {
        let (set, leader) = (self.set(), self.replica());
        let sid = self.sid(set);
        let start = (sid >> 32) * 4;
        let echo = self.now.saturating_sub(self.bytes.pick(&AGES)) + u64::from(self.bytes.next() > 250);
        let beat = Heartbeat {
            incarnation: self.incarnation(set).into(),
            sid: sid.into(),
            start: (start + u64::from(self.bytes.next() > 250)).into(),
            echo: echo.into(),
            set: set.into(),
            leader,
            kgroup_bits: self.bytes.pick(&[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]),
            is_idle: self.bytes.pick(&[0, 0, 1]),
            any_replica: self.bytes.pick(&[0, 0, 0, 1]),
            ..Heartbeat::new(0, u32::from(self.bytes.next()))
        };
        let count = if self.bytes.next() < 240 { REPLICAS } else { 1 + self.bytes.next() % 8 };
        let replicas: Vec<Replica> = (0..count).map(|slot| self.member(slot, start)).collect();
        let from = self.sender(replica_address(leader));
        self.give(from, packet(&beat, &replicas))
    }

    fn member(&mut self, slot: u8, start: u64) -> Replica {
        let mut address = replica_address(slot).into();
        if self.bytes.next() > 250 {
            address = FromZeros::new_zeroed();
        }
        let weight = self.bytes.pick(&[10, 10, 100, 0, 255]);
        let matched = start.saturating_add_signed(self.bytes.pick(&[0, 1, 9, -1])).into();
        Replica { address, weight, matched, reserved: [0; 3] }
    }

    fn hello(&mut self) -> Result<(), String> {
        let (slot, set) = (self.replica(), self.set());
        let echo = self.now.saturating_sub(self.bytes.pick(&AGES)) + u64::from(self.bytes.next() > 250);
        let (incarnation, echo) = (self.incarnation(set).into(), echo.into());
        let hello = Hello { incarnation, echo, set: set.into(), slot, ..Hello::new(0, 1) };
        let from = self.sender(replica_address(slot));
        self.give(from, hello.as_bytes().to_vec())
    }

    fn end_session(&mut self) -> Result<(), String> {
        let (set, slot) = (self.set(), self.replica());
        let (incarnation, sid) = (self.incarnation(set).into(), self.sid(set).into());
        let end = EndSession { incarnation, sid, set: set.into(), slot, ..EndSession::new(0, 1) };
        let from = self.sender(replica_address(slot));
        self.give(from, end.as_bytes().to_vec())
    }

    /// Repeats an earlier datagram from its destination, sometimes corrupted.
    fn repeat(&mut self) -> Result<(), String> {
        if self.sent.is_empty() {
            return Ok(());
        }
        let (party, mut bytes) = self.sent[usize::from(self.bytes.next()) % self.sent.len()].clone();
        match self.bytes.next() {
            _ if bytes.is_empty() => {}
            0..=80 => {
                let at = usize::from(self.bytes.next()) % bytes.len();
                bytes[at] = self.bytes.next();
            }
            81..=100 => bytes.truncate(usize::from(self.bytes.next()) % bytes.len()),
            101..=104 => bytes.resize(1240, 0),
            105..=120 => bytes.push(0),
            _ => {}
        }
        let from = self.sender(party);
        self.give(from, bytes)
    }

    fn noise(&mut self) -> Result<(), String> {
        let length = usize::from(self.bytes.next());
        let operation = self.bytes.next() % 11;
        let mut bytes = Header::new(operation, 0, 0).as_bytes().to_vec();
        bytes.resize_with(length, || self.bytes.next());
        let from = self.sender(replica_address(0));
        self.give(from, bytes)
    }

    fn order(&mut self) -> Result<(), String> {
        let number = self.set();
        let what = self.bytes.next();
        if what < 160 {
            return self.add(number, what < 64);
        }
        self.incarnations.remove(&number);
        self.ask_both(SetOrder::remove(number))
    }

    fn add(&mut self, number: u16, is_change: bool) -> Result<(), String> {
        self.drawn += 1;
        // Some have a low half of 0, as a random number may.
        let incarnation = self.drawn << if self.bytes.next() > 200 { 32 } else { 8 };
        let set = NewSet {
            number,
            incarnation,
            lease_ns: self.bytes.pick(&[0, T, 2 * T, u64::MAX]),
            kgroup_bits: self.bytes.pick(&[2, 2, 2, 2, 2, 2, 2, 3]),
            reply_check: self.bytes.pick(self.compared.reply_checks),
            policy: self.bytes.pick(self.compared.policies),
            replicas: (0..REPLICAS - 1).map(replica_address).collect(),
        };
        let is_new = !self.incarnations.contains_key(&number);
        if is_change {
            return self.ask_both(SetOrder::change(&set));
        }
        self.ask_both(SetOrder::add(&set))?;
        if is_new && self.model.stats().present().any(|set| set.set == number) {
            self.incarnations.insert(number, incarnation);
        }
        Ok(())
    }

    fn ask_both(&mut self, order: SetOrder) -> Result<(), String> {
        let (mut done, mut right) = (order, order);
        self.engine.ask_order(&mut done);
        self.model.ask_order(&mut right);
        if done.outcome() != right.outcome() {
            return Err(format!("{order:?}: {:?} instead of {:?}", done.outcome(), right.outcome()));
        }
        self.compare_states().map_err(|what| format!("{what}\nafter {order:?}"))
    }

    fn give(&mut self, from: SocketAddr, bytes: Vec<u8>) -> Result<(), String> {
        if !(self.compared.is_given)(&bytes) {
            return Ok(());
        }
        let called = ask(&mut self.engine, self.now, from, &bytes)?;
        let right = ask(&mut self.model, self.now, from, &bytes)?;
        let context = || format!("{:02x?}\nfrom {from} at {} ns", bytes, self.now);
        if called != right {
            return Err(format!("{called:02x?}\ninstead of {right:02x?}\non {}", context()));
        }
        check_sent(from, &bytes, &right).map_err(|what| format!("{what}\non {}", context()))?;
        self.compare_states().map_err(|what| format!("{what}\nafter {}", context()))?;
        for (_, bytes) in &right.sent {
            if let Ok(Packet::State(state)) = parse(bytes) {
                self.sids.insert(state.set.get(), (state.sid.get(), state.ended.get()));
            }
        }
        self.sent.push((from, bytes));
        self.sent.extend(right.sent);
        let superfluous = self.sent.len().saturating_sub(REMEMBERED);
        self.sent.drain(..superfluous);
        Ok(())
    }

    fn compare_states(&self) -> Result<(), String> {
        let (counted, right) = (self.engine.stats(), self.model.stats());
        if counted != right {
            return Err(format!("counted {counted:?}\ninstead of {right:?}"));
        }
        self.engine.check().map_err(|what| format!("engine unsound: {what}"))?;
        self.model.check()
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Effect {
    verdict: Verdict,
    sent: Vec<Datagram>,
    is_genuine: bool,
}

fn ask(
    engine: &mut impl Engine<Program = StoreProgram>,
    now: u64,
    from: SocketAddr,
    bytes: &[u8],
) -> Result<Effect, String> {
    let (mut datagram, mut out) = (bytes.to_vec(), Out::new());
    let verdict = engine.packet(now, from, &mut datagram, &mut out).map_err(|error| error.to_string())?;
    let sent = out.all(&datagram).map(|(to, bytes)| (to, bytes.to_vec())).collect();
    Ok(Effect { verdict, sent, is_genuine: out.is_genuine() })
}

/// R7: output is well-formed; a client never learns the epoch or anything of sessions; a sender without a cookie gets
/// no more bytes than it sent; nothing is sent twice.
fn check_sent(from: SocketAddr, asked: &[u8], said: &Effect) -> Result<(), String> {
    if said.sent.len() > 1 {
        return Err("two datagrams for one".to_owned());
    }
    for (to, bytes) in &said.sent {
        let sent = parse(bytes).map_err(|reject| format!("sends what is {reject}"))?;
        let is_state = matches!(sent, Packet::State(_));
        if said.verdict.class() == Class::Refused && (*to != from || bytes.len() > asked.len() && !is_state) {
            return Err(format!("{:?} is answered to {to} by {} bytes", said.verdict, bytes.len()));
        }
        if let Packet::ReadReply(reply, status, ..) | Packet::WriteReply(reply, status, _) = sent {
            let secrets = [reply.header.epoch.get().into(), reply.sid.get(), reply.seq.get(), reply.index.get()];
            let is_refusal = status == Status::Behind && reply.header.operation == Operation::ReadReply as u8;
            if secrets != [0; 4] || is_refusal {
                return Err("a client learns what only replicas may know".to_owned());
            }
        }
    }
    Ok(())
}
