//! A leader's sessions: how one begins at a switch, continues, and ends.
//!
//! The leader proposes a session entry. Once it is applied, the leader fences every earlier session that may be alive. Then heartbeats
//! begin, and the switch is active. `docs/internals/store.md`, "Sessions".

use super::balance::Balance;
use super::config::{ReplicaConfig, Timing};
use super::entry::{Record, SessionName};
use super::node::Node;
use super::packets;
use super::presence::HELLO_HEARTBEATS;
use super::switches::{Answer, SILENT_HEARTBEATS, Switches, is_silent};
use super::writes::Writes;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{Replica as Row, State};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(super) type Datagrams = std::collections::VecDeque<(SocketAddr, Vec<u8>)>;

/// The leader's protocol with the switch (FLAIR's lflair).
pub(super) struct Sessions {
    timing: Timing,
    set: u16,
    kgroup_bits: u8,
    /// READs may go to any replica.
    any_replica: bool,
    pub(super) switches: Switches,
    pub(super) balance: Balance,
    number: u32,
    /// The earliest next proposal. Bounds the rate at which failing sessions fill the log.
    next_session: Nanos,
    pub(super) present: Option<Present>,
    /// Sessions that left their switch because clients could not reach it; the reader resets the count.
    pub(super) moves: u64,
    /// When each member last reported that a switch answers it. A report to the contrary removes it.
    reaching: BTreeMap<u64, Nanos>,
    /// Earlier sessions that may be alive at their switches.
    doubtful: Vec<Doubtful>,
    flush: bool,
    /// Sequence number of the last packet to a switch.
    sequence: u32,
}

pub(super) struct Present {
    pub(super) name: SessionName,
    /// s: the index of its entry.
    pub(super) start: u64,
    is_applied: bool,
    /// When its first heartbeat was sent; before, no switch can be active with it.
    pub(super) begun: Option<Nanos>,
    pub(super) writes: Writes,
}

/// Outcome of a switch's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Taken,
    /// Of another set, unsolicited, or late.
    Stray,
    /// The switch is configured differently.
    Unlike,
    /// Taken; the first one to show that a later term's leader had a session there.
    Overtaken,
}

struct Doubtful {
    name: SessionName,
    /// The latest time at which it ends.
    until: Nanos,
    is_asked: bool,
}

impl Sessions {
    pub(super) fn new(config: &ReplicaConfig) -> Self {
        Self {
            timing: config.timing,
            set: config.set,
            kgroup_bits: config.kgroup_bits,
            any_replica: config.mode.uses_any_replica(),
            switches: Switches::new(&config.switches),
            balance: Balance::default(),
            number: 0,
            next_session: 0,
            present: None,
            moves: 0,
            reaching: BTreeMap::new(),
            doubtful: Vec::new(),
            flush: false,
            sequence: config.seed as u32 ^ (config.seed >> 32) as u32,
        }
    }

    /// Removes all data between two sessions; within one, stable groups would still show it.
    pub(super) fn request_flush(&mut self, now: Nanos) {
        self.flush = true;
        self.leave(now);
    }

    pub(super) fn is_active(&self) -> bool {
        self.present.as_ref().is_some_and(|present| present.begun.is_some())
    }

    pub(super) fn in_doubt(&self) -> usize {
        self.doubtful.len()
    }

    /// Sends a HEARTBEAT to the session's switch, HELLO to the others, and END_SESSION for doubtful sessions.
    pub(super) fn beat(&mut self, now: Nanos, node: &Node, slot: u8, replicas: &[Row], out: &mut Datagrams) {
        let at = self.present.as_ref().map(|present| present.name.switch);
        let addresses: Vec<SocketAddr> = self.switches.addresses().collect();
        for address in addresses {
            self.sequence = self.sequence.wrapping_add(1);
            let heartbeat = if at == Some(address) { self.heartbeat(now, node, slot, replicas) } else { None };
            let packet =
                heartbeat.unwrap_or_else(|| packets::hello(self.sequence, self.set, slot, self.switches.last(address)));
            self.switches.ask(address, self.sequence);
            out.push_back((address, packet));
        }
        for Doubtful { name, .. } in &self.doubtful {
            self.sequence = self.sequence.wrapping_add(1);
            self.switches.ask(name.switch, self.sequence);
            out.push_back((name.switch, packets::end_session(self.sequence, self.set, slot, name)));
        }
    }

