//! A trial: a store, its work and its faults, as data. A run is a pure function of it.

use super::smaller;
use crate::check::{self, BadTrial, Common, Net, Pass, keep, keep_place};
use crate::store::{Late, Work};
use midflight_dataplane::store::ReplyCheck;
use midflight_endpoint::MS;
use midflight_wire::store::{Operation, REPLICAS_MAX};
use serde::{Deserialize, Serialize};

/// Ten minutes: the latest event and the longest duration.
const LONGEST_MS: u64 = 600_000;
/// Two clocks that differ from the world's by this, one each way, differ by less than the set's ρ, 5 %.
pub(super) const PPM_MAX: i32 = 24_000;

const ROGUE_MAX: u32 = 10_000;

/// All input of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Seed of all randomness in the world: identities, delays, losses.
    pub seed: u64,
    /// When all faults end.
    pub heal_ms: u64,
    /// The network outside of faults.
    pub network: Net,
    /// First members: 1, 3, 5 or 7.
    pub replicas: usize,
    /// Further replicas that may be added.
    #[serde(default)]
    pub outsiders: usize,
    /// 1 or 2, the preferred one first.
    pub switches: usize,
    /// The set.
    pub set: SetSpec,
    /// At least one.
    pub clients: Vec<ClientSpec>,
    /// The faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// Configuration of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetSpec {
    /// Key groups: 2^this.
    pub kgroup_bits: u8,
    /// Number of keys that clients use.
    pub keys: usize,
    /// How reads are served.
    pub mode: Mode,
    /// Which replies of followers pass, and whether through the switch.
    pub reply_check: ReplyCheck,
    /// Avoids the leader while writes are under way.
    pub avoids_leader: bool,
    /// Uses the asic engine.
    #[serde(default)]
    pub is_asic: bool,
    /// Maximum open client ids.
    pub client_ids: usize,
    /// An id that has been idle for this long may be evicted.
    pub client_idle_ms: u64,
    /// Bytes of log after which a replica takes a snapshot.
    pub snapshot_after: usize,
    /// Clock drift bound that the replicas assume (ρ), in parts per million.
    #[serde(default = "drift_ppm")]
    pub drift_ppm: u64,
    /// A new member that has not caught up within this time is removed.
    #[serde(default = "learn_ms")]
    pub learn_ms: u64,
}

fn drift_ppm() -> u64 {
    50_000
}

fn learn_ms() -> u64 {
    LONGEST_MS
}

/// How reads are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "as in `replica::Mode`")]
pub enum Mode {
    Flair,
    Raft,
    LeaderLease,
    #[serde(rename = "follower-readindex")]
    FollowerReadIndex,
    FollowerLease,
    Unreplicated,
}

/// A client process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Workers; each does one operation at a time.
    pub workers: u32,
    /// Operations of each worker.
    pub operations: u32,
    /// Longest pause after each operation.
    pub think_us: u64,
    /// Share of reads.
    pub reads: f64,
    /// Client ids used in parallel.
    pub lanes: usize,
}

/// A fault of a store.
pub type Fault = check::Fault<FaultKind>;

/// A node, by its place in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "they say it")]
pub enum Party {
    Switch(usize),
    Replica(usize),
    Client(usize),
}

/// Kinds of datagrams that a fault can delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named after the operations")]
pub enum Kind {
    Read,
    ReadReply,
    Write,
    WriteReply,
    Hello,
    Heartbeat,
    EndSession,
    State,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "a fault that docs/checking.md names, with its fields")]
