//! One run of the evaluation: its input, as data, and its result.

use crate::cell::Percentiles;
use midflight_cache::select::{Algorithm, CANDIDATES_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A network of clients and servers. Defaults to the paper's default with NetRS-ILP (section V-A).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// Where replicas are selected.
    pub placement: Placement,
    /// How replicas are selected.
    pub selector: Selects,
    /// Network between clients and servers; `None`, written `false`: no delays.
    #[serde(with = "or_false")]
    pub network: Option<Network>,
    /// Number of reads.
    pub requests: u32,
    /// Number of clients (500).
    pub clients: u32,
    /// Share of requests from the first fifth of the clients (0.2: all alike).
    pub of_first_fifth: f64,
    /// t_kv·A/(N_s·N_p): request rate relative to the capacity if all servers were always slow (0.9). With a range of 3 the real capacity
    /// is double that.
    pub utilisation: f64,
    /// Keys requested.
    pub keys: Keyspace,
    /// How intervals between requests are drawn.
    pub arrivals: Arrivals,
    /// N_s: number of servers (100).
    pub servers: u16,
    /// N_p: requests each server processes at a time (4).
    pub slots: u16,
    /// t_kv: mean service time of a slow server, in microseconds (4,000).
    pub service_us: u32,
    /// d: factor by which fast servers are faster (3).
    pub range: f64,
    /// Milliseconds for which a server keeps its speed (50).
    pub interval_ms: u32,
    /// Start with NetRS-ToR and change to `placement` at this time, in milliseconds.
    pub change_at_ms: Option<u32>,
    /// Seed of all randomness. Cells that differ only in placement or selector have the same requests and service times.
    pub seed: u64,
}

/// TOML has no null to say that there is no network.
mod or_false {
    use super::Network;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "network must be a table of its keys, or false")]
    enum Written {
        Is(bool),
        Network(Network),
    }

    pub(super) fn serialize<S: Serializer>(network: &Option<Network>, serializer: S) -> Result<S::Ok, S::Error> {
        match network {
            Some(network) => network.serialize(serializer),
            None => serializer.serialize_bool(false),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Network>, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Is(false) => Ok(None),
            Written::Is(true) => Err(de::Error::custom("network must be a table of its keys, or false")),
            Written::Network(network) => Ok(Some(network)),
        }
    }
}

/// Where replicas are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// At each client: CliRS.
    Clients,
    /// At the operator of each client's rack: NetRS-ToR.
    Tor,
    /// By the integer program: NetRS-ILP, with the traffic that monitors count in a short run of NetRS-ToR.
    #[default]
    Ilp,
    /// The paper's example: 2 operators on aggregation switches, one for each of the first two pods, and 6 on core switches, which the
    /// other racks use round robin.
    Example,
}

/// A selector by name: a real one, or the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Selects {
    /// A selector that could be real.
    Really(Algorithm),
    /// A selector that knows all servers' true states.
    Oracle,
}

/// Delays between clients and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Ports per switch of the fat-tree (16: 1,024 hosts).
    pub arity: u32,
    /// Delay of a link between switches, in nanoseconds (30,000).
    pub trunk_ns: u32,
    /// Delay of a host's link, in nanoseconds (30,000; not in the paper).
    pub host_ns: u32,
    /// From a switch to its accelerator and back, in nanoseconds (2,500).
    pub accelerator_way_ns: u32,
    /// Accelerator time per packet, sequentially, in nanoseconds (5,000).
    pub accelerator_ns: u32,
    /// Whether copies of answers take accelerator time and count in plans; not in the paper's equation (6).
    pub counts_copies: bool,
    /// E in thousandths: extra forwardings that plans may add, relative to all requests (200).
    pub extra_hops_per_mille: u32,
    /// U in thousandths: share of accelerator time that plans may use (500).
    pub accelerator_use_per_mille: u32,
}

/// Distribution of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keyspace {
    /// 10 million keys with Zipf probabilities (0.99), on 3 servers each by consistent hashing with 100 points per server.
    #[default]
    Zipf,
    /// Distinct keys, and equal parts of the ring.
    Even,
}

/// How times are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// A Poisson process; servers change their speeds independently.
    #[default]
    Exact,
    /// As in C3's public simulator: requests at whole milliseconds, and all servers change together.
    Grid,
}

/// Operators in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RsNodes {
    /// On core switches.
    pub core: u32,
    /// On aggregation switches.
    pub aggregation: u32,
    /// On rack switches.
    pub tor: u32,
}

