//! Protocol errors planted in the model, one at a time, to show that the search finds errors.

/// A rule of the protocol that is left out or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// A switch counts its lease from the receipt of an ACTIVATE, not from the echoed timestamp.
    ActivateWithoutEcho,
    /// A session starts with an upload of all key groups instead of the lazy reset, and a chunk of it is lost.
    LostChunk,
    /// The leader proposes FLUSHDB before it has fenced the current session.
    FlushBeforeFence,
    /// An accepted write waits outside the log while the cached answer to a retry closes the key group.
    AcceptedOutsideLog,
    /// Replicas do not check the hash of a key: two clients use it in two key groups.
    TwoMappings,
    /// A leader takes its lease again after an aborted transfer.
    LeaseAfterAbort,
    /// A replica measures its promise in ticks, which all fire when it wakes.
    VotesByTicks,
    /// A new leader fences only the last session, not all that may be alive.
    FenceLastOnly,
    /// A restarted switch accepts the heartbeat of its former incarnation, and its SEQ starts again.
    SeqReused,
    /// A REFRESH closes at the commit index, below writes that were accepted before it.
    RefreshTooLow,
    /// A follower compares the length of its log with LOG_IDX, not the term of the entry there.
    LogLength,
    /// A client chooses its id: a late copy of an opening reopens an expired one.
    ClientChoosesId,
    /// A leader accepts a write of an earlier session after it proposed the entry of the next.
    OldSessionWrite,
    /// The entry about a fence names the switch, and so also drops a later session of that switch.
    FenceNamesSwitch,
    /// A leader activates a session at a switch that restarted since the session's entry.
    OneSidTwoIncarnations,
    /// A replica campaigns despite its promise to the current leader.
    CampaignInsidePromise,
    /// The switch reads whether a key group is stable in another step than its SEQ, log index and bitmap.
    TwoStepRead,
    /// A restarted ex-leader answers writes of its old session by errors that close key groups.
    RestartedLeaderCloses,
    /// A leader without a lease of its own sends heartbeats to the switch.
    HeartbeatWithoutLease,
    /// A replica votes directly after a restart, in which it forgot its promise.
    VoteAfterRestart,
    /// A leader waits for the end of a session only as long as its lease, without the drift of clocks.
    NoDriftBound,
    /// A promise is only as long as the leader's lease, without the drift of clocks.
    PromiseWithoutDrift,
    /// A switch accepts a late heartbeat of the session that has just ended there.
    EndedSessionRevived,
    /// The table of clients does not outlive a session (as in a snapshot without it): a late repeat executes again.
    ClientsForgotten,
    /// A leader's lease counts the answer of a replica without a vote.
    LearnerCounted,
    /// After the set has grown, a leader's lease needs no more answers than before.
    QuorumOfBefore,
    /// A restarted replica does not know that a membership change is committed, though its log has a later one.
    ChangeForgotten,
    /// A leader proposes a membership change before the last one is applied.
    TwoChangesAtOnce,
    /// A replica answers from its whole log, with the SEQ of the last write there; the strict check accepts that.
    AppliedBeforeCommit,
    /// A follower's reply has the largest applied SEQ of any session. It breaks only the strict check, which R1 does
    /// not need.
    ReplySeqOfFormerSession,
    /// A founder does not wait for the other founders.
    FoundsAlone,
    /// A founder begins when all have offered their disks, before all have accepted the same.
    BeginsUnaccepted,
    /// A founder does not check whether its disk belongs to a set.
    FoundersUnchecked,
    /// Switches send READs to replicas that have left. Harmless: a replica that serves has the log that the READ needs.
    OutsidersServe,
    /// The leader answers reads without a lease of its own. Harmless: the READ passed an active session, and a later
    /// leader's session begins only after that one has ended.
    LeaderReadWithoutLease,
}

impl Planted {
    /// Errors that a search must find. They break R1 unless noted.
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

    /// Errors that other rules make harmless, so the search must find nothing.
    pub const HARMLESS: [Self; 2] = [Self::LeaderReadWithoutLease, Self::OutsidersServe];

    /// Name on the command line.
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
