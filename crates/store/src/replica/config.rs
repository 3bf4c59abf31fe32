//! Configuration of a replica: members, modes, times, bounds.

use super::founding::Founders;
use midflight_endpoint::config::{OutOfRange, in_range};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_wire::store::{KGROUP_BITS_MAX, REPLICAS_MAX};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::str::FromStr;

/// A replica as its peers and the switches know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Raft id: not 0, and never reused, because a replica that lost its disk is a different one.
    pub id: u64,
    /// Slot in the set, 0 to 7.
    pub slot: u8,
    /// Address for datagrams from switches.
    pub address: SocketAddr,
    /// Address for links from replicas.
    pub links: SocketAddr,
}

const STORE_MAX: usize = 512 << 20;
/// A snapshot begins with a copy of the client table, which bounds its size.
const CLIENTS_MAX: usize = 16_384;

/// Bounds that affect the result of log entries. Fixed when the set is created; with different bounds, the replicas' data would diverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    kgroup_bits: u8,
    store_bytes: u64,
    clients: u64,
    client_idle_ms: u64,
}

impl Agreed {
    /// The first setting that differs: name, own value, other value.
    pub(super) fn differs_from(&self, other: &Self) -> Option<(&'static str, u64, u64)> {
        let all = [
            ("kgroup_bits", self.kgroup_bits.into(), other.kgroup_bits.into()),
            ("store_bytes", self.store_bytes, other.store_bytes),
            ("clients", self.clients, other.clients),
            ("client_idle, in ms,", self.client_idle_ms, other.client_idle_ms),
        ];
        all.into_iter().find(|(_, ours, theirs)| ours != theirs)
    }
}

/// Other settings that peers rely on: leases, promises, and the read mode. They may change while all processes are stopped, so snapshots
/// omit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Habits {
    session_lease_us: u64,
    leader_lease_us: u64,
    promise_us: u64,
    drift_ppm: u64,
    mode: Mode,
}

impl Habits {
    /// As [`Agreed::differs_from`].
    pub(super) fn differs_from(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let times = [
            ("session_lease, in us,", self.session_lease_us, other.session_lease_us),
            ("leader_lease, in us,", self.leader_lease_us, other.leader_lease_us),
            ("promise, in us,", self.promise_us, other.promise_us),
            ("drift_ppm", self.drift_ppm, other.drift_ppm),
        ];
        let times = times.map(|(name, ours, theirs)| (name, ours.to_string(), theirs.to_string()));
        let modes = ("reads", self.mode.name().to_owned(), other.mode.name().to_owned());
        times.into_iter().chain([modes]).find(|(_, ours, theirs)| ours != theirs)
    }
}

/// How reads are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// By every consistent replica, as the switch decides (FLAIR).
    #[default]
    Flair,
    /// By the leader, after a quorum round per batch (Raft's ReadIndex).
    Raft,
    /// By the leader under its lease (FLAIR's Opt. Raft).
    LeaderLease,
    /// By any replica; a follower asks the leader for the index to apply first (as in etcd and TiKV).
    #[serde(rename = "follower-readindex")]
    FollowerReadIndex,
    /// By any replica; a follower needs a lease, which each write revokes for its key group (FLAIR's FLeases).
    FollowerLease,
    /// By the only replica of the set, without any round; a baseline for the cost of replication.
    Unreplicated,
}

impl FromStr for Mode {
    type Err = serde::de::value::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::deserialize(name.into_deserializer())
    }
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 6] =
        [Self::Flair, Self::Raft, Self::LeaderLease, Self::FollowerReadIndex, Self::FollowerLease, Self::Unreplicated];

    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flair => "flair",
            Self::Raft => "raft",
            Self::LeaderLease => "leader-lease",
            Self::FollowerReadIndex => "follower-readindex",
            Self::FollowerLease => "follower-lease",
            Self::Unreplicated => "unreplicated",
        }
    }

    /// Whether each replica checks itself that it is up to date, so that the switch may send a READ to any.
    #[must_use]
    pub fn uses_any_replica(self) -> bool {
        matches!(self, Self::FollowerReadIndex | Self::FollowerLease)
    }

    /// Whether followers get READs.
    pub(super) fn uses_followers(self) -> bool {
        self == Self::Flair || self.uses_any_replica()
    }
}

