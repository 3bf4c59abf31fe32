//! The status and the metrics of the store program.

use crate::metrics::{ProgramStatus, counters, gauges};
use midflight_dataplane::store::{SetStats, Stats, StoreProgram};
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The replica sets of a switch at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// In the order of their places.
    pub sets: Vec<SetStatus>,
}

/// Counters of a replica set at its switch, since it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStatus {
    /// Its number.
    pub set: u16,
    /// Reads of stable key groups sent to followers.
    pub reads_to_followers: u64,
    /// Reads of stable key groups sent to the leader.
    pub reads_to_leader: u64,
    /// Reads that only the leader could answer.
    pub reads_leader_only: u64,
    /// Reads sent to replicas that may answer the client directly; also counted above.
    pub reads_direct: u64,
    /// Replies that became such reads.
    pub reads_turned_back: u64,
    /// Replies of the leader that came too late.
    pub replies_outdated: u64,
    /// Writes.
    pub writes: u64,
    /// Answers that made their key group stable.
    pub closed: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Requests without a session here, from clients that say that no switch serves them.
    #[serde(default)]
    pub requests_unserved: u64,
    /// Key groups that are unstable now.
    pub unstable: u32,
}

impl StoreStatus {
    /// From the counters of the program.
    #[must_use]
    pub fn new(stats: &Stats) -> Self {
        Self { sets: stats.present().map(SetStatus::from).collect() }
    }
}

impl From<&SetStats> for SetStatus {
    fn from(stats: &SetStats) -> Self {
        Self {
            set: stats.set,
            reads_to_followers: stats.to_followers,
            reads_to_leader: stats.to_leader,
            reads_leader_only: stats.leader_only,
            reads_direct: stats.direct,
            reads_turned_back: stats.turned_back,
            replies_outdated: stats.outdated,
            writes: stats.writes,
            closed: stats.closed,
            sessions: stats.sessions,
            requests_unserved: stats.unserved,
            unstable: stats.unstable,
        }
    }
}

type Count = (&'static str, &'static str, fn(&SetStatus) -> u64);

const COUNTS: [Count; 10] = [
    ("reads_to_followers", "Reads of stable key groups to replicas that do not lead", |s| s.reads_to_followers),
    ("reads_to_leader", "Reads of stable key groups to the leader", |s| s.reads_to_leader),
    ("reads_leader_only", "Reads that only the leader could answer", |s| s.reads_leader_only),
    ("reads_direct", "Of these, reads to replicas that may answer the client directly", |s| s.reads_direct),
    ("reads_turned_back", "Replies of replicas that became such reads", |s| s.reads_turned_back),
    ("replies_outdated", "Replies of the leader that came too late", |s| s.replies_outdated),
    ("writes", "Writes", |s| s.writes),
    ("closed", "Answers that made their key group stable", |s| s.closed),
    ("sessions", "Sessions that began", |s| s.sessions),
    ("requests_unserved", "Requests without a session here, of clients that no switch serves", |s| s.requests_unserved),
];

impl ProgramStatus for StoreStatus {
    type Program = StoreProgram;

    fn counts(&self) -> Vec<(String, u64)> {
        let of_set = |set: &SetStatus| COUNTS.map(|(name, _, count)| (format!("sets.{}.{name}", set.set), count(set)));
        self.sets.iter().flat_map(of_set).collect()
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, count) in COUNTS {
            let by_set = self.sets.iter().map(|set| (set.set.to_string(), count(set))).collect();
            counters(e, name, help, "set", &by_set)?;
        }
        let unstable = self.sets.iter().map(|set| (set.set.to_string(), i64::from(set.unstable)));
        gauges(e, "kgroups_unstable", "Key groups that are unstable now", "set", unstable)
    }
}
