/// Counts since the start of the client. Nothing is dropped uncounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads that `submit` accepted.
    pub submitted: u64,
    /// Reads that ended with an answer.
    pub answered: u64,
    /// Reads that failed: `timed_out` plus `refused_to_the_end`.
    pub failed: u64,
    /// Reads without an answer in time.
    pub timed_out: u64,
    /// Reads refused at every transmission.
    pub refused_to_the_end: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests repeated after a timeout or a refusal; included in `sent`.
    pub repeated: u64,
    /// Requests repeated at once with their cookie; included in `sent`.
    pub with_cookie: u64,
    /// Timeouts.
    pub unanswered: u64,
    /// Refusals by servers without room.
    pub refused: u64,
    /// Direct mode: times that rate control held a read.
    pub held: u64,
    /// Direct mode: attempts sent untracked, because too many were in flight; their answers are not used.
    pub untracked: u64,
    /// Direct mode: attempts not answered in time.
    pub expired: u64,
    /// Direct mode: answers without an attempt: late, duplicate or forged.
    pub unmatched: u64,
    /// Direct mode: requests of an unknown replica group; sent to their backups (N3).
    pub unknown_group: u64,
    /// Direct mode: reads of such a group without a known server among their backups; not sent, and failed at their deadline.
    pub unknown_server: u64,
    /// Datagrams dropped: not a packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: other version of the format.
    pub other_version: u64,
    /// Datagrams dropped: kind not for clients, or not in this mode.
    pub not_for_client: u64,
    /// Datagrams dropped: not from the operator or, in direct mode, from the server that they name.
    pub foreign: u64,
    /// Answers and refusals dropped: no read waits for them (duplicates, late or forged ones).
    pub unexpected: u64,
    /// Cookies dropped: no read waits for an answer, or the transmission already got one.
    pub cookies_ignored: u64,
}
