//! The state of the protocol model: two switches, three replicas or four, what is on its way between them, and the clients'
//! operations on one key. All numbers are small, and times are what is left on a clock, so that states come again.

use super::history::Operation;

/// Places for replicas. Most scopes use the first three.
pub(super) const REPLICAS: usize = 4;
/// The key group of the one key, and a wrong one.
pub(super) const KGROUPS: usize = 2;

/// Identifies a session: the term of its leader, and a counter in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sid {
    /// Raft's term.
    pub(super) term: u8,
    /// The how many-th of that term.
    pub(super) number: u8,
}

/// What a switch knows of one key group in the present session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kgroup {
    pub(super) stable: bool,
    /// The SEQ of the last write that passed.
    pub(super) seq: u8,
    pub(super) log_index: u8,
    /// Consistent replicas, a bit each.
    pub(super) consistent: u8,
}

/// A session at a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Session {
    pub(super) sid: Sid,
    /// The log index of the session's entry.
    pub(super) start: u8,
    pub(super) leader: u8,
    /// What is left of the lease; 0: the session is inactive.
    pub(super) lease: u8,
    /// The last SEQ that was given to a write.
    pub(super) seq: u8,
    /// The matched index of each replica, as the last heartbeat said.
    pub(super) matched: [u8; REPLICAS],
    /// `None`: no write of this session has touched it.
    pub(super) kgroups: [Option<Kgroup>; KGROUPS],
}

impl Session {
    /// The state of a key group: one that this session has not touched is stable at the session's start.
    pub(super) fn kgroup(&self, kgroup: u8) -> Kgroup {
        let fresh = Kgroup { stable: true, seq: 0, log_index: self.start, consistent: 0 };
        self.kgroups[usize::from(kgroup)].unwrap_or(fresh)
    }

    /// Replicas that may serve a read at this state of a key group: those in its bitmap, and those that have caught up.
    pub(super) fn consistent(&self, kgroup: Kgroup) -> impl Iterator<Item = u8> + '_ {
        let caught_up = move |replica: u8| self.matched[usize::from(replica)] >= kgroup.log_index;
        (0..REPLICAS as u8).filter(move |&replica| kgroup.consistent >> replica & 1 == 1 || caught_up(replica))
    }
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Switch {
    pub(super) incarnation: u8,
    pub(super) session: Option<Session>,
    /// Sessions up to this one have ended here.
    pub(super) ended: Option<Sid>,
    /// Planted only: a READ of which the first of two steps is done, with what that step read.
    pub(super) half_read: Option<(u8, Kgroup)>,
}

/// What an entry of the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum What {
    /// A session begins, at this incarnation of a switch.
    Session { sid: Sid, switch: u8, incarnation: u8 },
    /// That session has ended.
    Fenced { sid: Sid },
    /// Planted only: whatever was at that switch has ended.
    FencedSwitch { switch: u8 },
    /// A write of an operation, under a client id. The SEQ is of the session whose entry stands before it; 0: it has none (FLUSHDB), or
    /// nobody asks for it (the relaxed check).
    Write { operation: u8, client: u8, seq: u8 },
    /// A client begins; its id is the index of this entry.
    Open,
    /// A client is forgotten.
    Expire { client: u8 },
    /// The replicas that have votes, a bit each.
    Members { voters: u8 },
}

/// An entry of the log. The first has index 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    pub(super) term: u8,
    pub(super) what: What,
}

impl Entry {
    /// The SEQ of a write.
    pub(super) fn seq(&self) -> Option<u8> {
        if let What::Write { seq, .. } = self.what { Some(seq) } else { None }
    }
}

/// An answer that waits until an index is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Waiting {
    pub(super) index: u8,
    /// The operation that it answers; `None`: a REFRESH, or an error.
    pub(super) operation: Option<u8>,
    /// What it closes, at that index; `None`: nothing (FLUSHDB).
    pub(super) closes: Option<Passage>,
}

/// How a request passed a switch: in which session, with which SEQ, in which key group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Passage {
    pub(super) sid: Sid,
    pub(super) seq: u8,
    pub(super) kgroup: u8,
    pub(super) switch: u8,
}

/// A session that may be alive, and has to be fenced before the next is activated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Doubtful {
    pub(super) sid: Sid,
    pub(super) switch: u8,
    /// What is left to wait until its lease has run out for certain.
    pub(super) wait: u8,
}

/// What a leader has in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Leader {
    /// The present session; `None` while FLUSHDB waits for the end of the last one.
    pub(super) sid: Option<Sid>,
    /// How many sessions this term has had.
    pub(super) sessions: u8,
    /// The index of the session's entry.
    pub(super) start: u8,
    pub(super) switch: u8,
    pub(super) incarnation: u8,
    /// What is left of its own lease.
    pub(super) lease: u8,
    /// Where a majority takes two answers: how long that of each follower counts.
    pub(super) heard: [u8; REPLICAS],
    /// It may take no lease in this term: it began a transfer.
    pub(super) barred: bool,
    pub(super) matched: [u8; REPLICAS],
    /// The largest SEQ of each key group that it has processed in this session.
    pub(super) processed: [u8; KGROUPS],
    pub(super) waiting: Vec<Waiting>,
    pub(super) doubtful: Vec<Doubtful>,
    /// What is left until a session that gets no more heartbeats has ended: counted from the switch's last answer.
    pub(super) since_answer: u8,
    /// FLUSHDB that waits for the fence.
    pub(super) flush: Option<u8>,
    /// Planted only: accepted writes that are not in the log yet.
    pub(super) outside: Vec<(u8, Passage)>,
}

