/// Counts since the start of the client. Nothing is dropped uncounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Operations that `submit` accepted.
    pub submitted: u64,
    /// Operations that ended with an answer.
    pub answered: u64,
    /// Operations that failed, including `timed_out`.
    pub failed: u64,
    /// Operations without an answer in time.
    pub timed_out: u64,
    /// Client ids opened.
    pub ids_opened: u64,
    /// Writes refused because their client id had expired (R3).
    pub ids_unknown: u64,
    /// Openings refused because the store had no room for another client id.
    pub clients_full: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Requests sent again; included in `sent`.
    pub repeated: u64,
    /// Reads that a replica answered directly.
    pub direct_answers: u64,
    /// Reads answered only by a repeat, because the direct reply was lost.
    pub direct_lost: u64,
    /// Timeouts.
    pub unanswered: u64,
    /// Changes to another switch.
    pub failovers: u64,
    /// Requests that a switch refused because their cookie was missing or old.
    pub cookies: u64,
    /// Requests refused by a switch without a session.
    pub inactive: u64,
    /// Requests refused by a switch that does not serve the set.
    pub unknown_set: u64,
    /// Requests refused by a replica that does not lead their session.
    pub not_leader: u64,
    /// Writes that the leader refused because a later one came first.
    pub reordered: u64,
    /// Requests refused by a full replica.
    pub busy: u64,
    /// Datagrams dropped: not a packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: other version of the format.
    pub other_version: u64,
    /// Datagrams dropped: operation not for clients.
    pub not_for_client: u64,
    /// Answers dropped: neither from a configured switch nor a direct reply that was asked for.
    pub foreign_address: u64,
    /// Answers dropped: nothing waits for them (duplicates, late or forged ones).
    pub unexpected_answers: u64,
    /// Answers dropped: they refuse an earlier transmission, or one under another client id.
    pub old_answers: u64,
    /// Answers dropped: they do not fit the request that they name.
    pub bad_answers: u64,
}
