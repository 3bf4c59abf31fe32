//! The table `[store]`: switches, replicas and clients of a store read the same file.

use crate::config::{ProgramTable, within_time};
use crate::file::{Table, within};
use midflight_dataplane::duration::duration;
use midflight_dataplane::store::{NewSet, Policy, ReplyCheck, StoreConfig};
use midflight_endpoint::Nanos;
use midflight_store::replica::Mode;
use midflight_wire::store::{KGROUP_BITS_MAX, REPLICAS_MAX};
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::Duration;

/// Bounds of a switch of replica sets, and the sets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreTable {
    /// Sets that a switch has room for.
    pub sets: u32,
    /// Each has up to 2^this key groups.
    pub kgroup_bits: u8,
    /// Lifetime of a client's cookie.
    #[serde(deserialize_with = "duration")]
    pub cookie: Duration,
    /// `[[store.set]]`
    pub set: Vec<SetTable>,
}

/// A replica set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetTable {
    /// The number by which requests name it.
    pub number: u16,
    /// Names the store: its replicas accept no others.
    pub cluster: u64,
    /// Where its switches take requests, the preferred one first.
    pub switches: Vec<SocketAddr>,
    /// The initial replicas; a replica's place in the list is its slot in the set.
    pub replicas: Vec<ReplicaTable>,
    /// It has 2^this key groups.
    #[serde(default = "kgroup_bits")]
    pub kgroup_bits: u8,
    /// How reads are served.
    #[serde(default)]
    pub reads: Mode,
    /// Which replies of followers pass.
    #[serde(default)]
    pub reply_check: ReplyCheck,
    /// How a consistent replica is chosen for a read.
    #[serde(default)]
    pub policy: Policy,
    /// `[store.set.timing]`
    #[serde(default)]
    pub timing: TimingTable,
    /// `[store.set.bounds]`
    #[serde(default)]
    pub bounds: BoundsTable,
}

/// A replica of a set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaTable {
    /// Its Raft id.
    pub id: u64,
    /// UDP: for switches.
    pub address: SocketAddr,
    /// TCP: for the other replicas.
    pub links: SocketAddr,
}

/// Times of a set. All its replicas and switches must have the same.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimingTable {
    /// Interval at which the leader sends to followers and switches.
    #[serde(deserialize_with = "duration")]
    pub heartbeat: Duration,
    /// The lease of a session at its switch (T).
    #[serde(deserialize_with = "duration")]
    pub session_lease: Duration,
    /// The leader's lease (L).
    #[serde(deserialize_with = "duration")]
    pub leader_lease: Duration,
    /// Time after a leader's message in which a replica neither votes nor campaigns.
    #[serde(deserialize_with = "duration")]
    pub promise: Duration,
    /// Delay of each slot's campaign after the previous slot's.
    #[serde(deserialize_with = "duration")]
    pub stagger: Duration,
    /// Millionths by which the rates of two clocks may differ (ρ).
    pub drift_ppm: u32,
}

/// Bounds of a set's replicas. The first three are frozen when the set is made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoundsTable {
    /// Bytes of keys and values, including the overhead of each key.
    pub store_bytes: u64,
    /// Client ids that may be open.
    pub clients: u32,
    /// An id that was unused for this long may be given up.
    #[serde(deserialize_with = "duration")]
    pub client_idle: Duration,
    /// Requests that may wait for an index, and answers.
    pub waiting: u32,
    /// Bytes that may wait for the disk.
    pub unsafe_bytes: u64,
    /// Bytes of log after which a snapshot is made.
    pub snapshot_after: u64,
}

impl Default for BoundsTable {
    fn default() -> Self {
        Self {
            store_bytes: 256 << 20,
            clients: 16_384,
            client_idle: Duration::from_secs(60),
            waiting: 65_536,
            unsafe_bytes: 64 << 20,
            snapshot_after: 32 << 20,
        }
    }
}

impl Default for StoreTable {
    fn default() -> Self {
        let bounds = StoreConfig::default();
        let cookie = Duration::from_nanos(bounds.cookie_ns);
        Self { sets: bounds.sets, kgroup_bits: kgroup_bits(), cookie, set: Vec::new() }
    }
}

impl Default for TimingTable {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            heartbeat: ms(20),
            session_lease: ms(120),
            leader_lease: ms(100),
            promise: ms(120),
            stagger: ms(25),
            drift_ppm: 50_000,
        }
    }
}

