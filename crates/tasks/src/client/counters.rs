//! Counters of a client. It counts everything that it drops.

/// Counts since the start of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tasks accepted by `submit`.
    pub submitted: u64,
    /// Tasks that ended in `Completed`.
    pub completed: u64,
    /// Tasks that ended in `Lost`.
    pub lost: u64,
    /// Tasks that ended in `Cancelled`.
    pub cancelled: u64,
    /// Attempts after an abandoned one, a retried failure, a timeout or a failed fetch.
    pub retried: u64,
    /// Tasks submitted again because the switch changed or restarted (T9).
    pub resubmitted: u64,
    /// Tasks submitted again because no completion came, and the switch lost them or keeps no record.
    pub gone: u64,
    /// Tasks returned by a full switch (T7).
    pub full: u64,
    /// Tasks returned because the client's address has used its share (T14).
    pub over_share: u64,
    /// Tasks returned because their SUBMIT was below the window (T8).
    pub too_old: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Attempts named in STOPs, counted each time.
    pub stops: u64,
    /// SUBMITs and CANCELs sent again.
    pub retransmitted: u64,
    /// PROBEs sent again.
    pub probes_repeated: u64,
    /// Changes to the next switch of the list, or back to a preferred one.
    pub failovers: u64,
    /// Packets refused for a missing or old cookie.
    pub cookies: u64,
    /// Repeated completions of a task, acknowledged and dropped.
    pub completions_ignored: u64,
    /// Parts that running attempts returned.
    pub parts: u64,
    /// Datagrams dropped: malformed.
    pub malformed: u64,
    /// Datagrams dropped: another version of the format.
    pub other_version: u64,
    /// Datagrams dropped: not an operation for clients.
    pub not_for_client: u64,
    /// Completions dropped: no proof of the SUBMIT's token (T13).
    pub unproven: u64,
    /// Responses dropped: another client's identity.
    pub foreign_identity: u64,
    /// Responses dropped: not from the current switch's address.
    pub foreign_address: u64,
    /// Responses dropped: from an earlier epoch.
    pub old_epoch: u64,
    /// Responses dropped: no request outstanding (repeated or late).
    pub unexpected_answers: u64,
    /// Responses dropped: they contradict the request.
    pub bad_answers: u64,
}
