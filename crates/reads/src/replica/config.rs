//! The configuration of a replica, with the default of every bound and time.

use super::founding::Founders;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_wire::reads::{KGROUP_BITS_MAX, REPLICAS_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A replica of a set, as the others and the switches know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its Raft id: not 0, and never used again, because a replica without its disk is another one.
    pub id: u64,
    /// Its place in the set: 0 to 7.
    pub slot: u8,
    /// Where it takes datagrams: from switches.
    pub address: SocketAddr,
    /// Where it takes links: from replicas.
    pub links: SocketAddr,
}

/// The most bytes of a store.
const STORE_MAX: usize = 512 << 20;
/// The most client ids: a snapshot begins with a copy of their table.
const CLIENTS_MAX: usize = 16_384;

/// Bounds that decide what comes of an entry of the log. They are frozen when the set is made: where two replicas had others, their
/// data would differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    kgroup_bits: u8,
    store_bytes: u64,
    clients: u64,
    client_idle_ms: u64,
}

impl Agreed {
    /// The first setting in which another set, or replica, is not like this one: its name, and its value here and there.
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

/// What a replica counts on at the others beside that: how long they keep leases and promises, and which leases there are. It may be
/// changed while all processes are stopped, so it is in no snapshot.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// By every consistent replica, as the switch says (FLAIR).
    Flair,
    /// By the leader, after a round to a quorum for each batch (Raft's ReadIndex).
    Raft,
    /// By the leader, as long as it has its lease (FLAIR calls it Opt. Raft).
    LeaderLease,
    /// By any replica: a follower asks the leader which index it must have applied (as etcd and TiKV do).
    FollowerReadIndex,
    /// By any replica: a follower that holds a lease, which each write revokes for its key group (FLAIR calls it FLeases).
    FollowerLease,
    /// By the only replica of the set, without any round: what replication costs is seen by it.
    Unreplicated,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Flair, Self::Raft, Self::LeaderLease, Self::FollowerReadIndex, Self::FollowerLease, Self::Unreplicated];

    /// As configurations have it.
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

    /// Whether each replica finds out itself whether it is up to date, so that the switch may send a READ to any.
    #[must_use]
    pub fn uses_any_replica(self) -> bool {
        matches!(self, Self::FollowerReadIndex | Self::FollowerLease)
    }

    /// Whether followers get READs.
    pub(super) fn uses_followers(self) -> bool {
        self == Self::Flair || self.uses_any_replica()
    }
}

/// Times of a set. They are part of its safety: all its replicas and switches must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often the leader speaks to its followers and to switches. Default 20 ms.
    pub heartbeat: Nanos,
    /// The lease of a session at its switch (T). Default 120 ms.
    pub session_lease: Nanos,
    /// The leader's lease (L), from the sending of a round that a quorum answered. Default 100 ms.
    pub leader_lease: Nanos,
    /// For how long a replica neither votes nor campaigns after it has heard a leader, and the least time before an election.
    /// Default 120 ms.
    pub promise: Nanos,
    /// By how much later each place of the set campaigns than the one before: so votes are rarely split. Default 25 ms.
    pub stagger: Nanos,
    /// Millionths by which the rates of two clocks may differ (ρ). Default 50,000: 5 %.
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
    /// A time of another machine's clock, at its longest by one's own: `time` (1 + ρ).
    #[must_use]
    pub fn with_drift(&self, time: Nanos) -> Nanos {
        time + time / 1_000_000 * self.drift_ppm + time % 1_000_000 * self.drift_ppm / 1_000_000 + 1
    }

    /// How long a session may live on at a switch after the last answer from there.
    #[must_use]
    pub fn fence(&self) -> Nanos {
        if planted(121) {
            return self.session_lease;
        }
        self.with_drift(self.session_lease)
    }
}

