//! The reference model of the store program: what each packet must cause at the switch, in plain Rust.
//!
//! It was written from `docs/internals/store.md` and the packet formats, as simply as possible: maps, no counters that
//! can be computed, an empty map of key groups for each new session. It must match an engine in bytes, verdicts and
//! counts.

mod packets;
mod replies;
mod requests;
mod sessions;
mod set;

use midflight_dataplane::program::{Called, Engine};
use midflight_dataplane::store::{
    LEASE_MAX_NS, NewSet, Outcome, SetOrder, SetStats, Stats, StoreConfig, StoreProgram, Verdict, Wish,
};
use midflight_dataplane::{Cookies, Out};
use midflight_wire::store::{Operation, Packet, REPLICAS_MAX, parse};
use midflight_wire::{Reject, Version};
use packets::{Came, Effect, is_version, refused, valid_operation, verdict_of};
use set::Set;
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

/// A switch treats all requests alike, so cookies depend on addresses only.
const IDENTITY: u64 = 0;

/// The switch of `docs/internals/store.md`.
#[derive(Clone, Debug)]
pub struct Model {
    config: StoreConfig,
    cookies: Cookies,
    sets: HashMap<u16, Set>,
    stats: Stats,
    /// The current datagram is a HEARTBEAT that begins a session or extends a lease, so it is no copy.
    is_genuine: bool,
}

impl Model {
    /// A fresh switch.
    #[must_use]
    pub fn new(config: &StoreConfig, secret: u128) -> Self {
        let cookies = Cookies::new(secret, config.cookie_ns);
        Self { config: *config, cookies, sets: HashMap::new(), stats: Stats::new_zeroed(), is_genuine: false }
    }

    fn take(&mut self, came: Came<'_>) -> Effect {
        if let Some(operation) = valid_operation(came.bytes) {
            self.stats.packets[operation as usize] += 1;
            if operation == Operation::State {
                return refused(Verdict::NotForSwitch);
            }
        }
        if is_version(came.bytes) {
            return refused(Verdict::NotForSwitch);
        }
        match parse(came.bytes) {
            Ok(Packet::Read(request, _) | Packet::Write(request, ..)) => self.request(came, request),
            Ok(Packet::WriteReply(reply, status, _)) => self.write_reply(came, reply, status),
            Ok(Packet::ReadReply(reply, status, ..)) => self.read_reply(came, reply, status),
            Ok(Packet::Hello(hello)) => self.hello(came, hello),
            Ok(Packet::Heartbeat(beat, replicas)) => self.heartbeat(came, beat, replicas),
            Ok(Packet::EndSession(end)) => self.end_session(came, end),
            Ok(Packet::State(_) | Packet::Version(_)) => refused(Verdict::NotForSwitch),
            Err(Reject::BadVersion(_)) => (Verdict::BadVersion, vec![(came.from, Version::OURS.as_bytes().to_vec())]),
            Err(reject) => refused(verdict_of(reject)),
        }
    }

    fn add(&mut self, new: NewSet) -> Outcome {
        if new.incarnation == 0 || !self.is_within_bounds(&new) {
            return Outcome::Bad;
        }
        if self.sets.contains_key(&new.number) {
            return Outcome::Exists;
        }
        let places = 0..self.config.sets as usize;
        let Some(place) = places.into_iter().find(|&place| self.stats.sets[place].is_used == 0) else {
            return Outcome::NoRoom;
        };
        self.stats.sets[place] = SetStats { set: new.number, is_used: 1, ..SetStats::new_zeroed() };
        let config = NewSet { lease_ns: self.lease_of(&new), ..new };
        let echoes = [0; REPLICAS_MAX];
        let set = Set { place, config, session: None, ended: 0, draws: 0, echoes, unserved: 0 };
        self.sets.insert(set.config.number, set);
        Outcome::Done
    }

    fn is_within_bounds(&self, set: &NewSet) -> bool {
        set.lease_ns <= LEASE_MAX_NS && u32::from(set.kgroup_bits) <= self.config.kgroup_bits
    }

    fn lease_of(&self, set: &NewSet) -> u64 {
        if set.lease_ns == 0 { self.config.lease_ns } else { set.lease_ns }
    }

    fn change(&mut self, new: NewSet) -> Outcome {
        let (is_within_bounds, lease_ns) = (self.is_within_bounds(&new), self.lease_of(&new));
        let set = self.sets.get_mut(&new.number);
        match set {
            _ if !is_within_bounds => Outcome::Bad,
            None => Outcome::Unknown,
            Some(set) if (set.config.lease_ns, set.config.kgroup_bits) != (lease_ns, new.kgroup_bits) => {
                Outcome::Frozen
            }
            Some(set) => {
                set.config = NewSet { incarnation: set.config.incarnation, lease_ns, ..new };
                Outcome::Done
            }
        }
    }

    fn remove(&mut self, number: u16) -> Outcome {
        let Some(set) = self.sets.remove(&number) else { return Outcome::Unknown };
        self.stats.sets[set.place].is_used = 0;
        Outcome::Done
    }

    /// Engines keep a counter; the model counts.
    fn count_unstable(&mut self) {
        for set in self.sets.values() {
            let kgroups = set.session.iter().flat_map(|session| session.kgroups.values());
            self.stats.sets[set.place].unstable = kgroups.filter(|kgroup| !kgroup.stable).count() as u32;
        }
    }
}

impl Engine for Model {
    type Program = StoreProgram;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        self.is_genuine = false;
        let (verdict, owed) = self.take(Came { from, now: now_ns, bytes: datagram });
        self.stats.reasons[verdict as usize] += 1;
        self.count_unstable();
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

    fn order(&mut self, order: &mut SetOrder) -> Called<bool> {
        let outcome = match order.wish() {
            Some(Wish::Add(set)) => self.add(set),
            Some(Wish::Remove(number)) => self.remove(number),
            Some(Wish::Change(set)) => self.change(set),
            None => Outcome::Bad,
        };
        order.set_outcome(outcome);
        Ok(true)
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn check(&self) -> Result<(), String> {
        let mut places: Vec<usize> = self.sets.values().map(|set| set.place).collect();
        places.sort_unstable();
        places.dedup();
        if places.len() == self.sets.len() { Ok(()) } else { Err("two sets have one place".to_owned()) }
    }
}
