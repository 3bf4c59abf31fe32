//! The counters of a server: nothing is dropped without being counted.

/// Counts since the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were taken: they are served, or wait.
    pub taken: u64,
    /// Requests that the application has answered.
    pub answered: u64,
    /// Requests refused because the queue was full.
    pub queue_full: u64,
    /// Requests refused because they had waited for too long.
    pub waited_too_long: u64,
    /// Requests refused because the application gave them up.
    pub given_up: u64,
    /// Requests refused because the application said nothing for too long.
    pub served_too_long: u64,
    /// Answers of the application to no request that is being served: dropped.
    pub late_answers: u64,
    /// Direct requests without their cookie: answered by COOKIE.
    pub cookies: u64,
    /// Datagrams of another version: answered by VERSION.
    pub other_version: u64,
    /// Datagrams dropped: no packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: a kind that is not for servers.
    pub not_for_server: u64,
    /// Requests dropped: from an address that is no operator's and no selector's.
    pub foreign: u64,
    /// Requests dropped: they name another server.
    pub other_server: u64,
}
