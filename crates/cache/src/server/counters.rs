/// Counts since the start of the server. Nothing is dropped uncounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests accepted: served or queued.
    pub taken: u64,
    /// Requests answered by the application.
    pub answered: u64,
    /// Requests refused: queue full.
    pub queue_full: u64,
    /// Requests refused: queued too long.
    pub waited_too_long: u64,
    /// Requests refused: the application gave up.
    pub given_up: u64,
    /// Requests refused: the application did not answer in time.
    pub served_too_long: u64,
    /// Answers dropped: the application answered a request that is not being served.
    pub late_answers: u64,
    /// Direct requests without their cookie; answered with COOKIE.
    pub cookies: u64,
    /// Datagrams of another version; answered with VERSION.
    pub other_version: u64,
    /// Datagrams dropped: not a packet of this protocol.
    pub malformed: u64,
    /// Datagrams dropped: kind not for servers.
    pub not_for_server: u64,
    /// Requests dropped: not from an operator or selector.
    pub foreign: u64,
    /// Requests dropped: addressed to another server.
    pub other_server: u64,
}