/// A replica.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Replica {
    pub(super) term: u8,
    pub(super) log: Vec<Entry>,
    pub(super) commit: u8,
    /// What is left of its promise neither to vote nor to campaign.
    pub(super) promise: u8,
    /// A replica that lost its disk votes for nobody.
    pub(super) voter: bool,
    pub(super) leader: Option<Leader>,
}

impl Replica {
    /// The index of its last entry.
    pub(super) fn last(&self) -> u8 {
        self.log.len() as u8
    }

    /// The term of an entry; 0 where there is none.
    pub(super) fn term_at(&self, index: u8) -> u8 {
        usize::from(index).checked_sub(1).and_then(|place| self.log.get(place)).map_or(0, |entry| entry.term)
    }

    /// Who has votes, as far as it has applied its log; at first these.
    pub(super) fn voters(&self, first: u8) -> u8 {
        let applied = self.log[..usize::from(self.commit)].iter().rev();
        let changes =
            applied.filter_map(|entry| if let What::Members { voters } = entry.what { Some(voters) } else { None });
        changes.into_iter().next().unwrap_or(first)
    }

    /// Whether its log has a change of the members that it has not applied.
    pub(super) fn has_pending_change(&self) -> bool {
        self.log[usize::from(self.commit)..].iter().any(|entry| matches!(entry.what, What::Members { .. }))
    }

    /// Whether its log is at least as far as another's: who votes asks for that.
    pub(super) fn is_up_to_date_with(&self, other: &Self) -> bool {
        (self.term_at(self.last()), self.last()) >= (other.term_at(other.last()), other.last())
    }
}

/// What is on its way. A message that is never delivered is lost; messages overtake each other in every order.
///
/// Replies to READs are not among them: a reply that passes the switch at once does so under the weakest check and ends its
/// operation soonest, so a later one breaks nothing that it does not. For the same reason clients are right at the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    /// Switch to leader.
    Write { operation: u8, leader: u8, sid: Sid, seq: u8, kgroup: u8, switch: u8 },
    /// Switch to leader: a leader-only READ with the SEQ of its key group.
    LeaderRead { operation: u8, leader: u8, sid: Sid, seq: u8, kgroup: u8, switch: u8 },
    /// Switch to a replica that is consistent.
    Read { operation: u8, replica: u8, sid: Sid, seq: u8, kgroup: u8, log_index: u8, switch: u8 },
    /// Leader to switch: WRITE_REPLY, or (no operation) REFRESH.
    Close { operation: Option<u8>, sid: Sid, seq: u8, kgroup: u8, log_index: u8, consistent: u8, switch: u8 },
    /// Leader to switch: ACTIVATE, which is a heartbeat. `left` is what its echo is still good for; `None` (planted): any time.
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
    /// Leader to replica: campaign now, whatever was promised.
    TimeoutNow { replica: u8, term: u8 },
}

impl Message {
    /// Whether copies of it may come at any time: of those that bind leases.
    pub(super) fn stays(&self) -> bool {
        matches!(self, Self::Activate { .. } | Self::TimeoutNow { .. })
    }

    /// Of an ACTIVATE: how long its echo is still good.
    pub(super) fn left(&self) -> Option<u8> {
        if let Self::Activate { left, .. } = *self { left } else { None }
    }

    /// The same ACTIVATE with an echo that is good for so long.
    pub(super) fn with_left(mut self, changed: Option<u8>) -> Self {
        if let Self::Activate { left, .. } = &mut self {
            *left = changed;
        }
        self
    }
}

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Budget {
    /// WRITEs that pass a switch, repeats and copies included.
    pub(super) writes: u8,
    /// READs that pass a switch.
    pub(super) reads: u8,
    pub(super) refreshes: u8,
    /// Steps of clocks.
    pub(super) ticks: u8,
    /// Messages that arrive a second time.
    pub(super) copies: u8,
    pub(super) heartbeats: u8,
    /// Answers of followers to the leader that are lost.
    pub(super) lost_acks: u8,
    pub(super) elections: u8,
    pub(super) transfers: u8,
    /// Sessions that a leader begins at a switch of its choice, beside the one at its election.
    pub(super) moves: u8,
    pub(super) switch_restarts: u8,
    pub(super) replica_restarts: u8,
    /// Replicas that lose their disk.
    pub(super) wipes: u8,
    /// Copies of the message by which a client opens its id.
    pub(super) opens: u8,
    pub(super) expiries: u8,
    /// Changes of the members.
    pub(super) changes: u8,
}

/// The whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct State {
    pub(super) switches: Vec<Switch>,
    pub(super) replicas: [Replica; REPLICAS],
    /// In order, each once.
    pub(super) messages: Vec<Message>,
    pub(super) operations: Vec<Operation>,
    pub(super) budget: Budget,
    /// Parties whose clock is a step ahead of the others', a bit each: replicas first, then switches.
    pub(super) ahead: u8,
    /// The history has ceased to be linearizable.
    pub(super) broken: bool,
    /// The strict check has let a reply pass which does not show the last write that is finished.
    pub(super) let_through: bool,
}
