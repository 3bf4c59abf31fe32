//! The cache program in the model of a switch's pipeline: [`midflight_rmt::cache`] with a parser and the tables that the controller
//! fills.
//!
//! `docs/internals/asic-cache.md` lists the controller's tasks, and the differences from the soft engine.

mod parser;
mod rules;

use midflight_dataplane::Cookies;
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Outcome, RuleOrder, Stats, TIERS_MAX, Verdict};
use midflight_dataplane::program::{CallError, Called, Engine, Program, SoftProgram};
use midflight_dataplane::{Datagram, Out};
use midflight_endpoint::Nanos;
use midflight_rmt::cache::{Cache, Came, Config, Did, End, Kind, Output, Role, Rules};
use midflight_rmt::{Machine, Refusal, Target};
use midflight_wire::Address;
use midflight_wire::cache::{Ends, Kind as WireKind, Netrs, NetrsRequest, NetrsResponse};
use parser::Parsed;
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A cookie's identity: it depends on the address only.
const IDENTITY: u64 = 0;
/// Clients whose cookie is cached.
const KNOWN: u32 = 4_096;

/// The asic engine's operator.
#[derive(Clone, Debug)]
pub struct AsicCache {
    config: CacheConfig,
    size: Config,
    program: Box<Cache>,
    machine: Machine,
    rules: Rules,
    /// Whether the rules differ from those in the program's tables.
    is_stale: bool,
    cookies: Cookies,
    /// Counts read from the monitor, whose register has 32 bits.
    counts: Vec<[u64; TIERS_MAX]>,
    stats: Stats,
    /// Whether the current datagram is genuine: see [`Out::is_genuine`].
    is_genuine: bool,
}

enum Effect {
    Nothing(Verdict),
    Output(Verdict, Vec<u8>),
    /// The datagram is forwarded, rewritten in place.
    Forward {
        to: SocketAddr,
        copy_to: Option<SocketAddr>,
        header: usize,
    },
}

impl AsicCache {
    /// A newly started operator. `secret` is random.
    ///
    /// # Errors
    /// If a bound of the configuration is violated, or the rules do not fit a pipeline.
    pub fn new(config: &CacheConfig, secret: u128) -> Result<Self, String> {
        if CacheProgram::state_bytes(config) == 0 {
            return Err(CacheProgram::violated(config).to_string());
        }
        let CacheConfig { places, racks, groups, rsnodes, masks, .. } = *config;
        let size = Config { places, racks, groups, rsnodes, masks, known: KNOWN };
        let rules = Rules::default();
        let bounds = format!("places = {places}, racks = {racks}, groups = {groups}, rsnodes = {rsnodes}");
        let program = build(size, &rules).map_err(|refusal| format!("{bounds}: {refusal}"))?;
        Ok(Self {
            config: *config,
            size,
            machine: program.machine(),
            program,
            rules,
            is_stale: false,
            cookies: Cookies::new(secret, config.cookie_ns),
            counts: vec![[0; TIERS_MAX]; groups as usize],
            stats: Stats::new_zeroed(),
            is_genuine: false,
        })
    }

    /// The monitor's counts of a traffic group: answers by the highest tier passed, 0 the topmost.
    #[must_use]
    pub fn counts(&self, group: u16) -> [u64; TIERS_MAX] {
        let Some(mut counts) = self.counts.get(usize::from(group)).copied() else { return [0; TIERS_MAX] };
        let since = self.program.counts(&self.machine, group);
        counts.iter_mut().zip(since).for_each(|(sum, more)| *sum += u64::from(more));
        counts
    }

    /// The controller reads the monitor before its register wraps.
    fn read_monitor(&mut self) {
        for (group, counts) in (0..).zip(&mut self.counts) {
            let since = self.program.take_counts(&mut self.machine, group);
            counts.iter_mut().zip(since).for_each(|(sum, more)| *sum += u64::from(more));
        }
    }

