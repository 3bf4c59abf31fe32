//! One run of the evaluation: its input, as data, and its result.

use super::costs::Costs;
use crate::cell::Percentiles;
use midflight_dataplane::store::{Policy, ReplyCheck};
use midflight_endpoint::Nanos;
use midflight_store::replica::Mode;
use serde::{Deserialize, Serialize};

/// A store and its clients. Defaults to the paper's FlairKV under workload B with 300 clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// How reads are served.
    pub system: System,
    /// How the switch chooses among consistent replicas (leader avoidance).
    pub policy: Policy,
    /// Which followers' answers the switch lets pass (strict).
    pub reply_check: ReplyCheck,
    /// Number of replicas (3): 3, 5 or 7, or 1 if unreplicated.
    pub replicas: u8,
    /// Clients in a closed loop (300).
    pub clients: u32,
    /// Machines with clients, at most one for each client (10).
    #[serde(skip_serializing_if = "is_usual")]
    pub machines: u32,
    /// Share of reads (0.95, YCSB's B).
    pub reads: f64,
    /// Number of keys, each written before the run (100,000).
    pub keys: u32,
    /// Exponent of Zipf's law; 0: uniform.
    pub zipf: f64,
    /// log2 of the number of key groups (12).
    pub kgroup_bits: u8,
    /// What requests take of a replica.
    pub costs: Costs,
    /// Nanoseconds added to each way between a client and a replica (0).
    pub way_ns: Nanos,
    /// How much longer everything takes at one follower, in thousandths (0).
    pub slower_per_mille: u32,
    /// What fails, and when.
    pub fault: Option<Fault>,
    /// Milliseconds of unmeasured warm-up (200).
    pub warmup_ms: u64,
    /// Milliseconds until the end, warm-up included (1,200).
    pub duration_ms: u64,
    /// Seed of all randomness. All systems but the models see the same operations of each client.
    pub seed: u64,
}

/// The compared systems. All but two are modes of Midflight's replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// FlairKV.
    #[default]
    Flair,
    /// FLeases.
    FollowerLease,
    /// Opt. Raft.
    LeaderLease,
    /// Raft, whose replicas have one thread.
    Raft,
    /// Unrep., NOPaxos at its best.
    Unreplicated,
    /// VR, a model of its normal case.
    ViewstampedReplication,
    /// Fast Paxos, the same.
    FastPaxos,
    /// Reads from followers as in etcd, which the paper does not have.
    #[serde(rename = "follower-readindex")]
    FollowerReadIndex,
}

/// A failure during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What fails.
    pub kind: FaultKind,
    /// When, in milliseconds from the beginning.
    pub at_ms: u64,
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The switch loses its state.
    Switch,
    /// The leader dies.
    Leader,
    /// A follower dies.
    Follower,
}

/// Result of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Operations per second, of the time after warm-up; so are the others.
    pub per_second: f64,
    /// From submit to the answer.
    pub reads: Percentiles,
    /// The same for writes.
    pub writes: Percentiles,
    /// How reads were served.
    pub shares: Shares,
    /// Operations per second in each bucket of [`BUCKET_MS`] from the beginning, if something fails.
    pub over_time: Vec<f64>,
    /// Operations that failed.
    pub failed: u64,
    /// Simulated events.
    pub events: u64,
    /// Wall time in milliseconds: the only number that differs between runs.
    pub wall_ms: f64,
}

/// Shares of the reads, 0 to 1. Without meaning if a replica dies: its counters end with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Answered by the leader.
    pub by_leader: f64,
    /// Sent to the leader because their key group was unstable.
    pub unstable: f64,
    /// Refused by a follower or the switch after a follower had them, and sent on to the leader.
    pub redirected: f64,
}

/// Bucket width of results over time, in milliseconds.
pub const BUCKET_MS: u64 = 50;

/// The paper's machines with clients.
const MACHINES: u32 = 10;
/// On one machine; each client has a lane.
const CLIENTS_MAX: u32 = 256;
/// Of 24 bytes with values of 1 KB, in the largest store.
const KEYS_MAX: u32 = 450_000;

/// Why a cell cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A field is invalid.
    #[error("{0}")]
    Bad(String),
    /// The store did not take the keys, or did not begin.
    #[error("the store did not begin to serve within {0} s")]
    NotReady(u64),
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "Serde's signature")]
fn is_usual(machines: &u32) -> bool {
    *machines == MACHINES
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            system: System::Flair,
            policy: Policy::LeaderAvoidance,
            reply_check: ReplyCheck::Strict,
            replicas: 3,
            clients: 300,
            machines: MACHINES,
            reads: 0.95,
            keys: 100_000,
            zipf: 0.0,
            kgroup_bits: 12,
            costs: Costs::default(),
            way_ns: 0,
            slower_per_mille: 0,
            fault: None,
            warmup_ms: 200,
            duration_ms: 1_200,
            seed: 1,
        }
    }
}