fn kgroup_bits() -> u8 {
    StoreConfig::default().kgroup_bits as u8
}

impl StoreTable {
    /// The bounds, as the program needs them.
    #[must_use]
    pub fn bounds(&self) -> StoreConfig {
        StoreConfig {
            sets: self.sets,
            kgroup_bits: self.kgroup_bits.into(),
            cookie_ns: nanos(self.cookie),
            ..StoreConfig::default()
        }
    }

    /// The set of this number; without one, the only set.
    ///
    /// # Errors
    /// If there is none, or it must be named.
    pub fn find(&self, number: Option<u16>) -> Result<&SetTable, String> {
        let numbers = || self.set.iter().map(|set| set.number.to_string()).collect::<Vec<_>>().join(", ");
        match (number, self.set.as_slice()) {
            (_, []) => Err("the configuration has no replica set: add a table [[store.set]]".into()),
            (None, [only]) => Ok(only),
            (None, _) => Err(format!("the configuration has the sets {}: choose one", numbers())),
            (Some(number), sets) => sets
                .iter()
                .find(|set| set.number == number)
                .ok_or_else(|| format!("the configuration has no set {number}, but {}", numbers())),
        }
    }
}

impl SetTable {
    /// Set 1 on this machine alone: switches on `port` and every 100th after it, replicas on every tenth after `port`, with their links one
    /// above.
    #[must_use]
    pub fn on_loopback(cluster: u64, replicas: u16, switches: u16, port: u16) -> Self {
        let at = |offset: u16| SocketAddr::from(([127, 0, 0, 1], port.saturating_add(offset)));
        let replica = |id: u16| ReplicaTable { id: id.into(), address: at(10 * id), links: at(10 * id + 1) };
        Self {
            number: 1,
            cluster,
            switches: (0..switches).map(|i| at(100 * i)).collect(),
            replicas: (1..=replicas).map(replica).collect(),
            kgroup_bits: kgroup_bits(),
            reads: Mode::default(),
            reply_check: ReplyCheck::default(),
            policy: Policy::default(),
            timing: TimingTable::default(),
            bounds: BoundsTable::default(),
        }
    }

    /// A table of the configuration: the keys without defaults, and how reads are served.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let switches: Vec<_> = self.switches.iter().map(|switch| format!("\"{switch}\"")).collect();
        let replica = |ReplicaTable { id, address, links }: &ReplicaTable| {
            format!("  {{ id = {id}, address = \"{address}\", links = \"{links}\" }},\n")
        };
        format!(
            "[[store.set]]\nnumber = {}\ncluster = {}\nswitches = [{}]\nreads = \"{}\"\npolicy = \"{}\"\nreply_check = \"{}\"\n\
             replicas = [\n{}]\n",
            self.number,
            self.cluster,
            switches.join(", "),
            self.reads.name(),
            self.policy.name(),
            self.reply_check.name(),
            self.replicas.iter().map(replica).collect::<String>()
        )
    }

    /// The set for a switch. `incarnation` is drawn at random for each start.
    #[must_use]
    pub fn at_switch(&self, incarnation: u64) -> NewSet {
        NewSet {
            number: self.number,
            incarnation: incarnation.max(1),
            lease_ns: nanos(self.timing.session_lease),
            kgroup_bits: self.kgroup_bits,
            reply_check: self.reply_check,
            policy: self.policy,
            replicas: self.replicas.iter().map(|replica| replica.address).collect(),
        }
    }

    fn validate(&self, bits_max: u8) -> Result<(), String> {
        let key = |name: &str| format!("set {}: {name}", self.number);
        within(&key("kgroup_bits"), self.kgroup_bits, 0..=bits_max)?;
        within(&key("cluster"), self.cluster, 1..=u64::MAX)?;
        self.validate_addresses()?;
        let replicas = self.replicas.len();
        if self.reads == Mode::Unreplicated && replicas != 1 {
            return Err(format!(
                "{} has {replicas}, but reads = \"unreplicated\" is for exactly one: name one, or take another mode",
                key("replicas")
            ));
        }
        if replicas > REPLICAS_MAX || replicas.is_multiple_of(2) {
            return Err(format!("{} has {replicas}: name 1, 3, 5 or 7", key("replicas")));
        }
        for (i, replica) in self.replicas.iter().enumerate() {
            let before = &self.replicas[..i];
            let is_twice = before.iter().any(|other| {
                other.id == replica.id || other.address == replica.address || other.links == replica.links
            });
            if is_twice || replica.id == 0 {
                return Err(format!(
                    "{}: id {} or one of its addresses is there twice, or is 0: name each replica once",
                    key("replicas"),
                    replica.id
                ));
            }
        }
        self.timing.validate(&key("timing"))?;
        self.bounds.validate(&key("bounds"))
    }
}

