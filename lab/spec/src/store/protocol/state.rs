//! State of the protocol model: two switches, three or four replicas, messages in flight, and the clients' operations
//! on one key. Numbers are small, and times are what is left on a clock, so that states recur.

use super::history::Operation;

/// Places for replicas. Most scopes use the first three.
pub(super) const REPLICAS: usize = 4;
/// The key's key group, and a wrong one.
pub(super) const KGROUPS: usize = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sid {
    pub(super) term: u8,
    /// Counts the sessions of the term.
    pub(super) number: u8,
}

/// A switch's state of one key group in the current session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kgroup {
    pub(super) stable: bool,
    pub(super) seq: u8,
    pub(super) log_index: u8,
    pub(super) consistent: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Session {
    pub(super) sid: Sid,
    pub(super) start: u8,
    pub(super) leader: u8,
    /// What is left of the lease; 0: the session is inactive.
    pub(super) lease: u8,
    pub(super) seq: u8,
    /// Each replica's matched index, from the last heartbeat.
    pub(super) matched: [u8; REPLICAS],
    /// `None`: no write of this session has touched it.
    pub(super) kgroups: [Option<Kgroup>; KGROUPS],
}

impl Session {
    /// An untouched key group is stable at the session's start.
    pub(super) fn kgroup(&self, kgroup: u8) -> Kgroup {
        let fresh = Kgroup { stable: true, seq: 0, log_index: self.start, consistent: 0 };
        self.kgroups[usize::from(kgroup)].unwrap_or(fresh)
    }

    /// Replicas that may serve a read at this key group's state: those in its bitmap, and those that have caught up.
    pub(super) fn consistent(&self, kgroup: Kgroup) -> impl Iterator<Item = u8> + '_ {
        let caught_up = move |replica: u8| self.matched[usize::from(replica)] >= kgroup.log_index;
        (0..REPLICAS as u8).filter(move |&replica| kgroup.consistent >> replica & 1 == 1 || caught_up(replica))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Switch {
    pub(super) incarnation: u8,
    pub(super) session: Option<Session>,
    /// Sessions up to this one have ended here.
    pub(super) ended: Option<Sid>,
    /// Planted only: a READ after the first of two steps, with what that step read.
    pub(super) half_read: Option<(u8, Kgroup)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum What {
    Session {
        sid: Sid,
        switch: u8,
        incarnation: u8,
    },
    Fenced {
        sid: Sid,
    },
    /// Planted only: every session at that switch has ended.
    FencedSwitch {
        switch: u8,
    },
    /// A client's write. The SEQ belongs to the session whose entry precedes it; 0: it has none (FLUSHDB), or it is
    /// unused (the relaxed check).
    Write {
        operation: u8,
        client: u8,
        seq: u8,
    },
    /// A client begins; its id is the index of this entry.
    Open,
    Expire {
        client: u8,
    },
    /// The voters, a bit each.
    Members {
        voters: u8,
    },
}

/// The first log entry has index 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    pub(super) term: u8,
    pub(super) what: What,
}

impl Entry {
    pub(super) fn seq(&self) -> Option<u8> {
        if let What::Write { seq, .. } = self.what { Some(seq) } else { None }
    }
}

/// An answer that waits until an index is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Waiting {
    pub(super) index: u8,
    /// `None`: a REFRESH, or an error.
    pub(super) operation: Option<u8>,
    /// The key group that the answer makes stable again, with the SEQ of the write's passage through the switch; `None` for
    /// FLUSHDB.
    pub(super) closes: Option<Passage>,
}

/// A write's passage through a switch, which gave it this SEQ of this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Passage {
    pub(super) sid: Sid,
    pub(super) seq: u8,
    pub(super) kgroup: u8,
    pub(super) switch: u8,
}