impl System {
    /// `None` for a model.
    pub(super) fn mode(self) -> Option<Mode> {
        Some(match self {
            Self::Flair => Mode::Flair,
            Self::FollowerLease => Mode::FollowerLease,
            Self::LeaderLease => Mode::LeaderLease,
            Self::Raft => Mode::Raft,
            Self::Unreplicated => Mode::Unreplicated,
            Self::FollowerReadIndex => Mode::FollowerReadIndex,
            Self::ViewstampedReplication | Self::FastPaxos => return None,
        })
    }
}

impl CellResult {
    /// Without wall time: identical in every run.
    #[must_use]
    pub fn deterministic(&self) -> Self {
        Self { wall_ms: 0.0, ..self.clone() }
    }
}

impl Cell {
    /// A replica's threads. The originals of Raft, VR and Fast Paxos handle one event after the other.
    pub(super) fn threads(&self) -> usize {
        match self.system {
            System::Raft | System::ViewstampedReplication | System::FastPaxos => 1,
            _ => self.costs.threads as usize,
        }
    }

    /// Machines with at least one client.
    pub(super) fn busy_machines(&self) -> u32 {
        self.machines.min(self.clients)
    }

    /// Checks that all fields are valid.
    ///
    /// # Errors
    /// Says which field is invalid and what is allowed.
    pub fn check(&self) -> Result<(), CellError> {
        let must = |holds: bool, what: &str| if holds { Ok(()) } else { Err(CellError::Bad(what.into())) };
        let is_alone = self.system == System::Unreplicated;
        must(is_alone == (self.replicas == 1), "replicas must be 1 for the system unreplicated, and only for it")?;
        must(is_alone || [3, 5, 7].contains(&self.replicas), "replicas must be 3, 5 or 7")?;
        must((1..=100).contains(&self.machines), "machines must be 1 to 100")?;
        let clients = 1..=CLIENTS_MAX * self.machines;
        must(clients.contains(&self.clients), "clients must be 1 to 256 for each of the machines")?;
        must((0.0..=1.0).contains(&self.reads), "reads must be 0 to 1")?;
        must((1..=KEYS_MAX).contains(&self.keys), "keys must be 1 to 450,000: a store has 512 MiB")?;
        must((0.0..=2.0).contains(&self.zipf), "zipf must be 0 to 2")?;
        must(self.kgroup_bits <= 12, "kgroup_bits must be at most 12")?;
        self.costs.fault().map_or(Ok(()), |what| must(false, what))?;
        must(self.way_ns <= 10_000_000, "way_ns must be at most 10,000,000: clients would repeat what is on its way")?;
        must(self.slower_per_mille <= 10_000, "slower_per_mille must be at most 10,000")?;
        must(
            self.slower_per_mille == 0 || !is_alone,
            "slower_per_mille is a follower's: the system unreplicated has none",
        )?;
        must(self.warmup_ms < self.duration_ms, "warmup_ms must be less than duration_ms")?;
        must(self.duration_ms <= 600_000, "duration_ms must be at most 600,000")?;
        let is_plain = self.zipf == 0.0 && self.slower_per_mille == 0 && self.costs.share_per_mille == 1_000;
        must(
            self.system.mode().is_some() || is_plain,
            "zipf, slower_per_mille, costs.share_per_mille: not of this system's model",
        )?;
        let Some(fault) = self.fault else { return Ok(()) };
        must(self.system.mode().is_some(), "fault: this system's model has the normal case only")?;
        must(fault.at_ms < self.duration_ms, "fault.at_ms must be before the end")?;
        must(fault.kind == FaultKind::Switch || !is_alone, "fault: a store of one replica ends with it")
    }

    /// Memory a run needs, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        const PAIR: u64 = 1_300;
        const REPLICA: u64 = 80_000_000;
        u64::from(self.replicas) * (u64::from(self.keys) * PAIR + REPLICA) + 100_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_cells_are_refused_by_name() {
        let cells: [(Cell, &str); 8] = [
            (Cell { replicas: 4, ..Cell::default() }, "3, 5 or 7"),
            (Cell { replicas: 1, ..Cell::default() }, "replicas"),
            (Cell { system: System::Unreplicated, ..Cell::default() }, "replicas"),
            (Cell { clients: 0, ..Cell::default() }, "clients"),
            (Cell { reads: f64::NAN, ..Cell::default() }, "reads"),
            (Cell { warmup_ms: 2_000, ..Cell::default() }, "warmup_ms"),
            (Cell { fault: Some(Fault { kind: FaultKind::Leader, at_ms: 9_999 }), ..Cell::default() }, "fault.at_ms"),
            (Cell { kgroup_bits: 13, ..Cell::default() }, "kgroup_bits"),
        ];
        for (cell, named) in cells {
            let said = cell.check().unwrap_err().to_string();
            assert!(said.contains(named), "{said}");
        }
        assert_eq!(Cell::default().check(), Ok(()));
    }
}