impl BoundsTable {
    fn validate(&self, of: &str) -> Result<(), String> {
        let key = |name: &str| format!("{of}.{name}");
        within(&key("store_bytes"), self.store_bytes, 1 << 20..=512 << 20)?;
        within(&key("clients"), self.clients, 1..=16_384)?;
        within_time(&key("client_idle"), self.client_idle, "1m", "7d")?;
        within(&key("waiting"), self.waiting, 1..=1 << 20)?;
        within(&key("unsafe_bytes"), self.unsafe_bytes, 4 << 20..=1 << 30)?;
        within(&key("snapshot_after"), self.snapshot_after, 1 << 20..=1 << 30)
    }
}

impl TimingTable {
    fn validate(&self, of: &str) -> Result<(), String> {
        let key = |name: &str| format!("{of}.{name}");
        within_time(&key("heartbeat"), self.heartbeat, "1ms", "1s")?;
        within_time(&key("session_lease"), self.session_lease, "2ms", "1m")?;
        within_time(&key("leader_lease"), self.leader_lease, "2ms", "1m")?;
        within_time(&key("promise"), self.promise, "2ms", "1m")?;
        within_time(&key("stagger"), self.stagger, "0s", "10s")?;
        within(&key("drift_ppm"), self.drift_ppm, 0..=500_000)?;
        if self.session_lease < 2 * self.heartbeat || self.leader_lease < 2 * self.heartbeat {
            return Err(format!("{of}: session_lease and leader_lease are at least two heartbeats"));
        }
        let lease = self.leader_lease.as_nanos();
        if self.promise.as_nanos() * 1_000_000 <= lease * (1_000_000 + u128::from(self.drift_ppm)) {
            return Err(format!("{of}: promise must be longer than leader_lease with its drift"));
        }
        Ok(())
    }
}

impl ProgramTable for StoreTable {
    const NAME: &'static str = "store";
    const DEFAULT_TOML: &'static str = include_str!("store.toml");
    const EXAMPLE: &'static str = "`midflight store init` prints a file to start from";

    fn read(table: Table<'_>) -> Result<Self, toml::de::Error> {
        table.rest()
    }

    fn validate(&self) -> Result<(), String> {
        within("store.sets", self.sets, 1..=64)?;
        within("store.kgroup_bits", self.kgroup_bits, 0..=KGROUP_BITS_MAX)?;
        within_time("store.cookie", self.cookie, "50ms", "1h")?;
        if self.set.len() > self.sets as usize {
            return Err(format!("{} tables [[store.set]], but store.sets = {}: raise it", self.set.len(), self.sets));
        }
        for (i, set) in self.set.iter().enumerate() {
            if self.set[..i].iter().any(|other| other.number == set.number) {
                return Err(format!("two tables [[store.set]] have the number {}: give each its own", set.number));
            }
            set.validate(self.kgroup_bits)?;
        }
        Ok(())
    }
}

pub(super) fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::path::Path;

    const SET: &str = r#"