    pub(super) fn may_begin(&self, now: Nanos, node: &Node) -> bool {
        self.present.as_ref().is_some_and(|present| present.begun.is_none() && self.echo(now, node, present).is_some())
    }

    /// The echo for a heartbeat. A heartbeat requires the leader's lease, the end of all earlier sessions, and an echo that has not
    /// expired.
    fn echo(&self, now: Nanos, node: &Node, present: &Present) -> Option<u64> {
        let Answer { at, incarnation, echo, .. } = self.switches.last(present.name.switch)?;
        let is_fresh = incarnation == present.name.incarnation && now < at + self.timing.session_lease;
        let may = present.is_applied && (self.doubtful.is_empty() || planted(122)) && is_fresh;
        let may = may && (node.has_lease(now) || planted(123));
        may.then_some(echo)
    }

    /// ACTIVATE, which is the first heartbeat, or a later one.
    fn heartbeat(&mut self, now: Nanos, node: &Node, slot: u8, replicas: &[Row]) -> Option<Vec<u8>> {
        let echo = self.echo(now, node, self.present.as_ref()?)?;
        let present = self.present.as_mut()?;
        present.begun.get_or_insert(now);
        let head = packets::HeartbeatHead {
            name: &present.name,
            start: present.start,
            echo,
            set: self.set,
            leader: slot,
            kgroup_bits: self.kgroup_bits,
            is_idle: present.writes.is_idle(now),
            any_replica: self.any_replica,
        };
        Some(packets::heartbeat(self.sequence, &head, replicas))
    }

    /// Whether a switch has the same settings. A longer lease would outlive the fence; another number of key groups would mix up their
    /// states.
    fn is_alike(&self, state: &State) -> bool {
        let lease_us = u64::from(state.lease_us.get());
        lease_us == self.timing.session_lease / 1_000 && state.kgroup_bits == self.kgroup_bits
    }

    pub(super) fn answered(&mut self, now: Nanos, from: SocketAddr, state: &State, term: u64) -> Heard {
        if state.set.get() != self.set || !self.switches.was_asked(from, state) {
            return Heard::Stray;
        }
        if !self.is_alike(state) {
            return Heard::Unlike;
        }
        if !self.switches.answered(now, from, state) {
            return Heard::Stray;
        }
        self.take_answer(now, from, state);
        if self.switches.is_newly_overtaken(from, term) { Heard::Overtaken } else { Heard::Taken }
    }

    fn take_answer(&mut self, now: Nanos, from: SocketAddr, state: &State) {
        let (incarnation, ended) = (state.incarnation.get(), state.ended.get());
        for doubtful in &mut self.doubtful {
            let name = &doubtful.name;
            if name.switch == from && name.incarnation == incarnation && ended >= name.sid {
                doubtful.until = now;
            }
        }
        let Some(present) = self.present.as_ref().filter(|present| present.name.switch == from) else { return };
        let is_over = ended >= present.name.sid || state.sid.get() > present.name.sid;
        let is_lost = (present.name.incarnation != incarnation && !planted(131)) || is_over;
        if is_lost {
            self.leave(now);
        } else {
            self.switches.note_reached(now, state, &self.timing);
        }
    }

    pub(super) fn leave(&mut self, now: Nanos) {
        let Some(present) = self.present.take() else { return };
        let heard = self.switches.last(present.name.switch).map_or(0, |last| last.at);
        let until = if present.begun.is_some() { heard + self.timing.fence() } else { now };
        self.doubtful.push(Doubtful { name: present.name, until, is_asked: false });
    }

    /// The session's entry is applied. All others on the log's list may still be alive.
    pub(super) fn applied(&mut self, index: u64, node: &Node, list: &[SessionName]) {
        let Some(present) = self.present.as_mut().filter(|present| present.start == index) else { return };
        present.is_applied = true;
        let until = node.leads_since().unwrap_or(0) + self.timing.fence();
        for &name in list.iter().filter(|name| name.sid != present.name.sid) {
            if self.doubtful.iter().all(|doubtful| doubtful.name.sid != name.sid) {
                self.doubtful.push(Doubtful { name, until, is_asked: false });
            }
        }
    }

