//! What requests take of a replica, with the reason. Set from rows and sentences of the papers that `docs/internals/store-evaluation.md`
//! names, and frozen. Only experiments and comparisons with a live store use others.

use crate::calibration::NODE_THREADS;
use midflight_endpoint::Nanos;
use serde::{Deserialize, Serialize};

/// Thread time of a read. In a read-only workload, seven replicas with [`NODE_THREADS`] threads each answer 5.4 million reads a second
/// (FLAIR, load balancing, §7.4: 6 followers).
const READ_NS: Nanos = 7 * NODE_THREADS as Nanos * 10_000 / 54;
/// Reads for which a write takes a leader's thread in Opt. Raft: "almost 35 times longer" (FLAIR §7.1).
const WRITE_READS: Nanos = 35;
/// The same without replicas (FLAIR §7.1). The rest is what replication adds.
const WRITE_ALONE_READS: Nanos = 30;
/// The leader bears most of a write (FLAIR, load balancing, §6.2): a follower takes what replication adds at the leader.
const ENTRY_READS: Nanos = WRITE_READS - WRITE_ALONE_READS;
/// Bytes of a message of Raft for each entry that writes a key of 24 bytes and a value of 1 KB.
const ENTRY_BYTES: u64 = 1_100;

/// Thread times in nanoseconds; default: those of the papers' replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Costs {
    /// Threads of a replica (20).
    pub threads: u32,
    /// Of one CPU, what the control group of a replica with one thread gets, in thousandths (1,000).
    pub share_per_mille: u32,
    /// What a thread that sleeps takes longer for what comes first (0).
    #[serde(skip_serializing_if = "is_none")]
    pub wake_up_ns: Nanos,
    /// Of a read.
    pub read_ns: Nanos,
    /// Of a write, at the leader.
    pub write_ns: Nanos,
    /// Of a copy of a write, which only gets the stored reply (as a write).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_ns: Option<Nanos>,
    /// Of a write without replicas.
    pub write_alone_ns: Nanos,
    /// Of a write, at a follower.
    pub entry_ns: Nanos,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "Serde's signature")]
fn is_none(ns: &Nanos) -> bool {
    *ns == 0
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            threads: NODE_THREADS,
            share_per_mille: 1_000,
            wake_up_ns: 0,
            read_ns: READ_NS,
            write_ns: READ_NS * WRITE_READS,
            copy_ns: None,
            write_alone_ns: READ_NS * WRITE_ALONE_READS,
            entry_ns: READ_NS * ENTRY_READS,
        }
    }
}

impl Costs {
    /// Scales all costs of writes so that a leader's write takes as long as `reads` reads.
    #[must_use]
    pub fn with_write_reads(self, reads: u64) -> Self {
        let part = |ns: Nanos| ns * reads / WRITE_READS;
        Self {
            write_ns: part(self.write_ns),
            write_alone_ns: part(self.write_alone_ns),
            entry_ns: part(self.entry_ns),
            ..self
        }
    }

    /// Of a follower, for a message of Raft.
    pub(super) fn of_message(&self, bytes: usize) -> Nanos {
        self.entry_ns * (bytes as u64 / ENTRY_BYTES)
    }

    /// What of it is invalid, and what is allowed.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let copy_ns = self.copy_ns.unwrap_or(0);
        let times = [self.wake_up_ns, copy_ns, self.read_ns, self.write_ns, self.write_alone_ns, self.entry_ns];
        let rules = [
            ((1..=1_000).contains(&self.threads), "costs.threads must be 1 to 1,000"),
            (times.iter().all(|ns| *ns <= 1_000_000_000), "costs: no time may exceed a second"),
            ((1..=1_000).contains(&self.share_per_mille), "costs.share_per_mille must be 1 to 1,000"),
            (self.threads == 1 || self.share_per_mille == 1_000, "costs.share_per_mille is for one thread"),
        ];
        rules.into_iter().find_map(|(holds, what)| (!holds).then_some(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_rows_that_set_them() {
        let costs = Costs::default();
        let per_second = 7.0 * f64::from(costs.threads) * 1e9 / costs.read_ns as f64;
        assert!((per_second / 5.4e6 - 1.0).abs() < 1e-3, "{per_second}");
        assert_eq!((costs.write_alone_ns / costs.read_ns, costs.write_ns / costs.read_ns), (30, 35));
        assert_eq!((costs.of_message(80), costs.of_message(2_300)), (0, 2 * 5 * costs.read_ns));
        let light = costs.with_write_reads(14);
        assert_eq!((light.write_ns / costs.read_ns, light.entry_ns / costs.read_ns), (14, 2));
    }
}