[[store.set]]
number = 1
cluster = 42
switches = ["10.0.0.1:7700", "10.0.0.2:7700"]
replicas = [
  { id = 1, address = "10.0.0.11:7710", links = "10.0.0.11:7711" },
  { id = 2, address = "10.0.0.12:7710", links = "10.0.0.12:7711" },
  { id = 3, address = "10.0.0.13:7710", links = "10.0.0.13:7711" },
]
"#;

    fn parse(text: &str) -> Result<StoreTable, String> {
        let config = Config::<StoreTable>::parse(text, Path::new("store.toml"));
        config.map(|config| config.program).map_err(|error| error.to_string())
    }

    #[test]
    fn the_printed_default_is_the_default() {
        assert_eq!(parse(&Config::<StoreTable>::default_toml()), Ok(StoreTable::default()));
        assert_eq!(parse(""), Ok(StoreTable::default()));
    }

    #[test]
    fn a_set_is_read_with_its_defaults() {
        let table = parse(&format!("{SET}timing = {{ heartbeat = \"10ms\" }}\nreads = \"leader-lease\"\n")).unwrap();
        let set = table.find(None).unwrap();
        assert_eq!((set.kgroup_bits, set.policy, set.reads), (12, Policy::LeaderAvoidance, Mode::LeaderLease));
        assert_eq!(set.at_switch(7).lease_ns, 120_000_000);
        assert_eq!(table.find(Some(2)).unwrap_err(), "the configuration has no set 2, but 1");
    }

    #[test]
    fn a_policy_has_one_name() {
        for policy in Policy::ALL {
            let table = parse(&format!("{SET}policy = \"{}\"\n", policy.name())).unwrap();
            assert_eq!((table.set[0].policy, policy.name().parse()), (policy, Ok(policy)));
        }
        let wrong = parse(&format!("{SET}policy = \"least-loaded\"\n")).unwrap_err();
        assert!(wrong.contains("`load-aware-leader-avoidance`"), "{wrong}");
    }

    #[test]
    fn a_set_is_written_as_it_is_read() {
        let usual = SetTable::on_loopback(42, 3, 2, 7700);
        let (reads, policy, reply_check) = (Mode::LeaderLease, Policy::LoadAware, ReplyCheck::Direct);
        let other = SetTable { reads, policy, reply_check, ..usual.clone() };
        for set in [usual, other] {
            assert_eq!(parse(&set.to_toml()).unwrap().set, [set]);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, part) in [
            ("number = 1", "number = 1\nkgroup_bits = 13", "set 1: kgroup_bits = 13: must be 0 to 12"),
            ("id = 2", "id = 1", "set 1: replicas: id 1 or one of its addresses is there twice"),
            (
                "number = 1",
                "number = 1\nreads = \"unreplicated\"",
                "set 1: replicas has 3, but reads = \"unreplicated\" is for",
            ),
            ("number = 1", "number = 1\nreads = \"quorum\"", "`follower-readindex`, `follower-lease`, `unreplicated`"),
            ("10.0.0.12:7711", "10.0.0.11:7711", "set 1: replicas: id 2 or one of its addresses is there twice"),
            ("  { id = 3, address = \"10.0.0.13:7710\", links = \"10.0.0.13:7711\" },\n", "", "set 1: replicas has 2"),
            ("\"10.0.0.1:7700\", \"10.0.0.2:7700\"", "", "set 1: switches has 0 addresses: name 1 to 16"),
            ("10.0.0.2:7700", "10.0.0.1:7700", "set 1: switches: 10.0.0.1:7700 is there twice"),
            ("10.0.0.2:7700", "10.0.0.11:7710", "set 1: switches: 10.0.0.11:7710 is a replica's address"),
            ("10.0.0.2:7700", "[fd00::2]:7700", "[fd00::2]:7700 is of another version of IP than 10.0.0.1:7700"),
            ("10.0.0.12:7710", "0.0.0.0:7710", "set 1: replicas: 0.0.0.0:7710 is every address of a machine"),
            ("10.0.0.12:7711", "10.0.0.12:0", "set 1: replicas: 10.0.0.12:0 has port 0"),
            ("10.0.0.13:7710", "224.0.0.1:7710", "set 1: replicas: 224.0.0.1:7710 is no single machine's address"),
            ("10.0.0.1:7700", "255.255.255.255:7700", "set 1: switches: 255.255.255.255:7700 is no single"),
            ("number = 1", "number = 1\ntiming = { promise = \"105ms\" }", "set 1: timing: promise must be longer"),
            (
                "number = 1",
                "number = 1\nbounds = { store_bytes = 5 }",
                "set 1: bounds.store_bytes = 5: must be 1048576 to",
            ),
            (
                "number = 1",
                "number = 1\nbounds = { clients = 20000 }",
                "set 1: bounds.clients = 20000: must be 1 to 16384",
            ),
            (
                "number = 1",
                "number = 1\nbounds = { client_idle = \"1s\" }",
                "set 1: bounds.client_idle = 1s: must be \"1m\"",
            ),
            ("number = 1", "number = 1\nbounds = { queue = 1 }", "unknown field `queue`"),
            ("cluster = 42", "clusters = 42", "unknown field `clusters`"),
        ] {
            let error = parse(&SET.replace(from, to)).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert!(parse(&format!("{SET}{SET}")).unwrap_err().contains("two tables [[store.set]] have the number 1"));
    }
}
