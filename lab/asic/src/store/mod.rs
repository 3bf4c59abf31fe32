//! The store program in the model of a switch's pipeline: [`midflight_rmt::store`] with a parser and the tables that the controller fills.
//!
//! `docs/internals/asic-store.md` lists the controller's tasks, and the differences from the soft engine.

mod controller;
mod parser;
mod set;

use midflight_dataplane::Cookies;
use midflight_dataplane::program::{Called, Engine, Program, SoftProgram};
use midflight_dataplane::store::{
    LEASE_MAX_NS, NewSet, Outcome, SetOrder, SetStats, Stats, StoreConfig, StoreProgram, Verdict, Wish,
};
use midflight_dataplane::{Datagram, Out};
use midflight_endpoint::Nanos;
use midflight_rmt::store::{Answer, Config, Cut, Did, Group, Kind, Passing, Store};
use midflight_rmt::{Machine, Refusal, Target};
use midflight_wire::store::{FLAGS_KEPT, NO_SLOT, Operation, Packet, Request, Status};
use midflight_wire::{Address, Header, Version};
use set::Set;
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub use controller::SEQ_MARK;

/// A cookie's identity: it depends on the address only.
const IDENTITY: u64 = 0;

/// A unit of the switch's time is 2^this nanoseconds, 16 µs: so a past end of a lease stays past for nine hours.
pub const UNIT_BITS: u32 = 14;

/// The asic engine's switch of replica sets.
#[derive(Clone, Debug)]
pub struct AsicStore {
    config: StoreConfig,
    program: Box<Store>,
    machine: Machine,
    unit_bits: u32,
    cookies: Cookies,
    secret: u128,
    /// By their places.
    sets: Vec<Option<Set>>,
    /// The last generation of each place. It outlives the set, so the next one there needs no cleared key groups.
    generations: Vec<u32>,
    stats: Stats,
    now: Nanos,
    /// Whether the current datagram is genuine: see [`Out::is_genuine`].
    is_genuine: bool,
}

#[derive(Clone, Copy, Debug)]
struct Came {
    now: Nanos,
    from: SocketAddr,
}

enum Effect {
    Nothing(Verdict),
    Answer(Verdict, Vec<u8>),
    /// The datagram is forwarded, rewritten in place.
    Forward {
        to: SocketAddr,
        length: usize,
    },
}

impl AsicStore {
    /// A newly started switch. `secret` is random. A unit of its time is 2^`unit_bits` nanoseconds: [`UNIT_BITS`].
    ///
    /// # Errors
    /// If a bound of the configuration is violated, or the key groups do not fit a pipeline.
    pub fn new(config: &StoreConfig, secret: u128, unit_bits: u32) -> Result<Self, String> {
        if StoreProgram::state_bytes(config) == 0 {
            return Err(StoreProgram::violated(config).to_string());
        }
        let sets = config.sets.next_power_of_two();
        let size = Config { sets, kgroup_bits: config.kgroup_bits.max(1) };
        let too_large =
            |refusal: Refusal| format!("sets = {}, kgroup_bits = {}: {refusal}", config.sets, config.kgroup_bits);
        let program = Box::new(Store::build(size, &Target::TOFINO_1).map_err(too_large)?);
        Ok(Self {
            config: *config,
            machine: program.machine(),
            program,
            unit_bits,
            cookies: Cookies::new(secret, config.cookie_ns),
            secret,
            sets: vec![None; config.sets as usize],
            generations: vec![0; config.sets as usize],
            stats: Stats::new_zeroed(),
            now: 0,
            is_genuine: false,
        })
    }

    /// Sets the SEQ of a set's session: for tests of its end.
    pub fn set_seq(&mut self, number: u16, seq: u32) {
        if let Some(place) = self.place_of(number) {
            self.program.set_seq(&mut self.machine, place as u8, seq);
        }
    }

    fn units(&self, time: Nanos) -> u32 {
        (time >> self.unit_bits) as u32
    }

    fn place_of(&self, number: u16) -> Option<usize> {
        self.sets.iter().position(|set| set.as_ref().is_some_and(|set| set.config.number == number))
    }

    fn take(&mut self, came: Came, datagram: &mut [u8]) -> Effect {
        match parser::read(datagram, &mut self.stats) {
            Err(Verdict::BadVersion) => Effect::Answer(Verdict::BadVersion, Version::OURS.as_bytes().to_vec()),
            Err(verdict) => Effect::Nothing(verdict),
            Ok(Packet::Read(request, _)) => {
                let request = *request;
                self.request(came, Kind::Read, request, datagram)
            }
            Ok(Packet::Write(request, ..)) => {
                let request = *request;
                self.request(came, Kind::Write, request, datagram)
            }
            Ok(Packet::ReadReply(reply, ..)) => {
                let reply = *reply;
                self.reply(came, Kind::ReadReply, reply, datagram)
            }
            Ok(Packet::WriteReply(reply, ..)) => {
                let reply = *reply;
                self.reply(came, Kind::WriteReply, reply, datagram)
            }
            Ok(Packet::Hello(hello)) => self.hello(came, hello),
            Ok(Packet::Heartbeat(beat, replicas)) => self.heartbeat(came, beat, replicas),
            Ok(Packet::EndSession(end)) => self.end_session(came, end),
            Ok(Packet::State(_) | Packet::Version(_)) => Effect::Nothing(Verdict::NotForSwitch),
        }
    }

