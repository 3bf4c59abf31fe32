//! What requests take of a replica, with the reason. Set from three rows of the paper before any cell ran, and frozen.

use crate::calibration::NODE_THREADS;
use midflight_endpoint::Nanos;

/// Thread time of a read. In a read-only workload, seven replicas with [`NODE_THREADS`] threads each answer 5.4 million reads a second
/// (FLAIR, load balancing, §7.4: 6 followers).
const READ_NS: Nanos = 7 * NODE_THREADS as Nanos * 10_000 / 54;
/// Reads for which a write takes a leader's thread in Opt. Raft: "almost 35 times longer" (FLAIR §7.1).
const WRITE_READS: Nanos = 35;
/// The same without replicas (FLAIR §7.1).
const WRITE_ALONE_READS: Nanos = 30;
/// Bytes of a message of Raft for each entry that writes a key of 24 bytes and a value of 1 KB.
const ENTRY_BYTES: u64 = 1_100;

/// Times of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) read: Nanos,
    pub(super) write: Nanos,
    /// Of a follower, for an entry.
    entry: Nanos,
}

impl Costs {
    pub(super) fn of(is_alone: bool) -> Self {
        let write = READ_NS * if is_alone { WRITE_ALONE_READS } else { WRITE_READS };
        // The paper says nothing of followers: like a store without replicas, they execute the write, but handle no request.
        Self { read: READ_NS, write, entry: READ_NS * (WRITE_ALONE_READS - 1) }
    }

    pub(super) fn of_message(&self, bytes: usize) -> Nanos {
        self.entry * (bytes as u64 / ENTRY_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_rows_that_set_them() {
        let (alone, replicated) = (Costs::of(true), Costs::of(false));
        let per_second = 7.0 * f64::from(NODE_THREADS) * 1e9 / replicated.read as f64;
        assert!((per_second / 5.4e6 - 1.0).abs() < 1e-3, "{per_second}");
        assert_eq!((alone.write / alone.read, replicated.write / replicated.read), (30, 35));
        assert_eq!((replicated.of_message(80), replicated.of_message(2_300)), (0, 2 * 29 * replicated.read));
    }
}
