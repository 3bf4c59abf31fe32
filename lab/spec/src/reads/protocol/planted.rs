//! Protocol errors that the model plants, one at a time: a search that refutes none of them would prove nothing.

/// A rule of the protocol, left out or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// A switch counts its lease from the receipt of an ACTIVATE, not from the timestamp that it echoes.
    ActivateWithoutEcho,
    /// A session starts with an upload of all key groups in place of the lazy reset, and a chunk of it is lost.
    LostChunk,
    /// The leader proposes FLUSHDB before it has fenced the present session.
    FlushBeforeFence,
    /// An accepted write waits outside the log while the cached answer to a retry closes the key group.
    AcceptedOutsideLog,
    /// Replicas do not check the hash of a key: two clients read and write it in two key groups.
    TwoMappings,
    /// A leader takes its lease again when a transfer of leadership was aborted.
    LeaseAfterAbort,
    /// A replica counts ticks, which all fire when it wakes, to know how long it may not vote.
    VotesByTicks,
    /// A new leader fences the last session only, not all that may be alive.
    FenceLastOnly,
    /// A restarted switch takes the heartbeat of its former incarnation, and its SEQ starts again.
    SeqReused,
    /// A REFRESH closes at the commit index, below writes that were accepted before it.
    RefreshTooLow,
    /// A follower compares the length of its log with LOG_IDX, not the term of the entry there.
    LogLength,
    /// A client chooses its id: a late copy of an opening reopens one that has expired.
    ClientChoosesId,
    /// A leader accepts a write of an earlier session after it proposed the entry of the next.
    OldSessionWrite,
    /// The entry about a fence names the switch, and so takes a later session of that switch off the list.
    FenceNamesSwitch,
    /// A leader activates a session at a switch that restarted since the session's entry.
    OneSidTwoIncarnations,
    /// A replica campaigns though it has promised the present leader not to.
    CampaignInsidePromise,
    /// The switch reads whether a key group is stable in another step than its SEQ, log index and bitmap.
    TwoStepRead,
    /// A leader that restarted, and leads no more, answers writes of its old session by errors that close key groups.
    RestartedLeaderCloses,
    /// A leader sends heartbeats to the switch without a lease of its own.
    HeartbeatWithoutLease,
    /// A replica votes at once after a restart, which has made it forget its promise.
    VoteAfterRestart,
    /// A leader waits no longer for the end of a session than its lease is, whatever the drift of clocks.
    NoDriftBound,
    /// A promise is no longer than the leader's lease, whatever the drift of clocks.
    PromiseWithoutDrift,
    /// A switch takes a late heartbeat of the session that has just ended there.
    EndedSessionRevived,
    /// The table of clients does not outlive a session, as a snapshot without it does not: a late repeat runs again.
    ClientsForgotten,
    /// A leader's lease counts the answer of a replica that has no vote yet.
    LearnerCounted,
    /// When the set has grown, a leader's lease takes no more answers than before.
    QuorumOfBefore,
    /// A replica that restarts does not know that a change of the members is committed, though a later change is in its log.
    ChangeForgotten,
    /// A leader proposes a change of the members before the last one is applied.
    TwoChangesAtOnce,
    /// A replica answers from its whole log, with the SEQ of the last write there: the strict check takes that for the last state.
    AppliedBeforeCommit,
    /// A follower's reply has the largest SEQ of any session that its replica has applied. It breaks no more than the strict check, which
    /// R1 does not need.
    ReplySeqOfFormerSession,
    /// A founder does not wait for the other founders.
    FoundsAlone,
    /// A founder begins when all have offered their disks, and does not wait until all have accepted the same.
    BeginsUnaccepted,
    /// A founder does not look whether its disk is among those of a set.
    FoundersUnchecked,
    /// Switches send READs to replicas that have left. Harmless: who serves is as far as the READ asks.
    OutsidersServe,
    /// The leader answers reads without a lease of its own. Harmless: the READ passed an active session, and a later leader's
    /// session begins only when that one has ended.
    LeaderReadWithoutLease,
}

impl Planted {
    /// Those that break a rule, which a search must find: R1, but where it is said.
    pub const ALL: [Self; 33] = [
        Self::ActivateWithoutEcho,
        Self::LostChunk,
        Self::FlushBeforeFence,
        Self::AcceptedOutsideLog,
        Self::TwoMappings,
        Self::LeaseAfterAbort,
        Self::VotesByTicks,
        Self::FenceLastOnly,
        Self::SeqReused,
        Self::RefreshTooLow,
        Self::LogLength,
        Self::ClientChoosesId,
        Self::OldSessionWrite,
        Self::FenceNamesSwitch,
        Self::OneSidTwoIncarnations,
        Self::CampaignInsidePromise,
        Self::TwoStepRead,
        Self::RestartedLeaderCloses,
        Self::HeartbeatWithoutLease,
        Self::VoteAfterRestart,
        Self::NoDriftBound,
        Self::PromiseWithoutDrift,
        Self::EndedSessionRevived,
        Self::ClientsForgotten,
        Self::LearnerCounted,
        Self::QuorumOfBefore,
        Self::ChangeForgotten,
        Self::TwoChangesAtOnce,
        Self::AppliedBeforeCommit,
        Self::ReplySeqOfFormerSession,
        Self::FoundsAlone,
        Self::BeginsUnaccepted,
        Self::FoundersUnchecked,
    ];

    /// Those that break nothing, as other rules suffice: the search finds nothing either.
    pub const HARMLESS: [Self; 2] = [Self::LeaderReadWithoutLease, Self::OutsidersServe];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ActivateWithoutEcho => "activate-without-echo",
            Self::LostChunk => "lost-chunk",
            Self::FlushBeforeFence => "flush-before-fence",
            Self::AcceptedOutsideLog => "accepted-outside-log",
            Self::TwoMappings => "two-mappings",
            Self::LeaseAfterAbort => "lease-after-abort",
            Self::VotesByTicks => "votes-by-ticks",
            Self::FenceLastOnly => "fence-last-only",
            Self::SeqReused => "seq-reused",
            Self::RefreshTooLow => "refresh-too-low",
            Self::LogLength => "log-length",
            Self::ClientChoosesId => "client-chooses-id",
            Self::OldSessionWrite => "old-session-write",
            Self::FenceNamesSwitch => "fence-names-switch",
            Self::OneSidTwoIncarnations => "one-sid-two-incarnations",
            Self::CampaignInsidePromise => "campaign-inside-promise",
            Self::TwoStepRead => "two-step-read",
            Self::RestartedLeaderCloses => "restarted-leader-closes",
            Self::HeartbeatWithoutLease => "heartbeat-without-lease",
            Self::VoteAfterRestart => "vote-after-restart",
            Self::NoDriftBound => "no-drift-bound",
            Self::PromiseWithoutDrift => "promise-without-drift",
            Self::EndedSessionRevived => "ended-session-revived",
            Self::ClientsForgotten => "clients-forgotten",
            Self::LearnerCounted => "learner-counted",
            Self::QuorumOfBefore => "quorum-of-before",
            Self::ChangeForgotten => "change-forgotten",
            Self::TwoChangesAtOnce => "two-changes-at-once",
            Self::AppliedBeforeCommit => "applied-before-commit",
            Self::ReplySeqOfFormerSession => "reply-seq-of-former-session",
            Self::FoundsAlone => "founds-alone",
            Self::BeginsUnaccepted => "begins-unaccepted",
            Self::FoundersUnchecked => "founders-unchecked",
            Self::OutsidersServe => "outsiders-serve",
            Self::LeaderReadWithoutLease => "leader-read-without-lease",
        }
    }
}