    /// READ and WRITE. The tables of the set and of clients come first.
    fn request(&mut self, came: Came, kind: Kind, mut request: Request, datagram: &mut [u8]) -> Effect {
        let Some(place) = self.place_of(request.set.get()) else {
            return Effect::Answer(Verdict::UnknownSet, answer(&request, Status::UnknownSet).as_bytes().to_vec());
        };
        let said = request.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
        if !self.cookies.takes(came.now, IDENTITY, came.from, said) {
            let mut asks = answer(&request, Status::Cookie);
            asks.client.ip[..8].copy_from_slice(&self.cookies.give(came.now, IDENTITY, came.from).to_be_bytes());
            return Effect::Answer(Verdict::NoCookie, asks.as_bytes().to_vec());
        }
        let told = self.pass(came, kind, place, &request);
        if told.did == Did::Refused {
            if let Some(set) = &mut self.sets[place] {
                set.count_refused(&mut self.stats.sets[place], &request);
            }
            return Effect::Answer(Verdict::Inactive, answer(&request, Status::Inactive).as_bytes().to_vec());
        }
        self.is_genuine = true;
        request.client = came.from.into();
        self.deparse(place, request, &told, datagram)
    }

    /// READ_REPLY and WRITE_REPLY, if they come from the replica that they name.
    fn reply(&mut self, came: Came, kind: Kind, reply: Request, datagram: &mut [u8]) -> Effect {
        let Some(place) = self.place_of(reply.set.get()) else { return Effect::Nothing(Verdict::UnknownSet) };
        let Some(set) = &mut self.sets[place] else { return Effect::Nothing(Verdict::UnknownSet) };
        if set.replica(reply.slot) != Some(came.from) {
            return Effect::Nothing(Verdict::ForeignReplica);
        }
        if reply.header.epoch.get() != set.epoch() {
            return Effect::Nothing(Verdict::ForeignEpoch);
        }
        if kind == Kind::ReadReply {
            if reply.client.port.get() == 0 {
                return Effect::Nothing(Verdict::NoClient);
            }
            set.count_answered(&reply);
        }
        let told = self.pass(came, kind, place, &reply);
        if !told.is_sent {
            return Effect::Nothing(Verdict::Ok);
        }
        self.deparse(place, reply, &told, datagram)
    }

    /// One pass of a client's or replica's packet, and its counts.
    fn pass(&mut self, came: Came, kind: Kind, place: usize, request: &Request) -> Answer {
        let now = self.units(came.now);
        let Self { sets, program, machine, stats, .. } = self;
        let set = sets[place].as_mut().expect("place_of has found a set there, and only an order removes one");
        let is_request = matches!(kind, Kind::Read | Kind::Write);
        let passing = Passing {
            kind,
            place: place as u8,
            bits: set.config.kgroup_bits,
            is_relaxed: set.is_relaxed(),
            avoids_leader: set.config.policy.avoids_leader(),
            now,
            lot: set.lot(),
            sid: request.sid.get(),
            seq: request.seq.get(),
            index: request.index.get(),
            hash: request.hash.get(),
            client_port: if is_request { came.from.port() } else { request.client.port.get() },
            replicas: request.replicas,
            slot: request.slot,
            status: request.status,
            flags: request.flags,
        };
        let sent = machine.pass(program.passing(&passing)).packet;
        let told = program.answer(&sent).expect("only packets of the controller have no answer");
        set.count(&mut stats.sets[place], &told);
        told
    }

    /// Writes the header of a forwarded packet. A table has the addresses of the set's replicas.
    fn deparse(&self, place: usize, mut request: Request, told: &Answer, datagram: &mut [u8]) -> Effect {
        let set = self.sets[place].as_ref().expect("place_of has found a set there, and only an order removes one");
        let to = match told.to {
            Some(slot) => set.replica(slot),
            None => Some(SocketAddr::from(request.client)),
        };
        let Some(to) = to else { return Effect::Nothing(Verdict::Inactive) };
        request.header.operation = told.op;
        request.header.epoch = if told.to.is_some() { set.epoch() } else { 0 }.into();
        (request.sid, request.seq, request.index) = (told.sid.into(), told.seq.into(), told.index.into());
        (request.replicas, request.status, request.flags) = (told.replicas, told.status, told.flags);
        match told.to {
            Some(slot) => request.slot = slot,
            None => request.client = Address::new_zeroed(),
        }
        let length = match told.cut {
            Cut::Nothing => datagram.len(),
            Cut::BehindKey => size_of::<Request>() + usize::from(request.key_length.get()),
            Cut::BehindHeader => {
                request.key_length = 0.into();
                size_of::<Request>()
            }
        };
        if let Ok((header, _)) = Request::mut_from_prefix(datagram) {
            *header = request;
        }
        Effect::Forward { to, length }
    }