/// Identity, neighbours and bounds of a replica. [`ReplicaConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Names the store: replicas of another one are not listened to.
    pub cluster: u64,
    /// Which replica set.
    pub set: u16,
    /// Its own Raft id.
    pub id: u64,
    /// The members when the set was made. They matter only where a replica has no log yet. Empty: it waits to be added.
    pub initial: Vec<Member>,
    /// The set is made now: without files, this replica is one of its first members. Where this is not set, a replica that should
    /// have files and finds none does not start: it would have forgotten what it has acknowledged.
    pub founds: bool,
    /// Where one process makes the data of all first members: the numbers that it has drawn for their disks. Empty: the members learn
    /// each other's before the store begins.
    pub founders: BTreeMap<u64, u64>,
    /// Members that it has links to while it waits to be added.
    pub contacts: Vec<Member>,
    /// The set's switches, the preferred one first.
    pub switches: Vec<SocketAddr>,
    /// The set has 2^this key groups; fixed when the set was made. Default 12.
    pub kgroup_bits: u8,
    /// Seeds its random choices: jitter of elections.
    pub seed: u64,
    /// How reads are served. Default [`Mode::Flair`].
    pub mode: Mode,
    /// Times.
    pub timing: Timing,
    /// Client ids that may be open. Default 16,384.
    pub clients: usize,
    /// An id that was idle for this long may be given up, when there is no room for another. Default 1 min.
    pub client_idle: Nanos,
    /// Requests that may wait for an index. Default 65,536.
    pub waiting: usize,
    /// Bytes of keys and values in the store, with what they cost beside. Default 256 MiB, at most 512 MiB.
    pub store_bytes: usize,
    /// Bytes of log after which a snapshot is made. Default 32 MiB.
    pub snapshot_after: usize,
    /// Bytes that may wait for the disk; above it no write is taken. Default 64 MiB.
    pub unsafe_bytes: usize,
    /// A new member that has not caught up for so long is removed again. Default 10 min.
    pub learn_within: Nanos,
    /// How long a key group with a lost write stays unstable after the first READ that shows it. Default 20 ms.
    pub refresh_after: Nanos,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A set that tolerates no more failures than one replica less.
    #[error(
        "{0} initial replicas: take an odd number (1, 3, 5 or 7), an even one tolerates no more failures than one less"
    )]
    EvenReplicas(usize),
    /// Two members with the same id, place or address.
    #[error("two initial replicas have the same {what} {which}: name each replica once")]
    RepeatedReplica {
        /// Id, place or address.
        what: &'static str,
        /// Which one.
        which: String,
    },
    /// The replica itself is not among the initial members.
    #[error("this replica, id {0}, is not among the initial replicas: add it to them")]
    NotAmong(u64),
    /// More than one replica, in a mode that replicates nothing.
    #[error(
        "`reads` is unreplicated, which is for a set of exactly one replica, and this one has {0}: name one, or take another mode"
    )]
    Replicated(usize),
    /// No switch.
    #[error("`switches` is empty: name at least one switch, such as 127.0.0.1:7700")]
    NoSwitch,
    /// A number outside its range.
    #[error("`{name}` is {value}: set it to {range}")]
    OutOfRange {
        /// The field.
        name: &'static str,
        /// What it was set to.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
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

    /// Whether it can run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_members()?;
        if self.mode == Mode::Unreplicated && self.initial.len() != 1 {
            return Err(ConfigError::Replicated(self.initial.len()));
        }
        if self.switches.is_empty() {
            return Err(ConfigError::NoSwitch);
        }
        let timing = &self.timing;
        let in_range = |name, value, ok: bool, range| {
            if ok { Ok(()) } else { Err(ConfigError::OutOfRange { name, value, range }) }
        };
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
        in_range("waiting", self.waiting as u64, self.waiting > 0, "at least 1")
    }

    /// What all replicas of its set must have in common.
    pub(super) fn agreed(&self) -> Agreed {
        let client_idle_ms = self.client_idle / MS;
        let (store_bytes, clients) = (self.store_bytes as u64, self.clients as u64);
        Agreed { kgroup_bits: self.kgroup_bits, store_bytes, clients, client_idle_ms }
    }

    /// What all replicas of its set must have in common while they run.
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
            if usize::from(member.slot) >= REPLICAS_MAX {
                return Err(ConfigError::OutOfRange { name: "slot", value: slot, range: "0 to 7" });
            }
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