impl RsNodes {
    /// Total on all tiers.
    #[must_use]
    pub fn all(self) -> u32 {
        self.core + self.aggregation + self.tor
    }
}

/// Result of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// From a request's arrival at its client to its answer there, without the first twentieth.
    pub latency: Percentiles,
    /// Operators in use at the end; zero if clients select.
    pub rsnodes: RsNodes,
    /// Lower bound for any plan.
    pub rsnodes_bound: Option<u32>,
    /// Mean number of switch-to-switch links per request beyond the shortest path; answers take the same path.
    pub extra_hops: f64,
    /// Share of time the busiest accelerator is busy.
    pub accelerator_busy: f64,
    /// Requests delayed by rate control.
    pub waited: u64,
    /// If the placement changes: mean latency in milliseconds by arrival, in buckets of [`BUCKET_MS`].
    pub over_time_ms: Vec<f64>,
    /// Simulated events.
    pub events: u64,
    /// Wall time in milliseconds: the only number that differs between runs.
    pub wall_ms: f64,
}

/// One in this many requests is warm-up, whose latencies are not measured.
pub(super) const STARTING: usize = 20;

/// Bucket width of results over time, in milliseconds.
pub const BUCKET_MS: u64 = 20;

impl CellResult {
    /// Without wall time: identical in every run.
    #[must_use]
    pub fn deterministic(&self) -> Self {
        Self { wall_ms: 0.0, ..self.clone() }
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            placement: Placement::Ilp,
            selector: Selects::Really(Algorithm::C3),
            network: Some(Network::default()),
            requests: 600_000,
            clients: 500,
            of_first_fifth: 0.2,
            utilisation: 0.9,
            keys: Keyspace::Zipf,
            arrivals: Arrivals::Exact,
            servers: 100,
            slots: 4,
            service_us: 4_000,
            range: 3.0,
            interval_ms: 50,
            change_at_ms: None,
            seed: 1,
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            arity: 16,
            trunk_ns: 30_000,
            host_ns: 30_000,
            accelerator_way_ns: 2_500,
            accelerator_ns: 5_000,
            counts_copies: false,
            extra_hops_per_mille: 200,
            accelerator_use_per_mille: 500,
        }
    }
}

impl Cell {
    /// A: requests a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.utilisation * f64::from(self.servers) * f64::from(self.slots) / f64::from(self.service_us) * 1e6
    }

    /// Checks that all fields are valid.
    ///
    /// # Errors
    /// Says which field is invalid and what is allowed.
    pub fn check(&self) -> Result<(), CellError> {
        let must = |holds: bool, what: &str| if holds { Ok(()) } else { Err(CellError::Bad(what.into())) };
        let within = |value: f64, low: f64, high: f64| value > low && value <= high;
        must((1..=100_000_000).contains(&self.requests), "requests must be 1 to 100,000,000")?;
        must((1..=100_000).contains(&self.clients), "clients must be 1 to 100,000")?;
        must(within(self.of_first_fifth, 0.0, 1.0), "of_first_fifth must be above 0 and at most 1")?;
        must(within(self.utilisation, 0.0, 4.0), "utilisation must be above 0 and at most 4")?;
        must((3..=10_000).contains(&self.servers), "servers must be 3 to 10,000: a key has three")?;
        must((1..=1_024).contains(&self.slots), "slots must be 1 to 1,024")?;
        must((1..=10_000_000).contains(&self.service_us), "service_us must be 1 to 10,000,000")?;
        must((1.0..=1e3).contains(&self.range), "range must be 1 to 1,000")?;
        must((1..=60_000).contains(&self.interval_ms), "interval_ms must be 1 to 60,000")?;
        let seconds = f64::from(self.requests) / self.per_second();
        must(seconds <= LONGEST_S, "requests would come for more than 100,000 s: fewer, or a higher utilisation")?;
        if let Some(ms) = self.change_at_ms {
            must(self.placement != Placement::Clients, "change_at_ms: the placement clients is not changed to")?;
            must(f64::from(ms) < seconds * 1e3, "change_at_ms must be before the last request")?;
            must(seconds <= 1e3, "where the placement changes, requests must come for 1,000 s at most")?;
        }
        let Some(network) = &self.network else {
            let is_flat = self.placement == Placement::Clients;
            return must(is_flat, "without a network, the placement is clients");
        };
        must(
            (4..=64).contains(&network.arity) && network.arity.is_multiple_of(2),
            "network.arity must be even, from 4 to 64",
        )?;
        let hosts = network.arity.pow(3) / 4;
        let parties = self.clients + u32::from(self.servers);
        must(parties <= hosts, &format!("{parties} clients and servers, but {hosts} hosts (network.arity)"))?;
        let is_example = self.placement != Placement::Example || network.arity >= 6;
        must(is_example, "the placement example needs network.arity 6 or more")?;
        must(network.extra_hops_per_mille <= 10_000, "network.extra_hops_per_mille must be at most 10,000")?;
        must(
            (1..=1_000).contains(&network.accelerator_use_per_mille),
            "network.accelerator_use_per_mille must be 1 to 1,000",
        )?;
        must(network.accelerator_ns >= 1, "network.accelerator_ns must be at least 1")
    }

    /// Memory a run needs, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let racks = self.network.map_or(0, |network| network.arity * network.arity / 2);
        let selectors = if self.placement == Placement::Clients { self.clients } else { racks };
        u64::from(self.requests) * 120 + u64::from(selectors) * u64::from(self.servers) * 256
    }
}

