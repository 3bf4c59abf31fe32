//! The sessions of a leader: how one begins at a switch, goes on, and ends.
//!
//! A session entry is proposed; when it is applied, every earlier session that may be alive is fenced; then heartbeats begin, and
//! the switch is active. `docs/internals/reads.md`, "Sessions".

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
use midflight_wire::reads::{Replica as Row, State};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Datagrams to send.
pub(super) type Datagrams = std::collections::VecDeque<(SocketAddr, Vec<u8>)>;

/// A leader's side of the protocol with the switch (FLAIR's lflair).
pub(super) struct Sessions {
    timing: Timing,
    set: u16,
    kgroup_bits: u8,
    /// READs may go to any replica.
    any_replica: bool,
    pub(super) switches: Switches,
    pub(super) balance: Balance,
    /// The number of the last session of this term.
    number: u32,
    /// No session is proposed before this time: whatever ends sessions again and again, the log does not fill with them.
    next_session: Nanos,
    pub(super) present: Option<Present>,
    /// Sessions that left their switch because clients did not reach it; whoever counts takes them.
    pub(super) moves: u64,
    /// When each member last said that a switch answers it; none whose last word was that none does.
    reaching: BTreeMap<u64, Nanos>,
    /// Sessions that may be alive at their switches.
    doubtful: Vec<Doubtful>,
    /// All data is to be removed before the next session.
    flush: bool,
    /// The number of the next packet to a switch.
    sequence: u32,
}

/// The session that the leader works with.
pub(super) struct Present {
    pub(super) name: SessionName,
    /// s: the index of its entry.
    pub(super) start: u64,
    /// Whether the entry is applied.
    is_applied: bool,
    /// When its first heartbeat was sent: before, no switch can be active with it.
    pub(super) begun: Option<Nanos>,
    pub(super) writes: Writes,
}

/// What an answer of a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Taken.
    Taken,
    /// Of another set, to no question, or late.
    Stray,
    /// Of a switch that cannot be worked with.
    Unlike,
    /// Taken; for the first time it says that a leader of a later term has had a session there.
    Overtaken,
}

struct Doubtful {
    name: SessionName,
    /// Then it is over at the latest.
    until: Nanos,
    /// Whether its switch was asked to end it.
    is_asked: bool,
}

impl Sessions {
    /// Those of a new leader.
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

    /// Asks for all data to be removed: between two sessions, as stable groups would still show it.
    pub(super) fn request_flush(&mut self, now: Nanos) {
        self.flush = true;
        self.leave(now);
    }

    /// Whether the switch takes requests for this leader.
    pub(super) fn is_active(&self) -> bool {
        self.present.as_ref().is_some_and(|present| present.begun.is_some())
    }

    /// Sessions that may be alive elsewhere.
    pub(super) fn in_doubt(&self) -> usize {
        self.doubtful.len()
    }

    /// A heartbeat's time: to the session's switch a HEARTBEAT, to the others a HELLO, to doubtful ones END_SESSION.
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

    /// Whether a session can begin now that has not: no heartbeat's time is waited for.
    pub(super) fn may_begin(&self, now: Nanos, node: &Node) -> bool {
        self.present.as_ref().is_some_and(|present| present.begun.is_none() && self.echo(now, node, present).is_some())
    }

    /// The echo of a heartbeat, where one may be sent: only under the leader's lease, after all earlier sessions are over, and with an
    /// echo that has not run out.
    fn echo(&self, now: Nanos, node: &Node, present: &Present) -> Option<u64> {
        let Answer { at, incarnation, echo, .. } = self.switches.last(present.name.switch)?;
        let is_fresh = incarnation == present.name.incarnation && now < at + self.timing.session_lease;
        let may = present.is_applied && (self.doubtful.is_empty() || planted(122)) && is_fresh;
        let may = may && (node.has_lease(now) || planted(123));
        may.then_some(echo)
    }

    /// ACTIVATE, or a later heartbeat, which is the same.
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

    /// Whether a switch has the set as this leader has it. One with a longer lease would outlive the fence, one with other key groups
    /// would take their states for others.
    fn is_alike(&self, state: &State) -> bool {
        let lease_us = u64::from(state.lease_us.get());
        lease_us == self.timing.session_lease / 1_000 && state.kgroup_bits == self.kgroup_bits
    }

    /// A switch has answered.
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
        // The switch's word that a session has ended there.
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

    /// The present session is over for the leader: from now on it refuses its SID.
    pub(super) fn leave(&mut self, now: Nanos) {
        let Some(present) = self.present.take() else { return };
        let heard = self.switches.last(present.name.switch).map_or(0, |last| last.at);
        let until = if present.begun.is_some() { heard + self.timing.fence() } else { now };
        self.doubtful.push(Doubtful { name: present.name, until, is_asked: false });
    }

    /// The entry of the present session is applied: of all others on the log's list nobody knows whether they are over.
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

    /// Does what is due: sessions that are over leave the list, a silent switch is left, a session is proposed.
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

    /// Sessions that have just come into doubt: heartbeats ask again.
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
            // Where the entry finds no room now, it is proposed in the next turn.
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

    /// The session moves to a standby that clients reach, if they do not reach its switch.
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

    /// Above all of this term, and above what the switch has seen.
    fn next_sid(&self, term: u64, answer: &Answer) -> Option<u64> {
        let seen = if answer.latest >> 32 == term && !planted(130) { answer.latest as u32 } else { 0 };
        let number = self.number.max(seen).checked_add(1)?;
        Some(term << 32 | u64::from(number))
    }

    /// A member says whether a switch answers it.
    pub(super) fn note_reach(&mut self, now: Nanos, member: u64, is_heard: bool) {
        if is_heard {
            self.reaching.insert(member, now);
        } else {
            self.reaching.remove(&member);
        }
    }

    /// Members that switches answer, where this leader, which leads since `since`, has had no answer for a session's lease. What a member
    /// says is as old as the interval in which it says it: an earlier word may be of a time when switches answered the leader too.
    pub(super) fn reach_better(&self, now: Nanos, since: Nanos) -> impl Iterator<Item = u64> {
        let silent_since = self.switches.last_answer().max(since);
        let is_cut_off = now >= silent_since + self.timing.session_lease;
        let after = silent_since + HELLO_HEARTBEATS * self.timing.heartbeat;
        self.reaching.iter().filter(move |(_, at)| is_cut_off && **at >= after).map(|(&member, _)| member)
    }

    /// When something is due after `now`, besides heartbeats. What was due and could not be done is tried at the next heartbeat.
    pub(super) fn timeout(&self, now: Nanos) -> Option<Nanos> {
        let doubts = self.doubtful.iter().map(|doubtful| doubtful.until);
        let present = self.present.as_ref().and_then(|present| self.switches.last(present.name.switch));
        let silent = present.map(|last| last.at + SILENT_HEARTBEATS * self.timing.heartbeat);
        let next = self.present.is_none().then_some(self.next_session);
        doubts.chain(silent).chain(next).filter(|due| *due > now).min()
    }
}