    /// Runs what is due: fences ended sessions, leaves a silent switch, proposes a session.
    pub(super) fn advance(&mut self, now: Nanos, node: &mut Node, slot: u8, out: &mut Datagrams) {
        self.ask_to_end(slot, out);
        self.end_doubts(now, node);
        self.leave_silent_switch(now, node.term());
        self.follow_clients(now, node.term());
        if self.present.is_some() || node.is_handing_over() {
            return;
        }
        if self.flush {
            if !self.doubtful.is_empty() || node.propose(Record::Flush.encode()).is_none() {
                return;
            }
            self.flush = false;
        }
        self.propose(now, node);
    }

    /// Asks at once; heartbeats repeat it.
    fn ask_to_end(&mut self, slot: u8, out: &mut Datagrams) {
        for doubtful in self.doubtful.iter_mut().filter(|doubtful| !doubtful.is_asked) {
            doubtful.is_asked = true;
            let name = doubtful.name;
            self.sequence = self.sequence.wrapping_add(1);
            self.switches.ask(name.switch, self.sequence);
            out.push_back((name.switch, packets::end_session(self.sequence, self.set, slot, &name)));
        }
    }

    fn end_doubts(&mut self, now: Nanos, node: &mut Node) {
        self.doubtful.retain(|doubtful| {
            // If the log has no room now, the next turn proposes the entry.
            now < doubtful.until || node.propose(Record::Fenced(doubtful.name.sid).encode()).is_none()
        });
    }

    fn leave_silent_switch(&mut self, now: Nanos, term: u64) {
        let Some(present) = &self.present else { return };
        let heard = self.switches.last(present.name.switch).map_or(0, |last| last.at);
        let elsewhere = self.switches.best(now, &self.timing, term).is_some();
        if is_silent(now, heard, &self.timing) && elsewhere {
            self.leave(now);
        }
    }

    /// If clients do not reach the session's switch, moves it to a standby that they reach.
    fn follow_clients(&mut self, now: Nanos, term: u64) {
        let Some(Present { name, begun: Some(begun), .. }) = &self.present else { return };
        let (at, begun) = (name.switch, *begun);
        if self.switches.prefer_wanted(now, at, begun, &self.timing, term) {
            self.moves += 1;
            self.leave(now);
        }
    }

    fn propose(&mut self, now: Nanos, node: &mut Node) {
        if now < self.next_session {
            return;
        }
        let term = node.term();
        let Some((switch, answer)) = self.switches.best(now, &self.timing, term) else { return };
        let Some(sid) = self.next_sid(term, &answer) else { return };
        let name = SessionName { sid, switch, incarnation: answer.incarnation };
        let Some(start) = node.propose(Record::Session(name).encode()) else { return };
        self.number = if planted(130) { self.number } else { sid as u32 };
        self.next_session = now + self.timing.heartbeat;
        let writes = Writes::new(self.kgroup_bits);
        self.present = Some(Present { name, start, is_applied: false, begun: None, writes });
    }

    fn next_sid(&self, term: u64, answer: &Answer) -> Option<u64> {
        let seen = if answer.latest >> 32 == term && !planted(130) { answer.latest as u32 } else { 0 };
        let number = self.number.max(seen).checked_add(1)?;
        Some(term << 32 | u64::from(number))
    }

    pub(super) fn note_reach(&mut self, now: Nanos, member: u64, is_heard: bool) {
        if is_heard {
            self.reaching.insert(member, now);
        } else {
            self.reaching.remove(&member);
        }
    }

    /// Members that switches answer, if this leader, since `since`, has had no answer for a session lease. A report may be one interval
    /// old, so earlier ones may describe a time when switches answered the leader too.
    pub(super) fn reach_better(&self, now: Nanos, since: Nanos) -> impl Iterator<Item = u64> {
        let silent_since = self.switches.last_answer().max(since);
        let is_cut_off = now >= silent_since + self.timing.session_lease;
        let after = silent_since + HELLO_HEARTBEATS * self.timing.heartbeat;
        self.reaching.iter().filter(move |(_, at)| is_cut_off && **at >= after).map(|(&member, _)| member)
    }

    /// The next time after `now` at which something is due, besides heartbeats. What is overdue is retried at the next heartbeat.
    pub(super) fn timeout(&self, now: Nanos) -> Option<Nanos> {
        let doubts = self.doubtful.iter().map(|doubtful| doubtful.until);
        let present = self.present.as_ref().and_then(|present| self.switches.last(present.name.switch));
        let silent = present.map(|last| last.at + SILENT_HEARTBEATS * self.timing.heartbeat);
        let next = self.present.is_none().then_some(self.next_session);
        doubts.chain(silent).chain(next).filter(|due| *due > now).min()
    }
}
