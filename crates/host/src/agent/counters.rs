//! The counters of an agent beside those of its endpoint: nothing is dropped without being counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the start of an agent, of its store and its streams.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct AgentCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl AgentCounters {
            /// Each by its name.
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
    /// GETs in datagrams answered with the value.
    values,
    /// GETs in datagrams answered by LONG: the value does not fit.
    long_values,
    /// GETs in datagrams for keys that the store does not have.
    missing,
    /// Requests in datagrams refused: what they ask is no request.
    malformed_questions,
    /// Requests in datagrams refused: they ask for SET or DELETE, for which there are streams.
    not_get,
    /// Requests, in datagrams and streams, of another version: answered by OTHER_VERSION.
    other_version,
    /// Requests in datagrams refused because the agent ends.
    ending,
    /// Requests refused because the store did not answer in time.
    store_timeouts,
    /// Requests refused because the store is not there, or closed the connection.
    store_gone,
    /// Requests refused because the store answered what it should not, or another key.
    store_garbage,
    /// Requests refused because the value has more than 1 MiB.
    store_too_long,
    /// Requests refused because the store refused them.
    store_refused,
    /// Requests refused because the store has no such thing: flags with Redis.
    store_unsupported,
    /// Connections to the store.
    store_connects,
    /// Attempts to connect to the store that failed.
    store_connect_failures,
    /// Connections that the store closed between two requests.
    store_closed_idle,
    /// Connections closed because the store sent something between two requests.
    store_spoke_unasked,
    /// GETs of streams.
    stream_gets,
    /// SETs of streams.
    stream_sets,
    /// DELETEs of streams.
    stream_deletes,
    /// Requests of streams refused because all connections for them were in use for too long.
    stream_slots_taken,
    /// Streams closed for a malformed request.
    stream_malformed,
    /// Streams closed because another user of this machine opened them.
    stream_not_served,
    /// Streams closed because their first request did not begin in time.
    stream_silent,
    /// Streams closed because no further request came: the normal end.
    stream_idle,
    /// Streams closed because a request that had begun did not end in time.
    stream_late,
    /// Streams closed because the other end did not read the answer fast enough.
    stream_stalled,
    /// Streams that the other end broke off in the middle of a request or an answer.
    stream_broken,
    /// Streams that the other end closed before their request had its turn: it was not carried out.
    stream_left,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
