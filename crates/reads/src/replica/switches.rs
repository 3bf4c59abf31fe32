//! What a leader knows of the switches of its set.

use super::config::Timing;
use midflight_endpoint::Nanos;
use midflight_wire::reads::{REPLICAS_MAX, State};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Heartbeats without an answer after which a switch counts as silent, a replica as not alive.
pub(super) const SILENT_HEARTBEATS: u64 = 3;
/// A replica that gets READs through a switch and answers none of them for this many heartbeats is not sent any for
/// [`PAUSED_HEARTBEATS`].
const UNANSWERED_HEARTBEATS: u64 = 5;
const PAUSED_HEARTBEATS: u64 = 50;

/// A session stays at its switch for this many leases before clients may move it to another one: those who reach different switches only
/// are served in turn, and a client that says it without need costs the others a move a second.
const SETTLED_LEASES: u64 = 8;

/// Questions to a switch whose answers count.
const QUESTIONS: usize = 32;

/// A switch, as its last answer showed it.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) address: SocketAddr,
    pub(super) last: Option<Answer>,
    /// The sequences of the last questions to it.
    asked: VecDeque<u32>,
    /// Whether it was found to have had a leader of a later term.
    is_overtaken: bool,
    /// When an answer of its last said that it has refused clients that no switch serves.
    wanted: Nanos,
}

/// A STATE, and when it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) at: Nanos,
    pub(super) incarnation: u64,
    /// The time there.
    pub(super) echo: u64,
    /// The highest SID that has begun or ended there.
    pub(super) latest: u64,
    /// Its count of requests of clients that no switch serves.
    unserved: u8,
}

impl Answer {
    /// Whether a leader of this term can have a session there. If not, a leader of a later term had one.
    pub(super) fn is_open_to(&self, term: u64) -> bool {
        self.latest < (term << 32 | u64::from(u32::MAX))
    }
}

/// The switches of a set, the preferred one first.
#[derive(Debug)]
pub(super) struct Switches {
    list: Vec<Switch>,
    /// The one to which clients have drawn the session, if any.
    preferred: Option<SocketAddr>,
    reached: [Reached; REPLICAS_MAX],
}

/// Whether a replica is reached through the switch of the session.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    sent: u32,
    answered: u32,
    /// Since when all that was sent is unanswered.
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

    /// A switch is asked.
    pub(super) fn ask(&mut self, address: SocketAddr, sequence: u32) {
        let Some(switch) = self.list.iter_mut().find(|switch| switch.address == address) else { return };
        if switch.asked.len() == QUESTIONS {
            switch.asked.pop_front();
        }
        switch.asked.push_back(sequence);
    }

    /// Whether an answer is to one of the last questions to this switch: who does not see the questions cannot forge one.
    pub(super) fn was_asked(&self, from: SocketAddr, state: &State) -> bool {
        let switch = self.list.iter().find(|switch| switch.address == from);
        switch.is_some_and(|switch| switch.asked.contains(&state.header.sequence.get()))
    }

    /// An answer to a question has come. Returns whether it is not older than the last one.
    pub(super) fn answered(&mut self, now: Nanos, from: SocketAddr, state: &State) -> bool {
        let Some(switch) = self.list.iter_mut().find(|switch| switch.address == from) else { return false };
        let incarnation = state.incarnation.get();
        let is_late = switch.last.is_some_and(|last| last.incarnation == incarnation && last.echo > state.now.get());
        if !is_late {
            let (latest, unserved) = (state.sid.get().max(state.ended.get()), state.unserved);
            // The first answer says nothing: its count is of any time.
            if switch.last.is_some_and(|last| last.incarnation == incarnation && last.unserved != unserved) {
                switch.wanted = now;
            }
            switch.last = Some(Answer { at: now, incarnation, echo: state.now.get(), latest, unserved });
        }
        !is_late
    }

    /// The preferred one of those that have answered lately, and at which a leader of this term can have a session.
    pub(super) fn best(&self, now: Nanos, timing: &Timing, term: u64) -> Option<(SocketAddr, Answer)> {
        let is_preferred = |switch: &&Switch| Some(switch.address) == self.preferred;
        self.list.iter().filter(is_preferred).chain(&self.list).find_map(|switch| {
            let last = switch.last.filter(|last| !is_silent(now, last.at, timing) && last.is_open_to(term))?;
            Some((switch.address, last))
        })
    }

    /// Clients that no switch serves reach a standby, where a leader of this term can have a session: that one is preferred from now on.
    /// `begun`: when the present session began, which is at `at`. Returns whether to leave that.
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

    /// Whether it is found only now that this switch has had a leader of a later term.
    pub(super) fn is_newly_overtaken(&mut self, address: SocketAddr, term: u64) -> bool {
        let Some(switch) = self.list.iter_mut().find(|switch| switch.address == address) else { return false };
        let was = switch.is_overtaken;
        switch.is_overtaken = switch.last.is_some_and(|last| !last.is_open_to(term));
        switch.is_overtaken && !was
    }

    /// When any of them has answered last.
    pub(super) fn last_answer(&self) -> Nanos {
        self.list.iter().filter_map(|switch| switch.last).map(|last| last.at).max().unwrap_or(0)
    }

    /// What the switch of the session says of the READs that it has sent.
    pub(super) fn note_reached(&mut self, now: Nanos, state: &State, timing: &Timing) {
        for (slot, reached) in self.reached.iter_mut().enumerate() {
            let (sent, answered) = (state.sent[slot].get(), state.answered[slot].get());
            if reached.answered != answered || reached.sent == sent {
                reached.unanswered_since = now;
            } else if now >= reached.unanswered_since + UNANSWERED_HEARTBEATS * timing.heartbeat {
                reached.paused_until = now + PAUSED_HEARTBEATS * timing.heartbeat;
                reached.unanswered_since = now;
            }
            (reached.sent, reached.answered) = (sent, answered);
        }
    }

    /// Whether READs should be sent to the replica in this place.
    pub(super) fn reaches(&self, now: Nanos, slot: u8) -> bool {
        self.reached.get(usize::from(slot)).is_some_and(|reached| now >= reached.paused_until)
    }
}

/// Whether someone who was heard at `heard` counts as silent.
pub(super) fn is_silent(now: Nanos, heard: Nanos, timing: &Timing) -> bool {
    now >= heard + SILENT_HEARTBEATS * timing.heartbeat
}
