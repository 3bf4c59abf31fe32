midflight_endpoint::counters! {
    /// Counts since the start of the server. Nothing is dropped uncounted.
    pub struct Counters {
        /// Requests accepted: served or queued.
        pub taken,
        /// Requests answered by the application.
        pub answered,
        /// Requests refused: queue full.
        pub queue_full,
        /// Requests refused: queued too long.
        pub waited_too_long,
        /// Requests refused: the application gave up.
        pub given_up,
        /// Requests refused: the application did not answer in time.
        pub served_too_long,
        /// Answers dropped: the application answered a request that is not being served.
        pub late_answers,
        /// Direct requests without their cookie; answered with COOKIE.
        pub cookies,
        /// Datagrams of another version; answered with VERSION.
        pub other_version,
        /// Datagrams dropped: not a packet of this protocol.
        pub malformed,
        /// Datagrams dropped: kind not for servers.
        pub not_for_server,
        /// Requests dropped: not from an operator or selector.
        pub foreign,
        /// Requests dropped: addressed to another server.
        pub other_server,
    }
}