/// Servers draw their speeds for the whole run.
const LONGEST_S: f64 = 1e5;

/// Why a cell cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A field is invalid.
    #[error("{0}")]
    Bad(String),
    /// No plan serves all racks.
    #[error(
        "no plan serves all racks within the limits: raise network.extra_hops_per_mille or accelerator_use_per_mille, or lower utilisation"
    )]
    NoPlan,
    /// This build has no solver.
    #[error(
        "the placement ilp needs a build with the ILP: install cmake, g++ and libclang-dev, and build with `make` again"
    )]
    NoIlp,
}

impl fmt::Display for Selects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Really(algorithm) => algorithm.fmt(f),
            Self::Oracle => f.pad("oracle"),
        }
    }
}

impl From<Selects> for String {
    fn from(selects: Selects) -> Self {
        selects.to_string()
    }
}

impl TryFrom<String> for Selects {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name.as_str() {
            "oracle" => Ok(Self::Oracle),
            name => name.parse().map(Self::Really).map_err(|error| format!("{error}, oracle")),
        }
    }
}

pub(super) const REPLICATION: usize = 3;
const _: () = assert!(REPLICATION <= CANDIDATES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_papers() {
        let cell = Cell::default();
        assert_eq!(cell.check(), Ok(()));
        assert!((cell.per_second() - 90_000.0).abs() < 1e-6);
    }

    #[test]
    fn bad_cells_are_refused_by_name() {
        let flat = || Cell { network: None, placement: Placement::Clients, ..Cell::default() };
        let cells: [(Cell, &str); 11] = [
            (Cell { clients: 1_000, ..Cell::default() }, "1024 hosts"),
            (Cell { utilisation: 0.0, ..Cell::default() }, "utilisation"),
            (Cell { utilisation: f64::NAN, ..Cell::default() }, "utilisation"),
            (Cell { service_us: 0, ..Cell::default() }, "service_us"),
            (Cell { utilisation: 1e-300, ..Cell::default() }, "100,000 s"),
            (Cell { utilisation: 1e-3, change_at_ms: Some(5), ..Cell::default() }, "1,000 s"),
            (Cell { change_at_ms: Some(10_000), ..Cell::default() }, "before the last"),
            (Cell { change_at_ms: Some(5), placement: Placement::Clients, ..Cell::default() }, "change_at_ms"),
            (Cell { servers: 2, ..Cell::default() }, "servers"),
            (Cell { placement: Placement::Tor, ..flat() }, "without a network"),
            (Cell { network: Some(Network { arity: 15, ..Network::default() }), ..Cell::default() }, "network.arity"),
        ];
        for (cell, named) in cells {
            let said = cell.check().unwrap_err().to_string();
            assert!(said.contains(named), "{said}");
        }
        assert_eq!(flat().check(), Ok(()));
    }

    #[test]
    fn selectors_are_written_by_their_names() {
        assert_eq!(Selects::try_from("hot-cold".to_owned()), Ok(Selects::Really(Algorithm::HotCold)));
        assert_eq!(String::from(Selects::Oracle), "oracle");
        let said = Selects::try_from("best".to_owned()).unwrap_err();
        assert!(said.contains("there are random") && said.ends_with("oracle"), "{said}");
    }
}