    /// Rebuilds the model's program, which includes the tables; a real switch changes an entry.
    fn refresh(&mut self) -> Called<()> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        self.read_monitor();
        self.program = build(self.size, &self.rules).map_err(|refusal| CallError(refusal.to_string()))?;
        self.machine = self.program.machine();
        Ok(())
    }

    fn take(&mut self, now: Nanos, from: SocketAddr, datagram: &mut [u8]) -> Called<Effect> {
        let parsed = match parser::read(from, datagram, &mut self.stats) {
            Ok(parsed) => parsed,
            Err(Verdict::BadVersion) => {
                let version = Netrs::new(WireKind::Version).as_bytes().to_vec();
                return Ok(Effect::Output(Verdict::BadVersion, version));
            }
            Err(verdict) => return Ok(Effect::Nothing(verdict)),
        };
        let Parsed { came, cookie, .. } = parsed;
        let came = Came { is_known: self.cookies.takes(now, IDENTITY, from, cookie), ..came };
        let outputs = self.machine.pass(self.program.packet(&came));
        let answer = self.program.answer(&outputs.packet);
        let answer = answer.ok_or_else(|| CallError("a packet that no entry of the last table matches".into()))?;
        let [copy, _] = outputs.copies;
        let copy = copy.map(|copy| self.machine.pass(self.program.copied(copy, &came)).packet);
        let copy = copy.and_then(|sent| self.program.answer(&sent));
        self.count(&answer);
        let verdict = match (answer.did, answer.role) {
            (Did::Sent | Did::Delivered, _) => Verdict::Forwarded,
            (Did::Asked, _) => return Ok(Effect::Output(Verdict::NoCookie, self.cookie(now, from, parsed.request))),
            (Did::NoServer, _) => Verdict::UnknownServer,
            (Did::NoClient, _) => Verdict::UnknownClient,
            (Did::Refused, Role::Other) => Verdict::OtherServer,
            (Did::Refused, _) => Verdict::UnknownSender,
        };
        self.is_genuine = is_of_host(answer.role);
        match answer.to {
            Some(to) if verdict == Verdict::Forwarded => {
                let copy_to = copied_to(copy.as_ref(), &answer)?;
                let header = deparse(&came, &answer, datagram);
                Ok(Effect::Forward { to: to_address(&to), copy_to, header })
            }
            _ => Ok(Effect::Nothing(verdict)),
        }
    }

    /// The counters of the entries of `role` and `route`.
    fn count(&mut self, answer: &Output) {
        let stats = &mut self.stats;
        let goes = u64::from(matches!(answer.did, Did::Sent | Did::Delivered));
        match answer.role {
            Role::Select => stats.selected += 1,
            Role::Label => stats.labelled += 1,
            Role::LabelHere => (stats.labelled, stats.selected) = (stats.labelled + 1, stats.selected + 1),
            Role::LabelOrphan => {
                (stats.labelled, stats.without_rsnode) = (stats.labelled + 1, stats.without_rsnode + goes);
            }
            Role::Orphan | Role::Retired => stats.without_rsnode += goes,
            Role::Degrade => stats.degraded += goes,
            Role::Copy => stats.copied += goes,
            Role::Unseen => stats.not_copied += 1,
            _ => {}
        }
        stats.delivered += u64::from(answer.did == Did::Delivered);
    }

    /// The controller's answer to a request without its cookie.
    fn cookie(&self, now: Nanos, to: SocketAddr, request: u64) -> Vec<u8> {
        let mut ends = Ends { request: request.into(), ..Ends::new_zeroed() };
        ends.client.ip[..8].copy_from_slice(&self.cookies.give(now, IDENTITY, to).to_be_bytes());
        [Netrs::new(WireKind::Cookie).as_bytes(), ends.as_bytes()].concat()
    }
}

fn build(size: Config, rules: &Rules) -> Result<Box<Cache>, Refusal> {
    Cache::build(size, rules, &Target::TOFINO_1).map(Box::new)
}

/// Whether a request now has its client's address.
fn is_of_host(role: Role) -> bool {
    matches!(role, Role::Degrade | Role::Orphan | Role::Label | Role::LabelHere | Role::LabelOrphan)
}

