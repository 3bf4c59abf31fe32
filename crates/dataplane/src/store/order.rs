//! The operator's orders: add, remove or change a replica set.

use midflight_endpoint::Nanos;
use midflight_wire::Address;
use midflight_wire::store::REPLICAS_MAX;
use std::net::SocketAddr;
use std::str::FromStr;
use zerocopy::FromZeros;

/// Which followers' replies go to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum ReplyCheck {
    /// Those whose session and SEQ are still the key group's.
    #[default]
    Strict = 0,
    /// All: a read is right if its key group was stable when it passed.
    Relaxed = 1,
    /// All, and most bypass the switch: the replica sends them to the client at the client's request.
    Direct = 2,
}

/// How a consistent replica is chosen for a read: a combination of two mechanisms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Policy {
    /// Any, uniformly.
    Random = 0,
    /// Not the leader while writes are in flight, if there is another.
    #[default]
    LeaderAvoidance = 1,
    /// Any, in proportion to the weights that the leader derives from their loads.
    LoadAware = 2,
    /// Both mechanisms.
    LoadAwareLeaderAvoidance = 3,
}

impl ReplyCheck {
    /// All values by number.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Relaxed, Self::Direct];

    /// Name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Relaxed => "relaxed",
            Self::Direct => "direct",
        }
    }
}

impl FromStr for ReplyCheck {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|check| check.name() == name)
            .ok_or_else(|| format!("{name:?} is no reply check: say {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl Policy {
    /// All values by number.
    pub const ALL: [Self; 4] = [Self::Random, Self::LeaderAvoidance, Self::LoadAware, Self::LoadAwareLeaderAvoidance];

    /// Whether the leader gets no reads of stable key groups while writes are in flight.
    #[must_use]
    pub fn avoids_leader(self) -> bool {
        self as u8 & Self::LeaderAvoidance as u8 != 0
    }

    /// Whether weights count.
    #[must_use]
    pub fn is_load_aware(self) -> bool {
        self as u8 & Self::LoadAware as u8 != 0
    }

    /// Name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::LeaderAvoidance => "leader-avoidance",
            Self::LoadAware => "load-aware",
            Self::LoadAwareLeaderAvoidance => "load-aware-leader-avoidance",
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| format!("{name:?} is no policy: say {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A replica set to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSet {
    /// Its number in packets.
    pub number: u16,
    /// Random, never used before, not 0.
    pub incarnation: u64,
    /// T: how long a heartbeat's echo keeps a session alive. 0: the configured default.
    pub lease_ns: Nanos,
    /// The set has 2^this key groups.
    pub kgroup_bits: u8,
    /// Which replies go to the client.
    pub reply_check: ReplyCheck,
    /// How a replica is chosen for a read.
    pub policy: Policy,
    /// Replicas that may say HELLO before there is a session; at most eight count.
    pub replicas: Vec<SocketAddr>,
}

/// Outcome of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Done.
    Done = 0,
    /// The number is taken.
    Exists = 1,
    /// The configured number of sets is reached.
    NoRoom = 2,
    /// A value is out of bounds.
    Bad = 3,
    /// No set has this number.
    Unknown = 4,
    /// The lease or the number of key groups would change, which is not possible.
    Frozen = 5,
}

/// An order and its progress: `struct mf_store_order`. A call clears a bounded number of key groups, so an order takes several.
#[repr(C)]
#[derive(Clone, Copy, FromZeros)]
pub struct SetOrder {
    pub(super) incarnation: u64,
    pub(super) lease_ns: u64,
    next: u32,
    set: u16,
    what: u8,
    outcome: u8,
    kgroup_bits: u8,
    reply_check: u8,
    policy: u8,
    place: u8,
    replicas: [Address; REPLICAS_MAX],
    reserved: u32,
}

/// `enum mf_set_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum What {
    Add = 0,
    Remove = 1,
    Change = 2,
}

/// An order's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Add this set.
    Add(NewSet),
    /// Remove the set of this number.
    Remove(u16),
    /// Change a set's reply check, policy, and replicas that may say HELLO. Its incarnation stays.
    Change(NewSet),
}

impl std::fmt::Debug for SetOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetOrder").field("set", &self.set).field("what", &self.what).finish_non_exhaustive()
    }
}

impl SetOrder {
    /// An order that adds a set.
    #[must_use]
    pub fn add(set: &NewSet) -> Self {
        let mut order = Self {
            incarnation: set.incarnation,
            lease_ns: set.lease_ns,
            set: set.number,
            what: What::Add as u8,
            kgroup_bits: set.kgroup_bits,
            reply_check: set.reply_check as u8,
            policy: set.policy as u8,
            ..Self::new_zeroed()
        };
        order.replicas.iter_mut().zip(&set.replicas).for_each(|(own, &given)| *own = given.into());
        order
    }

    /// An order that removes the set of this number.
    #[must_use]
    pub fn remove(number: u16) -> Self {
        Self { set: number, what: What::Remove as u8, ..Self::new_zeroed() }
    }

    /// An order that changes a serving set: reply check, policy, and replicas that may say HELLO.
    #[must_use]
    pub fn change(set: &NewSet) -> Self {
        Self { what: What::Change as u8, ..Self::add(set) }
    }

    /// The order's request; `None` if the order is invalid.
    #[must_use]
    pub fn wish(&self) -> Option<Wish> {
        match self.what {
            what if what == What::Add as u8 => self.named().map(Wish::Add),
            what if what == What::Remove as u8 => Some(Wish::Remove(self.set)),
            what if what == What::Change as u8 => self.named().map(Wish::Change),
            _ => None,
        }
    }

    fn named(&self) -> Option<NewSet> {
        let reply_check = ReplyCheck::ALL.get(usize::from(self.reply_check));
        let policy = Policy::ALL.get(usize::from(self.policy));
        let replicas = self.replicas.iter().map(|&address| SocketAddr::from(address));
        Some(NewSet {
            number: self.set,
            incarnation: self.incarnation,
            lease_ns: self.lease_ns,
            kgroup_bits: self.kgroup_bits,
            reply_check: *reply_check?,
            policy: *policy?,
            replicas: replicas.filter(|address| address.port() != 0).collect(),
        })
    }

    /// The number of its set.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.set
    }

    /// Its outcome, valid once it is done.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.outcome {
            0 => Outcome::Done,
            1 => Outcome::Exists,
            2 => Outcome::NoRoom,
            4 => Outcome::Unknown,
            5 => Outcome::Frozen,
            _ => Outcome::Bad,
        }
    }

    /// Sets its outcome, for engines in Rust.
    pub fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome as u8;
    }
}
