//! The counters of an agent, apart from those of its endpoint. Every drop is counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

midflight_endpoint::counters! {
    /// Counts since the agent's start. Requests are by datagram unless noted.
    pub struct AgentCounters {
        /// GETs answered with the value.
        pub values,
        /// GETs answered with LONG, because the value does not fit.
        pub long_values,
        /// GETs for missing keys.
        pub missing,
        /// Refused: not exactly one request in the datagram.
        pub malformed_questions,
        /// Refused: SET or DELETE, which need a stream.
        pub not_get,
        /// Answered with OTHER_VERSION, by datagram or stream.
        pub other_version,
        /// Refused: the agent is shutting down.
        pub ending,
        /// Refused: the backend timed out.
        pub backend_timeouts,
        /// Refused: the backend is down or closed the connection.
        pub backend_gone,
        /// Refused: the backend's response was invalid or for another key.
        pub backend_garbage,
        /// Refused: the value exceeds 1 MiB.
        pub backend_too_long,
        /// Refused by the backend.
        pub backend_refused,
        /// Refused: the backend has no such feature, such as flags with Redis.
        pub backend_unsupported,
        /// Connections made to the backend.
        pub backend_connects,
        /// Failed attempts to connect to the backend.
        pub backend_connect_failures,
        /// Idle backend connections that the backend closed.
        pub backend_closed_idle,
        /// Idle backend connections closed because of unexpected bytes.
        pub backend_spoke_unasked,
        /// GETs by stream.
        pub stream_gets,
        /// SETs by stream.
        pub stream_sets,
        /// DELETEs by stream.
        pub stream_deletes,
        /// Requests by stream refused: no backend connection became free in time.
        pub stream_slots_taken,
        /// Streams closed: malformed request.
        pub stream_malformed,
        /// Streams closed: opened by another user of this machine.
        pub stream_not_served,
        /// Streams closed: no first request in time.
        pub stream_silent,
        /// Streams closed: idle, the normal end.
        pub stream_idle,
        /// Streams closed: incomplete request.
        pub stream_late,
        /// Streams closed: the client read too slowly.
        pub stream_stalled,
        /// Streams broken off by the client within a request or a response.
        pub stream_broken,
        /// Streams closed by the client before its request was carried out.
        pub stream_left,
    } counted by Counts
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