/// The receiver of the copy. Copy and packet must be equal, because one rewritten datagram is sent twice.
fn copied_to(copy: Option<&Output>, answer: &Output) -> Called<Option<SocketAddr>> {
    let Some(copy) = copy else { return Ok(None) };
    if (copy.kind, copy.rsnode, copy.marker) != (answer.kind, answer.rsnode, answer.marker) {
        return Err(CallError(format!("the copy differs from its original: {copy:?}, {answer:?}")));
    }
    Ok(copy.to.as_ref().map(to_address))
}

/// Writes the changes of a forwarded datagram. Returns the number of leading bytes that may have changed.
fn deparse(came: &Came, answer: &Output, datagram: &mut [u8]) -> usize {
    let put = |start: &mut Netrs| (start.rsnode, start.kind) = (answer.rsnode.into(), answer.kind);
    if came.kind == Kind::Request {
        let Ok((request, rest)) = NetrsRequest::mut_from_prefix(datagram) else { return 0 };
        put(&mut request.start);
        if let (Ok((ends, _)), true) = (Ends::mut_from_prefix(rest), is_of_host(answer.role)) {
            ends.client = to_wire(&answer.client);
        }
        return size_of::<NetrsRequest>() + size_of::<Address>() + 3;
    }
    let Ok((response, _)) = NetrsResponse::mut_from_prefix(datagram) else { return 0 };
    put(&mut response.start);
    response.marker = answer.marker.into();
    size_of::<NetrsResponse>()
}

fn of_wire(address: &Address) -> End {
    let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| address.ip[4 * at + byte]));
    End { ip: std::array::from_fn(word), port: address.port.get() }
}

fn to_wire(end: &End) -> Address {
    let mut address = Address { port: end.port.into(), ..Address::new_zeroed() };
    address.ip.chunks_mut(4).zip(end.ip).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_be_bytes()));
    address
}

fn to_address(end: &End) -> SocketAddr {
    to_wire(end).into()
}

fn of_address(address: SocketAddr) -> End {
    of_wire(&address.into())
}

impl Engine for AsicCache {
    type Program = CacheProgram;

    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        self.refresh()?;
        self.is_genuine = false;
        let verdict = match self.take(now, from, datagram)? {
            Effect::Nothing(verdict) => {
                out.clear();
                verdict
            }
            Effect::Output(verdict, bytes) => {
                let owed: Datagram = (from, bytes);
                out.owe(&[owed])?;
                verdict
            }
            Effect::Forward { to, copy_to, header } => {
                out.forward_to(to, header, datagram.len());
                out.copy_to(copy_to);
                Verdict::Forwarded
            }
        };
        if self.is_genuine {
            out.set_genuine();
        }
        self.stats.reasons[verdict as usize] += 1;
        Ok(verdict)
    }

    fn tick(&mut self, _now: Nanos, out: &mut Out) -> Called<u32> {
        out.clear();
        self.read_monitor();
        Ok(0)
    }

    fn order(&mut self, order: &mut RuleOrder) -> Called<bool> {
        if let Some(group) = order.counted_group() {
            let is_there = u32::from(group) < self.config.groups;
            order.set_counts(if is_there { self.counts(group) } else { [0; TIERS_MAX] });
            order.set_outcome(if is_there { Outcome::Done } else { Outcome::Bad });
            return Ok(true);
        }
        let outcome = rules::obey(&mut self.rules, &self.config, order);
        order.set_outcome(outcome);
        self.is_stale = true;
        Ok(true)
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    /// The monitor's counts add up to the delivered answers.
    fn check(&self) -> Result<(), String> {
        let counted: u64 = (0..).zip(&self.counts).flat_map(|(group, _)| self.counts(group)).sum();
        if counted > self.stats.delivered {
            return Err(format!("the monitor has counted {counted} of {} answers", self.stats.delivered));
        }
        rules::check(&self.rules, &self.config)
    }
}

/// The numbers of the wire.
const _: () = assert!(
    WireKind::Request as u8 == Kind::Request as u8
        && WireKind::Response as u8 == Kind::Response as u8
        && WireKind::Monitored as u8 == Kind::Monitored as u8
        && TIERS_MAX == midflight_rmt::cache::TIERS
);