/// A session that may be alive, and must be fenced before the next is activated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Doubtful {
    pub(super) sid: Sid,
    pub(super) switch: u8,
    /// What is left until its lease has certainly expired.
    pub(super) wait: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Leader {
    /// `None` while FLUSHDB waits for the end of the last one.
    pub(super) sid: Option<Sid>,
    pub(super) sessions: u8,
    pub(super) start: u8,
    pub(super) switch: u8,
    pub(super) incarnation: u8,
    pub(super) lease: u8,
    /// How long each follower's answer counts, where a majority takes two answers.
    pub(super) heard: [u8; REPLICAS],
    /// It began a transfer, so it takes no lease in this term.
    pub(super) barred: bool,
    pub(super) matched: [u8; REPLICAS],
    /// By key group, the largest processed SEQ of this session.
    pub(super) processed: [u8; KGROUPS],
    pub(super) waiting: Vec<Waiting>,
    pub(super) doubtful: Vec<Doubtful>,
    /// What is left until a session without further heartbeats has ended, counted from the switch's last answer.
    pub(super) since_answer: u8,
    pub(super) flush: Option<u8>,
    /// Planted only: accepted writes that are not in the log yet.
    pub(super) outside: Vec<(u8, Passage)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Replica {
    pub(super) term: u8,
    pub(super) log: Vec<Entry>,
    pub(super) commit: u8,
    /// What is left of its promise neither to vote nor to campaign.
    pub(super) promise: u8,
    /// False once it has lost its disk.
    pub(super) voter: bool,
    /// Its state as the leader; `None`: it does not lead.
    pub(super) leader: Option<Leader>,
}

impl Replica {
    pub(super) fn last(&self) -> u8 {
        self.log.len() as u8
    }

    /// 0 where there is no entry.
    pub(super) fn term_at(&self, index: u8) -> u8 {
        usize::from(index).checked_sub(1).and_then(|place| self.log.get(place)).map_or(0, |entry| entry.term)
    }

    /// The voters by its applied log; `first` before any change.
    pub(super) fn voters(&self, first: u8) -> u8 {
        let applied = self.log[..usize::from(self.commit)].iter().rev();
        let changes =
            applied.filter_map(|entry| if let What::Members { voters } = entry.what { Some(voters) } else { None });
        changes.into_iter().next().unwrap_or(first)
    }

    pub(super) fn has_pending_change(&self) -> bool {
        self.log[usize::from(self.commit)..].iter().any(|entry| matches!(entry.what, What::Members { .. }))
    }

    /// Raft's condition for a vote.
    pub(super) fn is_up_to_date_with(&self, other: &Self) -> bool {
        (self.term_at(self.last()), self.last()) >= (other.term_at(other.last()), other.last())
    }
}

/// Messages in flight. An undelivered message is lost; messages overtake each other in every order.
///
/// Replies to READs are not modelled: a reply that passes the switch at once does so under the weakest check and ends
/// its operation soonest, so a later one breaks nothing more. For the same reason clients are directly at the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    Write {
        operation: u8,
        leader: u8,
        sid: Sid,
        seq: u8,
        kgroup: u8,
        switch: u8,
    },
    LeaderRead {
        operation: u8,
        leader: u8,
        sid: Sid,
        seq: u8,
        kgroup: u8,
        switch: u8,
    },
    Read {
        operation: u8,
        replica: u8,
        sid: Sid,
        seq: u8,
        kgroup: u8,
        log_index: u8,
        switch: u8,
    },
    /// Leader to switch: WRITE_REPLY, or (no operation) REFRESH.
    Close {
        operation: Option<u8>,
        sid: Sid,
        seq: u8,
        kgroup: u8,
        log_index: u8,
        consistent: u8,
        switch: u8,
    },
    /// Leader to switch: ACTIVATE, which is a heartbeat. `left`: remaining validity of its echo; `None` (planted):
    /// unlimited.
    Activate {
        sid: Sid,
        leader: u8,
        start: u8,
        switch: u8,
        incarnation: u8,
        matched: [u8; REPLICAS],
        left: Option<u8>,
        loses_chunk: bool,
    },
    /// Leader to replica: campaign now, despite any promise.
    TimeoutNow {
        replica: u8,
        term: u8,
    },
}

impl Message {
    /// Whether copies may arrive at any time: for messages that bind leases.
    pub(super) fn stays(&self) -> bool {
        matches!(self, Self::Activate { .. } | Self::TimeoutNow { .. })
    }

    /// Of an ACTIVATE: remaining validity of its echo.
    pub(super) fn left(&self) -> Option<u8> {
        if let Self::Activate { left, .. } = *self { left } else { None }
    }

    pub(super) fn with_left(mut self, changed: Option<u8>) -> Self {
        if let Self::Activate { left, .. } = &mut self {
            *left = changed;
        }
        self
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Budget {
    /// WRITEs through a switch, including repeats and copies.
    pub(super) writes: u8,
    pub(super) reads: u8,
    pub(super) refreshes: u8,
    pub(super) ticks: u8,
    pub(super) copies: u8,
    pub(super) heartbeats: u8,
    /// Lost answers of followers to the leader.
    pub(super) lost_acks: u8,
    pub(super) elections: u8,
    pub(super) transfers: u8,
    /// Sessions that a leader begins at a switch of its choice, besides the one at its election.
    pub(super) moves: u8,
    pub(super) switch_restarts: u8,
    pub(super) replica_restarts: u8,
    pub(super) wipes: u8,
    /// Copies of the message by which a client opens its id.
    pub(super) opens: u8,
    pub(super) expiries: u8,
    pub(super) changes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct State {
    pub(super) switches: Vec<Switch>,
    pub(super) replicas: [Replica; REPLICAS],
    /// Sorted, without duplicates.
    pub(super) messages: Vec<Message>,
    pub(super) operations: Vec<Operation>,
    pub(super) budget: Budget,
    /// Parties whose clock is a step ahead, a bit each: replicas first, then switches.
    pub(super) ahead: u8,
    pub(super) broken: bool,
    /// The strict check has let a reply pass that does not show the last finished write.
    pub(super) let_through: bool,
}
