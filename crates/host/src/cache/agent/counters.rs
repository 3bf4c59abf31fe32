//! The counters of an agent, apart from those of its endpoint. Every drop is counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the agent's start. Requests are by datagram unless noted.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct AgentCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl AgentCounters {
            /// Every counter with its name.
            #[must_use]
            pub fn by_name(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }

        #[derive(Debug, Default)]
        pub(super) struct Counts {
            $(pub(super) $name: AtomicU64,)*
        }

        impl Counts {
            pub(super) fn read(&self) -> AgentCounters {
                AgentCounters { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// GETs answered with the value.
    values,
    /// GETs answered with LONG, because the value does not fit.
    long_values,
    /// GETs for missing keys.
    missing,
    /// Refused: not exactly one request in the datagram.
    malformed_questions,
    /// Refused: SET or DELETE, which need a stream.
    not_get,
    /// Answered with OTHER_VERSION, by datagram or stream.
    other_version,
    /// Refused: the agent is shutting down.
    ending,
    /// Refused: the backend timed out.
    backend_timeouts,
    /// Refused: the backend is down or closed the connection.
    backend_gone,
    /// Refused: the backend's response was invalid or for another key.
    backend_garbage,
    /// Refused: the value exceeds 1 MiB.
    backend_too_long,
    /// Refused by the backend.
    backend_refused,
    /// Refused: the backend has no such feature, such as flags with Redis.
    backend_unsupported,
    /// Connections made to the backend.
    backend_connects,
    /// Failed attempts to connect to the backend.
    backend_connect_failures,
    /// Idle backend connections that the backend closed.
    backend_closed_idle,
    /// Idle backend connections closed because of unexpected bytes.
    backend_spoke_unasked,
    /// GETs by stream.
    stream_gets,
    /// SETs by stream.
    stream_sets,
    /// DELETEs by stream.
    stream_deletes,
    /// Requests by stream refused: no backend connection became free in time.
    stream_slots_taken,
    /// Streams closed: malformed request.
    stream_malformed,
    /// Streams closed: opened by another user of this machine.
    stream_not_served,
    /// Streams closed: no first request in time.
    stream_silent,
    /// Streams closed: idle, the normal end.
    stream_idle,
    /// Streams closed: incomplete request.
    stream_late,
    /// Streams closed: the client read too slowly.
    stream_stalled,
    /// Streams broken off by the client within a request or a response.
    stream_broken,
    /// Streams closed by the client before its request was carried out.
    stream_left,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