pub enum FaultKind {
    /// All replicas lose power at once.
    PowerCut,
    /// Datagrams of one kind from one party are late, or repeated late.
    Late {
        /// The sender.
        party: Party,
        /// Their kind.
        kind: Kind,
        /// Maximum delay.
        by_ms: u64,
        /// Sent on time too.
        copies: bool,
    },
    /// A replica loses its disk; at the end it returns empty, under a new id, and is added to the set.
    Wipe(usize),
    /// A first replica loses its disk, and is restarted under its old id by mistake; at the end it returns as after a
    /// wipe.
    Refound {
        /// The replica.
        replica: usize,
        /// Started as a joining replica, not as one of a new store.
        joins: bool,
    },
    /// A replica's disk is slow.
    SlowDisk {
        /// The replica.
        replica: usize,
        /// Factor on its times.
        by: u32,
    },
    /// The leader must hand over to this replica.
    Transfer(usize),
    /// The operator wants this replica in the set from now on, and keeps requesting it.
    Join(usize),
    /// The operator wants it out from now on.
    Leave {
        /// The replica. It continues, and considers itself a member until it hears otherwise.
        replica: usize,
        /// At the end it loses its disk, and joins under a new id.
        returns: bool,
    },
    /// FLUSHDB at the leader.
    Flush,
    /// An additional client with valid cookies sends this many invalid requests: with a wrong hash, an unopened id, an
    /// unknown command, or fields that only switches write.
    Rogue(u32),
    /// A common fault.
    #[serde(untagged)]
    Common(Common<Party>),
}

impl From<Common<Party>> for FaultKind {
    fn from(common: Common<Party>) -> Self {
        Self::Common(common)
    }
}

impl FaultKind {
    pub(super) fn is_attack(&self) -> bool {
        matches!(self, Self::Rogue(_)) || check::FaultKind::common(self).is_some_and(Common::is_attack)
    }
}

impl check::FaultKind for FaultKind {
    type Party = Party;

    fn common(&self) -> Option<&Common<Party>> {
        if let Self::Common(common) = self { Some(common) } else { None }
    }

    fn without(&mut self, gone: Party) -> bool {
        match self {
            Self::Common(common) => common.without(gone),
            Self::Late { party, .. } => keep(party, gone),
            Self::Wipe(replica)
            | Self::Refound { replica, .. }
            | Self::SlowDisk { replica, .. }
            | Self::Transfer(replica)
            | Self::Join(replica)
            | Self::Leave { replica, .. } => keep_place(Party::Replica, replica, gone),
            Self::PowerCut | Self::Flush | Self::Rogue(_) => true,
        }
    }
}

impl check::Party for Party {
    fn kind(self) -> &'static str {
        match self {
            Self::Switch(_) => "switch",
            Self::Replica(_) => "replica",
            Self::Client(_) => "client",
        }
    }

    fn place(&mut self) -> &mut usize {
        match self {
            Self::Switch(place) | Self::Replica(place) | Self::Client(place) => place,
        }
    }
}

impl From<Kind> for Operation {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::Read,
            Kind::ReadReply => Self::ReadReply,
            Kind::Write => Self::Write,
            Kind::WriteReply => Self::WriteReply,
            Kind::Hello => Self::Hello,
            Kind::Heartbeat => Self::Heartbeat,
            Kind::EndSession => Self::EndSession,
            Kind::State => Self::State,
        }
    }
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Read,
        Self::ReadReply,
        Self::Write,
        Self::WriteReply,
        Self::Hello,
        Self::Heartbeat,
        Self::EndSession,
        Self::State,
    ];
}

impl ClientSpec {
    pub(super) fn work(&self) -> Work {
        let Self { workers, operations, think_us, reads, .. } = *self;
        Work { workers, operations, think: think_us * 1_000, reads }
    }
}

const LATE_SHARE: f64 = 0.5;

pub(super) fn late(kind: Kind, by_ms: u64, copies: bool) -> Late {
    Late { operation: kind.into(), by: by_ms * MS, copies, share: LATE_SHARE }
}

impl check::Trial for Trial {
    type FaultKind = FaultKind;
    const PASSES: &'static [Pass<Self>] = smaller::PASSES;

    check::kept_in_fields!();

    fn size(&self) -> String {
        let operations: u32 = self.clients.iter().map(|client| client.workers * client.operations).sum();
        let (faults, replicas, switches) = (self.faults.len(), self.places(), self.switches);
        format!("{faults} faults, {replicas} replicas, {switches} switches, {operations} operations")
    }

