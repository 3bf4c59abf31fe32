//! What a search covers: which operations, how much of each fault, which rules.

use super::history::Kind;
use super::planted::Planted;
use super::state::Budget;

/// Which replies of followers reach the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplyCheck {
    /// Those whose SEQ is still that of the key group, as FLAIR has it (NSDI '20, section 4.4).
    Strict,
    /// All: no check, so replies need not pass the switch.
    Relaxed,
}

/// Times, in steps of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Timing {
    /// The lease of a session at its switch, from the timestamp that the leader echoed: T.
    pub(super) switch_lease: u8,
    /// How long a leader waits until another's session has ended: T(1 + ρ).
    pub(super) fence: u8,
    /// The leader's own lease.
    pub(super) leader_lease: u8,
    /// How long a replica that heard a leader votes for no other: more than the leader's lease (1 + ρ).
    pub(super) promise: u8,
    /// Whether clocks run apart, by a step at most; else all step together.
    pub(super) drift: bool,
}

/// The members of the set at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Members {
    /// Three with votes, of which some may leave.
    Three,
    /// A fourth beside them, without a vote, that may get one. All leases and promises have run out.
    WithLearner,
    /// The fourth has just got its vote, as the leader knows; the others do not know that this is committed. All leases and promises
    /// have run out.
    Grown,
}

impl Members {
    /// Who has a vote at first, a bit each.
    pub(super) const VOTERS: u8 = 0b111;

    /// How many replicas there are.
    pub(super) fn places(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::WithLearner | Self::Grown => 4,
        }
    }

    /// Who has no vote at first, a bit each.
    pub(super) fn learners(self) -> u8 {
        ((1 << self.places()) - 1) & !Self::VOTERS
    }
}

/// How many are a majority of these replicas.
pub(super) fn majority(voters: u8) -> u32 {
    voters.count_ones() / 2 + 1
}

impl ReplyCheck {
    /// Its name on the command line and in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Relaxed => "relaxed",
        }
    }
}

impl Timing {
    /// Clocks that run alike, so that the bounds are tight.
    pub(super) const ALIKE: Self = Self { switch_lease: 2, fence: 2, leader_lease: 2, promise: 2, drift: false };
    /// The same in longer steps: fewer states, where it matters only what lasts longer.
    pub(super) const SHORT: Self = Self { switch_lease: 1, fence: 1, leader_lease: 1, promise: 1, drift: false };
    /// Clocks that are a step apart at most, so that two of them measure the same time with a difference of up to two steps.
    pub(super) const DRIFT: Self = Self { switch_lease: 1, fence: 3, leader_lease: 1, promise: 3, drift: true };
}

/// A search.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// About how many states it has.
    pub states: u64,
    /// The clients' operations.
    pub(super) operations: &'static [Kind],
    /// Whether the writes are one client's, who begins the next when it has the answer to the last, under an id (R3).
    pub(super) one_writer: bool,
    /// What may happen.
    pub(super) budget: Budget,
    /// The members, and how they change.
    pub(super) members: Members,
    /// How many switches there are.
    pub(super) switches: usize,
    /// The clocks.
    pub(super) timing: Timing,
    /// Which replies pass.
    pub reply_check: ReplyCheck,
    /// It is about how a set begins: a model of its own.
    pub(super) is_founding: bool,
    /// The rule that is broken.
    pub planted: Option<Planted>,
}

impl Scope {
    /// The same, with another check of replies.
    #[must_use]
    pub fn checked(self, reply_check: ReplyCheck) -> Self {
        Self { reply_check, ..self }
    }

    /// What the search is called: its planted error, or the scope.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.planted.map_or(self.name, Planted::name)
    }

    /// Whether a search must break a rule here.
    #[must_use]
    pub fn must_break(&self) -> bool {
        self.planted.is_some_and(|planted| Planted::ALL.contains(&planted))
    }

    /// Whether this rule is broken.
    pub(super) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}
