//! The switches of a set: which answer, and which replicas each one reaches.

use super::config::Timing;
use midflight_endpoint::Nanos;
use midflight_wire::store::{REPLICAS_MAX, State};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Heartbeats without an answer after which a switch counts as silent, or a replica as failed.
pub(super) const SILENT_HEARTBEATS: u64 = 3;
/// If a replica gets READs through a switch but answers none for this many heartbeats, it gets none for [`PAUSED_HEARTBEATS`].
const UNANSWERED_HEARTBEATS: u64 = 5;
const PAUSED_HEARTBEATS: u64 = 50;

/// Leases for which a session stays at its switch before clients may move it. Clients that reach only different switches are served in
/// turn, and a needless report costs the others one move a second.
const SETTLED_LEASES: u64 = 8;

/// Latest questions per switch whose answers count.
const QUESTIONS: usize = 32;

#[derive(Debug)]
pub(super) struct Switch {
    pub(super) address: SocketAddr,
    pub(super) last: Option<Answer>,
    /// Sequence numbers of the last questions.
    asked: VecDeque<u32>,
    is_overtaken: bool,
    /// When its count of refused clients that no switch serves last changed.
    wanted: Nanos,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) at: Nanos,
    pub(super) incarnation: u64,
    /// Time at the switch.
    pub(super) echo: u64,
    /// The highest SID that has begun or ended there.
    pub(super) latest: u64,
    unserved: u8,
}

impl Answer {
    /// Whether a leader of this term can have a session there. If not, a later term's leader had one.
    pub(super) fn is_open_to(&self, term: u64) -> bool {
        self.latest < (term << 32 | u64::from(u32::MAX))
    }
}

#[derive(Debug)]
pub(super) struct Switches {
    list: Vec<Switch>,
    /// The switch to which clients have drawn the session.
    preferred: Option<SocketAddr>,
    reached: [Reached; REPLICAS_MAX],
}

/// Whether the session's switch reaches a replica.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// READs that the switch sent it, and answers, as its last STATE counted them, modulo 2^32.
    reads_sent: u32,
    reads_answered: u32,
    unanswered_since: Nanos,
    paused_until: Nanos,
}

impl Switches {
    pub(super) fn new(addresses: &[SocketAddr]) -> Self {
        let list = addresses
            .iter()
            .map(|&address| Switch { address, last: None, asked: VecDeque::new(), is_overtaken: false, wanted: 0 })
            .collect();
        Self { list, preferred: None, reached: Default::default() }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.list.iter().map(|switch| switch.address)
    }

    pub(super) fn last(&self, address: SocketAddr) -> Option<Answer> {
        self.list.iter().find(|switch| switch.address == address)?.last
    }

    pub(super) fn ask(&mut self, address: SocketAddr, sequence: u32) {
        let Some(switch) = self.list.iter_mut().find(|switch| switch.address == address) else { return };
        if switch.asked.len() == QUESTIONS {
            switch.asked.pop_front();
        }
        switch.asked.push_back(sequence);
    }

    /// Whether this answers one of the last questions to the switch. Seeing the questions is necessary to forge an answer.
    pub(super) fn was_asked(&self, from: SocketAddr, state: &State) -> bool {
        let switch = self.list.iter().find(|switch| switch.address == from);
        switch.is_some_and(|switch| switch.asked.contains(&state.header.sequence.get()))
    }

    pub(super) fn answered(&mut self, now: Nanos, from: SocketAddr, state: &State) -> bool {
        let Some(switch) = self.list.iter_mut().find(|switch| switch.address == from) else { return false };
        let incarnation = state.incarnation.get();
        let is_late = switch.last.is_some_and(|last| last.incarnation == incarnation && last.echo > state.now.get());
        if !is_late {
            let (latest, unserved) = (state.sid.get().max(state.ended.get()), state.unserved);
            // The first answer's count has no reference.
            if switch.last.is_some_and(|last| last.incarnation == incarnation && last.unserved != unserved) {
                switch.wanted = now;
            }
            switch.last = Some(Answer { at: now, incarnation, echo: state.now.get(), latest, unserved });
        }
        !is_late
    }

    /// The preferred switch among those that answered recently and are open to a leader of this term.
    pub(super) fn best(&self, now: Nanos, timing: &Timing, term: u64) -> Option<(SocketAddr, Answer)> {
        let is_preferred = |switch: &&Switch| Some(switch.address) == self.preferred;
        self.list.iter().filter(is_preferred).chain(&self.list).find_map(|switch| {
            let last = switch.last.filter(|last| !is_silent(now, last.at, timing) && last.is_open_to(term))?;
            Some((switch.address, last))
        })
    }

    /// If unserved clients reach a standby that is open to a leader of this term, prefers it from now on. The current session began at
    /// `begun`, at the switch `at`. Returns whether to leave it.
    pub(super) fn prefer_wanted(
        &mut self,
        now: Nanos,
        at: SocketAddr,
        begun: Nanos,
        timing: &Timing,
        term: u64,
    ) -> bool {
        let settled = begun + SETTLED_LEASES * timing.session_lease;
        let is_usable = |last: &Answer| !is_silent(now, last.at, timing) && last.is_open_to(term);
        let mut others =
            self.list.iter().filter(|switch| switch.address != at && switch.last.as_ref().is_some_and(is_usable));
        let Some(wanted) = others.find(|switch| switch.wanted >= settled) else { return false };
        self.preferred = Some(wanted.address);
        true
    }

    pub(super) fn is_newly_overtaken(&mut self, address: SocketAddr, term: u64) -> bool {
        let Some(switch) = self.list.iter_mut().find(|switch| switch.address == address) else { return false };
        let was = switch.is_overtaken;
        switch.is_overtaken = switch.last.is_some_and(|last| !last.is_open_to(term));
        switch.is_overtaken && !was
    }

    pub(super) fn last_answer(&self) -> Nanos {
        self.list.iter().filter_map(|switch| switch.last).map(|last| last.at).max().unwrap_or(0)
    }

    /// Updates reachability from the session's switch's counts of READs.
    pub(super) fn note_reached(&mut self, now: Nanos, state: &State, timing: &Timing) {
        for (slot, reached) in self.reached.iter_mut().enumerate() {
            let (sent, answered) = (state.sent[slot].get(), state.answered[slot].get());
            if reached.reads_answered != answered || reached.reads_sent == sent {
                reached.unanswered_since = now;
            } else if now >= reached.unanswered_since + UNANSWERED_HEARTBEATS * timing.heartbeat {
                reached.paused_until = now + PAUSED_HEARTBEATS * timing.heartbeat;
                reached.unanswered_since = now;
            }
            (reached.reads_sent, reached.reads_answered) = (sent, answered);
        }
    }

    pub(super) fn reaches(&self, now: Nanos, slot: u8) -> bool {
        self.reached.get(usize::from(slot)).is_some_and(|reached| now >= reached.paused_until)
    }
}

pub(super) fn is_silent(now: Nanos, heard: Nanos, timing: &Timing) -> bool {
    now >= heard + SILENT_HEARTBEATS * timing.heartbeat
}