    fn add_set(&mut self, new: NewSet) -> Outcome {
        if new.incarnation == 0 || !self.is_within_bounds(&new) {
            return Outcome::Bad;
        }
        if self.place_of(new.number).is_some() {
            return Outcome::Exists;
        }
        let Some(place) = self.sets.iter().position(Option::is_none) else { return Outcome::NoRoom };
        self.stats.sets[place] = SetStats { set: new.number, is_used: 1, ..SetStats::new_zeroed() };
        let lease_ns = self.lease_of(&new);
        self.sets[place] = Some(Set::new(NewSet { lease_ns, ..new }));
        Outcome::Done
    }

    fn change_set(&mut self, new: NewSet) -> Outcome {
        let lease_ns = self.lease_of(&new);
        if !self.is_within_bounds(&new) {
            return Outcome::Bad;
        }
        let place = self.place_of(new.number);
        match place.and_then(|place| self.sets[place].as_mut()) {
            None => Outcome::Unknown,
            Some(set) => set.change(NewSet { lease_ns, ..new }),
        }
    }

    fn remove_set(&mut self, number: u16) -> Outcome {
        let Some(place) = self.place_of(number) else { return Outcome::Unknown };
        let unstable = self.unstable(place);
        self.end(place, self.now);
        self.sets[place] = None;
        (self.stats.sets[place].is_used, self.stats.sets[place].unstable) = (0, unstable);
        Outcome::Done
    }

    fn is_within_bounds(&self, set: &NewSet) -> bool {
        set.lease_ns <= LEASE_MAX_NS && u32::from(set.kgroup_bits) <= self.config.kgroup_bits
    }

    fn lease_of(&self, set: &NewSet) -> Nanos {
        if set.lease_ns == 0 { self.config.lease_ns } else { set.lease_ns }
    }

    fn unstable(&self, place: usize) -> u32 {
        let Some(set) = &self.sets[place] else { return 0 };
        if set.session.is_none() {
            return 0;
        }
        let groups = (0..1u32 << set.config.kgroup_bits).map(|n| self.program.group_of(&self.machine, place as u8, n));
        let is_unstable = |group: &Group| group.generation == self.generations[place] && !group.is_stable;
        groups.filter(is_unstable).count() as u32
    }
}

/// The switch's own answer to a request: only its header.
fn answer(request: &Request, status: Status) -> Request {
    Request {
        header: Header::new(request.header.operation + 1, 0, request.header.sequence.get()),
        sid: 0.into(),
        seq: 0.into(),
        index: 0.into(),
        key_length: 0.into(),
        client: Address::new_zeroed(),
        replicas: 0,
        slot: NO_SLOT,
        status: status as u8,
        flags: request.flags & FLAGS_KEPT,
        ..*request
    }
}

impl Engine for AsicStore {
    type Program = StoreProgram;

    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        self.settle(now);
        self.is_genuine = false;
        let verdict = match self.take(Came { now, from }, datagram) {
            Effect::Nothing(verdict) => {
                out.clear();
                verdict
            }
            Effect::Answer(verdict, bytes) => {
                let owed: Datagram = (from, bytes);
                out.owe(&[owed])?;
                verdict
            }
            Effect::Forward { to, length } => {
                out.forward_to(to, size_of::<Request>(), length);
                Verdict::Forwarded
            }
        };
        if self.is_genuine {
            out.set_genuine();
        }
        self.stats.reasons[verdict as usize] += 1;
        Ok(verdict)
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) -> Called<u32> {
        out.clear();
        self.settle(now);
        self.keep_past(now);
        Ok(0)
    }

    fn order(&mut self, order: &mut SetOrder) -> Called<bool> {
        let outcome = match order.wish() {
            Some(Wish::Add(set)) => self.add_set(set),
            Some(Wish::Remove(number)) => self.remove_set(number),
            Some(Wish::Change(set)) => self.change_set(set),
            None => Outcome::Bad,
        };
        order.set_outcome(outcome);
        Ok(true)
    }

    fn stats(&self) -> Stats {
        let mut stats = self.stats;
        for place in (0..self.sets.len()).filter(|&place| self.sets[place].is_some()) {
            stats.sets[place].unstable = self.unstable(place);
        }
        stats
    }

    fn check(&self) -> Result<(), String> {
        (0..self.sets.len()).try_for_each(|place| self.check_place(place))
    }
}

/// Operations of the wire have the numbers of the program's kinds.
const _: () = assert!(
    Operation::Read as u8 == Kind::Read as u8
        && Operation::ReadReply as u8 == Kind::ReadReply as u8
        && Operation::Write as u8 == Kind::Write as u8
        && Operation::WriteReply as u8 == Kind::WriteReply as u8
);
