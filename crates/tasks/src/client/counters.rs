//! The counters of a client: nothing is dropped without being counted.

/// Counts since the start of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tasks that `submit` accepted.
    pub submitted: u64,
    /// Tasks that ended in `Completed`.
    pub completed: u64,
    /// Tasks that ended in `Lost`.
    pub lost: u64,
    /// Tasks that ended in `Cancelled`.
    pub cancelled: u64,
    /// Attempts that followed an end that was not final: ABANDONED, a retried failure, a timeout, a failed fetch.
    pub retried: u64,
    /// Tasks submitted again because the switch changed or restarted (T9).
    pub resubmitted: u64,
    /// Tasks submitted again because no completion came, and the switch no longer had them, or cannot say whether it has
    /// them.
    pub gone: u64,
    /// Tasks that the switch returned: it was full (T7).
    pub full: u64,
    /// Tasks that the switch returned: our address already uses its share (T14).
    pub over_share: u64,
    /// Tasks that the switch returned: their SUBMIT was below the window (T8).
    pub too_old: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Attempts named in STOPs to executors; each as often as it was named.
    pub stops: u64,
    /// Arguments sent along to the executor that probably gets their task.
    pub arguments_sent_along: u64,
    /// SUBMIT and CANCEL packets sent again.
    pub retransmitted: u64,
    /// Probes sent again.
    pub probes_repeated: u64,
    /// Times that the client changed to the next switch of its list, or back to a preferred one.
    pub failovers: u64,
    /// Packets that the switch refused because their cookie was missing or old.
    pub cookies: u64,
    /// Repeated completions of a task: acknowledged and dropped.
    pub completions_ignored: u64,
    /// Parts of tasks that attempts gave back while they ran on.
    pub parts: u64,
    /// Datagrams dropped: no packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: another version of the format.
    pub other_version: u64,
    /// Datagrams dropped: an operation that is not for clients.
    pub not_for_client: u64,
    /// Completions dropped: their sender does not know the token of their SUBMIT (T13).
    pub unproven: u64,
    /// Answers dropped: another client's identity.
    pub foreign_identity: u64,
    /// Answers dropped: not from the current switch's address.
    pub foreign_address: u64,
    /// Answers dropped: of an earlier epoch.
    pub old_epoch: u64,
    /// Answers dropped: nothing waits for them (repeated or late).
    pub unexpected_answers: u64,
    /// Answers dropped: they contradict the packet that they answer.
    pub bad_answers: u64,
}
