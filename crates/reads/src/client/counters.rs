//! The counters of a client: nothing is dropped without being counted.

/// Counts since the start of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Operations that `submit` accepted.
    pub submitted: u64,
    /// Operations that ended with an answer.
    pub answered: u64,
    /// Operations that ended with a failure; `timed_out` are among them.
    pub failed: u64,
    /// Operations without an answer in time.
    pub timed_out: u64,
    /// Client ids that were opened.
    pub ids_opened: u64,
    /// Writes that were refused because their client id had expired (R3).
    pub ids_unknown: u64,
    /// Times that the store had no room for another client id.
    pub clients_full: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Of these: requests that were sent again.
    pub repeated: u64,
    /// Reads that a replica has answered directly, and not through the switch.
    pub direct_answers: u64,
    /// Reads whose direct replies were lost, so that they were answered when they were repeated.
    pub direct_lost: u64,
    /// Times that no answer came in time.
    pub unanswered: u64,
    /// Times that the client went to another switch.
    pub failovers: u64,
    /// Requests that the switch refused because their cookie was missing or old.
    pub cookies: u64,
    /// Requests that a switch without a session refused.
    pub inactive: u64,
    /// Requests that a switch refused because it does not serve the set.
    pub unknown_set: u64,
    /// Requests that a replica refused because it does not lead their session.
    pub not_leader: u64,
    /// Writes that the leader refused because a later one came first.
    pub reordered: u64,
    /// Requests that a full replica refused.
    pub busy: u64,
    /// Datagrams dropped: no packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: another version of the format.
    pub other_version: u64,
    /// Datagrams dropped: an operation that is not for clients.
    pub not_for_client: u64,
    /// Answers dropped: not from a switch of the list, and not the direct reply to a read that asked for it.
    pub foreign_address: u64,
    /// Answers dropped: nothing waits for them (copies, late or forged ones).
    pub unexpected_answers: u64,
    /// Answers dropped: they refuse what has been sent again since, or what was sent under another client id.
    pub old_answers: u64,
    /// Answers dropped: they do not fit the request that they name.
    pub bad_answers: u64,
}