    fn validate(&self) -> Result<(), BadTrial> {
        let bad = |what: String| Err(BadTrial(what));
        if ![1, 3, 5, 7].contains(&self.replicas) {
            return bad(format!("{} replicas: use 1, 3, 5 or 7", self.replicas));
        }
        if self.places() > REPLICAS_MAX {
            return bad(format!("{} replicas and {} outsiders: use up to 8", self.replicas, self.outsiders));
        }
        if !(1..=2).contains(&self.switches) {
            return bad(format!("{} switches: use 1 or 2", self.switches));
        }
        if self.clients.is_empty() || self.clients.len() > 16 {
            return bad(format!("{} clients: use 1 to 16", self.clients.len()));
        }
        if self.heal_ms > LONGEST_MS {
            return bad(format!("heal_ms = {}: use at most {LONGEST_MS}", self.heal_ms));
        }
        if self.set.mode == Mode::Unreplicated && self.replicas != 1 {
            return bad(format!("mode unreplicated with {} replicas: use 1", self.replicas));
        }
        self.network.validate("network")?;
        let SetSpec { kgroup_bits, keys, client_ids, drift_ppm, learn_ms, .. } = self.set;
        let is_right = kgroup_bits <= 12
            && (1..=64).contains(&keys)
            && (1..=1024).contains(&client_ids)
            && drift_ppm <= 500_000
            && learn_ms <= LONGEST_MS;
        if !is_right {
            return bad(format!(
                "{:?}: use kgroup_bits up to 12, 1 to 64 keys, 1 to 1024 client_ids, drift_ppm up to 500000, learn_ms up to \
                 {LONGEST_MS}",
                self.set
            ));
        }
        for client in &self.clients {
            let is_right = (1..=16).contains(&client.workers)
                && client.operations <= 100_000
                && client.think_us <= 10_000_000
                && (0.0..=1.0).contains(&client.reads)
                && (1..=64).contains(&client.lanes);
            if !is_right {
                return bad(format!(
                    "{client:?}: use 1 to 16 workers, up to 100000 operations, think_us up to 10000000, reads 0 to 1, 1 to 64 lanes"
                ));
            }
        }
        self.faults.iter().try_for_each(|fault| self.validate_fault(fault))
    }
}

impl Trial {
    fn validate_fault(&self, fault: &Fault) -> Result<(), BadTrial> {
        let bad = |what: String| Err(BadTrial(format!("fault at {} ms: {what}", fault.at_ms)));
        if fault.at_ms > LONGEST_MS || fault.for_ms > LONGEST_MS {
            return bad(format!("use times up to {LONGEST_MS} ms"));
        }
        if fault.what.is_attack() && fault.at_ms + fault.for_ms > self.heal_ms {
            return bad(format!("an attack ends with the other faults: at {} ms", self.heal_ms));
        }
        let known = |party: Party| {
            if self.has(party) { Ok(()) } else { bad(format!("there is no {party:?}")) }
        };
        match &fault.what {
            FaultKind::Common(common) => common.validate(|party| self.has(party)).or_else(|BadTrial(why)| bad(why)),
            FaultKind::Late { by_ms, .. } if *by_ms > 60_000 => bad(format!("by_ms = {by_ms}: use up to 60000")),
            FaultKind::SlowDisk { by, .. } if *by > 1_000 => bad(format!("by = {by}: use up to 1000")),
            FaultKind::Late { party, .. } => known(*party),
            FaultKind::Wipe(replica)
            | FaultKind::Refound { replica, .. }
            | FaultKind::SlowDisk { replica, .. }
            | FaultKind::Transfer(replica)
            | FaultKind::Join(replica)
            | FaultKind::Leave { replica, .. } => known(Party::Replica(*replica)),
            FaultKind::Rogue(count) if *count > ROGUE_MAX => bad(format!("{count} requests: use up to {ROGUE_MAX}")),
            FaultKind::PowerCut | FaultKind::Flush | FaultKind::Rogue(_) => Ok(()),
        }
    }

    pub(super) fn places(&self) -> usize {
        self.replicas + self.outsiders
    }

    fn has(&self, party: Party) -> bool {
        match party {
            Party::Switch(n) => n < self.switches,
            Party::Replica(n) => n < self.places(),
            Party::Client(n) => n < self.clients.len(),
        }
    }
}