/// Times of a set. Its safety depends on them: all replicas and switches must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Interval of the leader's messages to followers and switches. Default 20 ms.
    pub heartbeat: Nanos,
    /// Lease of a session at its switch (T). Default 120 ms.
    pub session_lease: Nanos,
    /// The leader's lease (L), from when it sent the round that a quorum answered. Default 100 ms.
    pub leader_lease: Nanos,
    /// How long a replica neither votes nor campaigns after it has heard a leader; also the minimum election timeout. Default 120 ms.
    pub promise: Nanos,
    /// Delay between the campaigns of successive slots, which makes split votes rare. Default 25 ms.
    pub stagger: Nanos,
    /// Bound on the relative rate difference of two clocks, in millionths (ρ). Default 50,000 (5 %).
    pub drift_ppm: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: 20 * MS,
            session_lease: 120 * MS,
            leader_lease: 100 * MS,
            promise: 120 * MS,
            stagger: 25 * MS,
            drift_ppm: 50_000,
        }
    }
}

impl Timing {
    /// Upper bound, by the local clock, of a time measured on another machine: `time` (1 + ρ).
    #[must_use]
    pub fn with_drift(&self, time: Nanos) -> Nanos {
        time + time / 1_000_000 * self.drift_ppm + time % 1_000_000 * self.drift_ppm / 1_000_000 + 1
    }

    /// How long a session may survive at a switch after that switch's last answer.
    #[must_use]
    pub fn fence(&self) -> Nanos {
        if planted(121) {
            return self.session_lease;
        }
        self.with_drift(self.session_lease)
    }
}

/// Identity, peers and bounds of a replica. [`ReplicaConfig::new`] sets the defaults.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Identifies the store; replicas of others are ignored.
    pub cluster: u64,
    /// The replica set.
    pub set: u16,
    /// Its Raft id.
    pub id: u64,
    /// The members when the set was created. Used only while the replica has no log. Empty: it waits to be added.
    pub initial: Vec<Member>,
    /// Creates the set: without files, this replica is one of its first members. If false, a replica without the files it should have
    /// does not start, because it has forgotten what it acknowledged.
    pub founds: bool,
    /// If one process creates the data of all first members: their disks' random numbers. Empty: the members exchange these before the
    /// store begins.
    pub founders: BTreeMap<u64, u64>,
    /// Members that it links to while it waits to be added.
    pub contacts: Vec<Member>,
    /// The set's switches, the preferred one first.
    pub switches: Vec<SocketAddr>,
    /// log2 of the number of key groups; fixed when the set is created. Default 12.
    pub kgroup_bits: u8,
    /// Seeds the jitter of elections.
    pub seed: u64,
    /// How reads are served. Default [`Mode::Flair`].
    pub mode: Mode,
    /// Times.
    pub timing: Timing,
    /// Bound on open client ids. Default 16,384.
    pub clients: usize,
    /// Idle time after which an id may be evicted if the table is full. Default 1 min.
    pub client_idle: Nanos,
    /// Bound on requests that wait for an index. Default 65,536.
    pub waiting: usize,
    /// Bound on the bytes of keys and values, with overhead. Default 256 MiB, at most 512 MiB.
    pub store_bytes: usize,
    /// Bytes of log that trigger a snapshot. Default 32 MiB.
    pub snapshot_after: usize,
    /// Bytes waiting for the disk above which writes are refused. Default 64 MiB.
    pub unsafe_bytes: usize,
    /// Time limit for a new member to catch up; then it is removed. Default 10 min.
    pub learn_within: Nanos,
    /// How long a key group with a lost write stays unstable after the first READ that shows it. Default 20 ms.
    pub refresh_after: Nanos,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An even number of initial replicas.
    #[error(
        "{0} initial replicas: take an odd number (1, 3, 5 or 7), an even one tolerates no more failures than one less"
    )]
    EvenReplicas(usize),
    /// Two members with the same id, slot or address.
    #[error("two initial replicas have the same {what} {which}: name each replica once")]
    RepeatedReplica {
        /// Id, slot or address.
        what: &'static str,
        /// The repeated value.
        which: String,
    },
    /// The replica is not among the initial members.
    #[error("this replica, id {0}, is not among the initial replicas: add it to them")]
    NotAmong(u64),
    /// Several replicas in the unreplicated mode.
    #[error(
        "`reads` is unreplicated, which is for a set of exactly one replica, and this one has {0}: name one, or take another mode"
    )]
    Replicated(usize),
    /// No switch.
    #[error("`switches` is empty: name at least one switch, such as 127.0.0.1:7700")]
    NoSwitch,
    /// A number outside its range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
}

