//! The counters of a client: nothing is dropped without being counted.

/// Counts since the start of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads that `submit` accepted.
    pub submitted: u64,
    /// Reads that ended with an answer.
    pub answered: u64,
    /// Reads that ended with a failure: `timed_out` and `refused_to_the_end` together.
    pub failed: u64,
    /// Reads without an answer in time.
    pub timed_out: u64,
    /// Reads that were refused each time that they were sent.
    pub refused_to_the_end: u64,
    /// Requests sent.
    pub sent: u64,
    /// Of these: requests that were sent again, because no answer came in time or a server had no room.
    pub repeated: u64,
    /// Of these: requests that were sent again at once, with their cookie.
    pub with_cookie: u64,
    /// Times that no answer came in time.
    pub unanswered: u64,
    /// Refusals of servers without room.
    pub refused: u64,
    /// Direct mode: times that rate control held a read.
    pub held: u64,
    /// Direct mode: attempts that were sent when as many as can be remembered were under way: their answers teach nothing.
    pub untracked: u64,
    /// Direct mode: attempts whose answer did not come in time.
    pub expired: u64,
    /// Direct mode: answers that are those of no attempt: late, twice or forged.
    pub unmatched: u64,
    /// Direct mode: requests of a replica group that is not known: they went to their backups (N3).
    pub unknown_group: u64,
    /// Direct mode: reads of such a group none of whose backups is a server that is known: they are not sent, and fail at their deadline.
    pub unknown_server: u64,
    /// Datagrams dropped: no packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: another version of the format.
    pub other_version: u64,
    /// Datagrams dropped: a kind that is not for clients, or not in this mode.
    pub not_for_client: u64,
    /// Datagrams dropped: not from the operator, or, in direct mode, not from the server that they name.
    pub foreign: u64,
    /// Answers and refusals dropped: for no read that waits for them (copies, late or forged ones).
    pub unexpected: u64,
    /// Cookies dropped: for no read that waits for an answer, or another one came since it was sent.
    pub cookies_ignored: u64,
}
