//! What a search covers: operations, faults, rules.

use super::history::Kind;
use super::planted::Planted;
use super::state::Budget;

/// Which replies of followers reach the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplyCheck {
    /// Those whose SEQ is still the key group's (FLAIR, NSDI '20, section 4.4).
    Strict,
    /// All, so replies need not pass the switch.
    Relaxed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Timing {
    /// A session's lease at its switch, from the timestamp that the leader echoed: T.
    pub(super) switch_lease: u8,
    /// How long a leader waits for another's session to end: T(1 + ρ).
    pub(super) fence: u8,
    pub(super) leader_lease: u8,
    /// How long a replica that heard a leader votes for no other: more than the leader's lease (1 + ρ).
    pub(super) promise: u8,
    /// Clocks differ by a step at most; otherwise all step together.
    pub(super) drift: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Members {
    /// Three voters, of which some may leave.
    Three,
    /// Three voters and a learner that may get a vote. All leases and promises have expired.
    WithLearner,
    /// The fourth has just become a voter; only the leader knows that this is committed. All leases and promises have
    /// expired.
    Grown,
}

impl Members {
    /// The initial voters, a bit each.
    pub(super) const VOTERS: u8 = 0b111;

    pub(super) fn places(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::WithLearner | Self::Grown => 4,
        }
    }

    /// The initial learners, a bit each.
    pub(super) fn learners(self) -> u8 {
        ((1 << self.places()) - 1) & !Self::VOTERS
    }
}

pub(super) fn majority(voters: u8) -> u32 {
    voters.count_ones() / 2 + 1
}

impl ReplyCheck {
    /// Name on the command line and in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Relaxed => "relaxed",
        }
    }
}

impl Timing {
    /// Clocks without drift, so that the bounds are tight.
    pub(super) const ALIKE: Self = Self { switch_lease: 2, fence: 2, leader_lease: 2, promise: 2, drift: false };
    /// The same with longer steps: fewer states, where only the order of durations matters.
    pub(super) const SHORT: Self = Self { switch_lease: 1, fence: 1, leader_lease: 1, promise: 1, drift: false };
    /// Clocks at most a step apart, so two of them measure an interval with a difference of up to two steps.
    pub(super) const DRIFT: Self = Self { switch_lease: 1, fence: 3, leader_lease: 1, promise: 3, drift: true };
}

/// A search.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Name on the command line.
    pub name: &'static str,
    /// What it covers.
    pub about: &'static str,
    /// Approximate number of states.
    pub states: u64,
    pub(super) operations: &'static [Kind],
    /// One client writes, one operation at a time, under an id (R3).
    pub(super) one_writer: bool,
    pub(super) budget: Budget,
    pub(super) members: Members,
    pub(super) switches: usize,
    pub(super) timing: Timing,
    /// Which replies pass.
    pub reply_check: ReplyCheck,
    /// It uses the separate model of founding.
    pub(super) is_founding: bool,
    /// The planted error.
    pub planted: Option<Planted>,
}

impl Scope {
    /// The same scope with another reply check.
    #[must_use]
    pub fn checked(self, reply_check: ReplyCheck) -> Self {
        Self { reply_check, ..self }
    }

    /// Name of the planted error, or else of the scope.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.planted.map_or(self.name, Planted::name)
    }

    /// Whether the search must find a broken rule.
    #[must_use]
    pub fn must_break(&self) -> bool {
        self.planted.is_some_and(|planted| Planted::ALL.contains(&planted))
    }

    pub(super) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}