impl ReplicaConfig {
    /// The defaults.
    #[must_use]
    pub fn new(cluster: u64, set: u16, id: u64, initial: Vec<Member>, switches: Vec<SocketAddr>, seed: u64) -> Self {
        Self {
            cluster,
            set,
            id,
            initial,
            founds: false,
            founders: Founders::new(),
            contacts: Vec::new(),
            switches,
            kgroup_bits: 12,
            seed,
            mode: Mode::Flair,
            timing: Timing::default(),
            clients: CLIENTS_MAX,
            client_idle: 60 * SECOND,
            waiting: 65_536,
            store_bytes: 256 << 20,
            snapshot_after: 32 << 20,
            unsafe_bytes: 64 << 20,
            learn_within: 600 * SECOND,
            refresh_after: 20 * MS,
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_members()?;
        if self.mode == Mode::Unreplicated && self.initial.len() != 1 {
            return Err(ConfigError::Replicated(self.initial.len()));
        }
        if self.switches.is_empty() {
            return Err(ConfigError::NoSwitch);
        }
        let timing = &self.timing;
        in_range("id", self.id, self.id != 0, "a number that is not 0")?;
        in_range("kgroup_bits", self.kgroup_bits.into(), self.kgroup_bits <= KGROUP_BITS_MAX, "0 to 20")?;
        in_range("drift_ppm", timing.drift_ppm, timing.drift_ppm <= 500_000, "0 to 500,000")?;
        let heartbeat = timing.heartbeat;
        in_range("heartbeat", heartbeat, (MS..=SECOND).contains(&heartbeat), "1 ms to 1 s")?;
        let lease = timing.session_lease;
        in_range("session_lease", lease, (2 * heartbeat..=60 * SECOND).contains(&lease), "two heartbeats to 60 s")?;
        let lease = timing.leader_lease;
        in_range("leader_lease", lease, lease >= 2 * heartbeat, "at least two heartbeats")?;
        let promise = timing.promise;
        let is_longer = promise > timing.with_drift(lease) && promise <= 60 * SECOND;
        in_range("promise", promise, is_longer, "more than `leader_lease` and its drift, at most 60 s")?;
        let clients = self.clients as u64;
        in_range(
            "clients",
            clients,
            (1..=CLIENTS_MAX as u64).contains(&clients),
            "1 to 16,384: their last answers are in each snapshot",
        )?;
        let bytes = self.store_bytes as u64;
        in_range("store_bytes", bytes, (1..=STORE_MAX as u64).contains(&bytes), "1 byte to 512 MiB")?;
        Ok(in_range("waiting", self.waiting as u64, self.waiting > 0, "at least 1")?)
    }

    /// Settings fixed when the set is created.
    pub(super) fn agreed(&self) -> Agreed {
        let client_idle_ms = self.client_idle / MS;
        let (store_bytes, clients) = (self.store_bytes as u64, self.clients as u64);
        Agreed { kgroup_bits: self.kgroup_bits, store_bytes, clients, client_idle_ms }
    }

    /// Settings that all running replicas must share.
    pub(super) fn habits(&self) -> Habits {
        let Timing { session_lease, leader_lease, promise, drift_ppm, .. } = self.timing;
        let [session_lease_us, leader_lease_us, promise_us] =
            [session_lease, leader_lease, promise].map(|time| time / 1_000);
        Habits { session_lease_us, leader_lease_us, promise_us, drift_ppm, mode: self.mode }
    }

    fn check_members(&self) -> Result<(), ConfigError> {
        let members = &self.initial;
        if members.is_empty() {
            return Ok(());
        }
        if members.len().is_multiple_of(2) {
            return Err(ConfigError::EvenReplicas(members.len()));
        }
        for (i, member) in members.iter().enumerate() {
            let slot = u64::from(member.slot);
            in_range("slot", slot, usize::from(member.slot) < REPLICAS_MAX, "0 to 7")?;
            let repeated = |what, which: String| Err(ConfigError::RepeatedReplica { what, which });
            for other in &members[..i] {
                if other.id == member.id {
                    return repeated("id", member.id.to_string());
                }
                if other.slot == member.slot {
                    return repeated("place", slot.to_string());
                }
                if other.address == member.address {
                    return repeated("address", member.address.to_string());
                }
                if other.links == member.links {
                    return repeated("address for links", member.links.to_string());
                }
            }
        }
        if members.iter().all(|member| member.id != self.id) {
            return Err(ConfigError::NotAmong(self.id));
        }
        Ok(())
    }
}
