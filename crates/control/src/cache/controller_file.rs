//! The configuration file of a controller: the network, and how it is controlled.

use crate::config::within_time;
use crate::file::{self, FileError, within};
use midflight_cache::control::Network;
use midflight_cache::control::controller::{ControllerConfig, Start};
use midflight_cache::control::network::{
    Grouping, HostAt, NetworkError, NetworkParts, OperatorAt, ReplicaGroup, ServerAt,
};
use midflight_cache::keyspace::Keyspace;
use midflight_dataplane::cache::NUMBERS_MAX;
use midflight_dataplane::duration::duration;
use midflight_endpoint::Nanos;
use midflight_placement::{Accelerator, input};
use midflight_wire::cache::control::ORDERS_MAX;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A commented configuration of a small network.
pub const EXAMPLE_TOML: &str = include_str!("controller.toml");

/// The content of a controller's configuration file.
#[derive(Debug)]
pub struct ControllerFile {
    /// The controllers, in their order: a controller's index is [`ControllerConfig::place`].
    pub controllers: Vec<SocketAddr>,
    /// The file of the secret shared with operators, relative to this file's directory.
    pub secret: Option<PathBuf>,
    /// The network.
    pub network: Network,
    /// By operator index: the address at which its keeper listens for controllers.
    pub control: Vec<SocketAddr>,
    /// Times and bounds. `place` is that of the first controller; every other controller sets its own.
    pub config: ControllerConfig,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    controllers: Vec<SocketAddr>,
    secret: Option<PathBuf>,
    topology: TopologySource,
    #[serde(default)]
    operator: Vec<OperatorKeys>,
    #[serde(default)]
    host: Vec<HostKeys>,
    #[serde(default)]
    server: Vec<ServerKeys>,
    #[serde(default)]
    replica_group: Vec<ReplicaGroupKeys>,
    keyspace: Option<KeyspaceTable>,
    #[serde(default)]
    traffic_groups: TrafficGroupsTable,
    #[serde(default)]
    plan: PlanTable,
    #[serde(default)]
    times: TimesTable,
    #[serde(default)]
    bounds: BoundsTable,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TopologySource {
    File(PathBuf),
    Table(toml::Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperatorKeys {
    switch: String,
    address: SocketAddr,
    control: SocketAddr,
    selector: Option<SocketAddr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostKeys {
    host: String,
    ip: IpAddr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerKeys {
    at: String,
    address: SocketAddr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicaGroupKeys {
    id: u32,
    servers: Vec<SocketAddr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyspaceTable {
    #[serde(default = "replicas")]
    replicas: usize,
    #[serde(default)]
    version: u16,
}

/// The paper's number.
fn replicas() -> usize {
    3
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrafficGroupsTable {
    by: Option<By>,
    hosts_each: Option<usize>,
    set: Option<Vec<SetKeys>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum By {
    Racks,
    Hosts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetKeys {
    id: String,
    hosts: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StartKey {
    Degraded,
    OwnRack,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PlanTable {
    #[serde(deserialize_with = "duration")]
    every: Duration,
    #[serde(deserialize_with = "duration")]
    timeout: Duration,
    hysteresis: usize,
    extra_hops: f64,
    packets_per_request: u64,
    start: StartKey,
    #[serde(deserialize_with = "duration")]
    window: Duration,
    rate_max_per_s: f64,
    overload_windows: u32,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TimesTable {
    #[serde(deserialize_with = "duration")]
    ask_every: Duration,
    #[serde(deserialize_with = "duration")]
    dead_after: Duration,
    #[serde(deserialize_with = "duration")]
    repeat_after: Duration,
    #[serde(deserialize_with = "duration")]
    barred_for: Duration,
    #[serde(deserialize_with = "duration")]
    takeover_after: Duration,
    #[serde(deserialize_with = "duration")]
    longest_response: Duration,
    #[serde(deserialize_with = "duration")]
    forget_after: Duration,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BoundsTable {
    rsnodes: u16,
    batch: usize,
}

impl Default for PlanTable {
    fn default() -> Self {
        let config = ControllerConfig::default();
        Self {
            every: Duration::from_nanos(config.plan_every),
            timeout: Duration::from_nanos(config.plan_timeout),
            hysteresis: config.hysteresis,
            extra_hops: config.extra_hops,
            packets_per_request: config.packets_per_request,
            start: StartKey::Degraded,
            window: Duration::from_nanos(config.window),
            rate_max_per_s: config.rate_max_per_s,
            overload_windows: config.overload_windows,
        }
    }
}

impl Default for TimesTable {
    fn default() -> Self {
        let config = ControllerConfig::default();
        Self {
            ask_every: Duration::from_nanos(config.ask_every),
            dead_after: Duration::from_nanos(config.dead_after),
            repeat_after: Duration::from_nanos(config.repeat_after),
            barred_for: Duration::from_nanos(config.barred_for),
            takeover_after: Duration::from_nanos(config.takeover_after),
            longest_response: Duration::from_nanos(config.longest_response),
            forget_after: Duration::from_nanos(config.forget_after),
        }
    }
}

impl Default for BoundsTable {
    fn default() -> Self {
        let config = ControllerConfig::default();
        Self { rsnodes: config.rsnodes, batch: config.batch }
    }
}

impl ControllerFile {
    /// Parses a configuration; errors call it `file`. `read` reads the topology, if it is in a separate file.
    ///
    /// # Errors
    /// Names file, line or key, what is wrong, and what is allowed.
    pub fn parse(
        text: &str,
        file: &Path,
        read: impl FnOnce(&Path) -> Result<String, FileError>,
    ) -> Result<Self, FileError> {
        let keys: Keys = file::parse(text, file)?;
        let topology = match &keys.topology {
            TopologySource::File(path) => read(path)?,
            TopologySource::Table(table) => table.to_string(),
        };
        let default = Accelerator::paper("default".into());
        let of_topology = |error| FileError::value(file, format!("topology: {error}"));
        let topology = input::topology(&topology, &default).map_err(of_topology)?;
        let config = keys.config().map_err(|message| FileError::value(file, message))?;
        let control = keys.control(&topology).map_err(|message| FileError::value(file, message))?;
        let replica_groups = keys.replica_groups().map_err(|message| FileError::value(file, message))?;
        let grouping = keys.traffic_groups.grouping().map_err(|message| FileError::value(file, message))?;
        let parts = NetworkParts {
            topology,
            operators: keys.operator.into_iter().map(OperatorKeys::at).collect(),
            hosts: keys.host.into_iter().map(|HostKeys { host, ip }| HostAt { host, ip }).collect(),
            servers: keys.server.into_iter().map(|ServerKeys { at, address }| ServerAt { at, address }).collect(),
            replica_groups,
            grouping,
        };
        let network = Network::new(parts).map_err(|NetworkError(message)| FileError::value(file, message))?;
        Ok(Self { controllers: keys.controllers, secret: keys.secret, network, control, config })
    }
}

impl Keys {
    fn replica_groups(&self) -> Result<Vec<ReplicaGroup>, String> {
        let mut groups: Vec<ReplicaGroup> = self.replica_group.iter().map(ReplicaGroupKeys::group).collect();
        if let Some(KeyspaceTable { replicas, version }) = self.keyspace {
            if !groups.is_empty() {
                return Err("keyspace: there are [[replica_group]]s too: say one of both".into());
            }
            let servers: Vec<SocketAddr> = self.server.iter().map(|server| server.address).collect();
            let keyspace = Keyspace::new(&servers, replicas, version).map_err(|error| format!("keyspace: {error}"))?;
            groups.extend(keyspace.groups().map(|(id, servers)| ReplicaGroup { id, servers: servers.to_vec() }));
        }
        Ok(groups)
    }
}

impl OperatorKeys {
    fn at(self) -> OperatorAt {
        OperatorAt { switch: self.switch, address: self.address, selector: self.selector }
    }
}

impl ReplicaGroupKeys {
    fn group(&self) -> ReplicaGroup {
        ReplicaGroup { id: self.id, servers: self.servers.clone() }
    }
}

impl TrafficGroupsTable {
    fn grouping(&self) -> Result<Grouping, String> {
        match (&self.by, self.hosts_each, &self.set) {
            (None | Some(By::Racks), None, None) => Ok(Grouping::Racks),
            (Some(By::Hosts), None, None) => Ok(Grouping::Hosts),
            (None, Some(most), None) => Ok(Grouping::Parts(most)),
            (None, None, Some(sets)) => {
                Ok(Grouping::Sets(sets.iter().map(|set| (set.id.clone(), set.hosts.clone())).collect()))
            }
            _ => Err("traffic_groups: say one of by, hosts_each and set".into()),
        }
    }
}

impl Keys {
    fn control(&self, topology: &midflight_placement::Topology) -> Result<Vec<SocketAddr>, String> {
        let mut seen = std::collections::BTreeMap::new();
        for OperatorKeys { switch, control, .. } in &self.operator {
            if let Some(other) = seen.insert(control, switch) {
                return Err(format!("operators `{other}` and `{switch}` take orders at the same address, {control}"));
            }
        }
        let of = |id: &str| self.operator.iter().find(|keys| keys.switch == id).map(|keys| keys.control);
        let of = |id: &str| of(id).ok_or_else(|| format!("operator `{id}` has no address: add [[operator]] for it"));
        topology.operators().iter().map(|operator| of(&operator.id)).collect()
    }

    fn config(&self) -> Result<ControllerConfig, String> {
        let Self { plan, times, bounds, .. } = self;
        if self.controllers.is_empty() {
            return Err("controllers: name at least one".into());
        }
        if (1..self.controllers.len()).any(|place| self.controllers[..place].contains(&self.controllers[place])) {
            return Err("controllers: one is there twice".into());
        }
        within_time("plan.every", plan.every, "1s", "1h")?;
        within_time("plan.timeout", plan.timeout, "1s", "1h")?;
        within("plan.hysteresis", plan.hysteresis, 0..=1_000)?;
        within("plan.extra_hops", plan.extra_hops, 0.0..=100.0)?;
        within("plan.packets_per_request", plan.packets_per_request, 1..=2)?;
        within_time("plan.window", plan.window, "100ms", "1m")?;
        within("plan.rate_max_per_s", plan.rate_max_per_s, 1.0..=midflight_placement::rate::RATE_MAX_PER_S)?;
        within("plan.overload_windows", plan.overload_windows, 1..=1_000)?;
        within_time("times.ask_every", times.ask_every, "1ms", "10s")?;
        within_time("times.dead_after", times.dead_after, "2ms", "1h")?;
        within_time("times.repeat_after", times.repeat_after, "1ms", "1m")?;
        within_time("times.barred_for", times.barred_for, "0s", "1d")?;
        within_time("times.takeover_after", times.takeover_after, "2ms", "1h")?;
        within_time("times.longest_response", times.longest_response, "1ms", "1h")?;
        within_time("times.forget_after", times.forget_after, "1m", "7d")?;
        within("bounds.rsnodes", u32::from(bounds.rsnodes), 1..=NUMBERS_MAX)?;
        within("bounds.batch", bounds.batch, 1..=ORDERS_MAX)?;
        let two = 2 * times.ask_every;
        if times.dead_after < two || times.takeover_after < two {
            return Err(
                "times: dead_after and takeover_after are at least two ask_every: one answer may be lost".into()
            );
        }
        Ok(ControllerConfig {
            place: 0,
            ask_every: nanos(times.ask_every),
            dead_after: nanos(times.dead_after),
            repeat_after: nanos(times.repeat_after),
            barred_for: nanos(times.barred_for),
            takeover_after: nanos(times.takeover_after),
            longest_response: nanos(times.longest_response),
            forget_after: nanos(times.forget_after),
            window: nanos(plan.window),
            plan_every: nanos(plan.every),
            plan_timeout: nanos(plan.timeout),
            hysteresis: plan.hysteresis,
            extra_hops: plan.extra_hops,
            packets_per_request: plan.packets_per_request,
            rate_max_per_s: plan.rate_max_per_s,
            overload_windows: plan.overload_windows,
            rsnodes: bounds.rsnodes,
            batch: bounds.batch,
            start: match plan.start {
                StartKey::Degraded => Start::Degraded,
                StartKey::OwnRack => Start::OwnRack,
            },
        })
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ControllerFile, String> {
        let read = |path: &Path| match path.to_str() {
            Some("leaf.toml") => Ok("racks = [{ id = \"r\", tor = \"t\", hosts = [\"h\"] }]".into()),
            _ => Err(FileError::value(path, "not there")),
        };
        ControllerFile::parse(text, Path::new("c.toml"), read).map_err(|error| error.to_string())
    }

    #[test]
    fn the_printed_example_has_the_defaults() {
        let file = parse(EXAMPLE_TOML).unwrap();
        assert_eq!(file.config, ControllerConfig::default());
        assert_eq!((file.controllers.len(), file.control.len()), (2, 3));
        let network = &file.network;
        assert_eq!((network.racks().len(), network.hosts().len(), network.servers().len()), (2, 2, 3));
        assert_eq!(network.selector(network.topology().operator("tor-1").unwrap()), None);
    }

    /// Clients and controllers derive the same groups from the same three settings.
    #[test]
    fn a_keyspace_makes_the_replica_groups_of_all_servers() {
        let (before, after) = EXAMPLE_TOML.split_once("[[replica_group]]").unwrap();
        let after = after.split_once("\n\n").unwrap().1;
        let with = |more: &str| parse(&format!("{before}[keyspace]\nreplicas = 2\nversion = 5\n{more}\n{after}"));
        let network = with("").unwrap().network;
        let servers: Vec<_> = network.servers().iter().map(|(address, _)| *address).collect();
        let keyspace = Keyspace::new(&servers, 2, 5).unwrap();
        let groups: Vec<_> = network.replica_groups().iter().map(|group| (group.id, &*group.servers)).collect();
        assert_eq!(groups, keyspace.groups().collect::<Vec<_>>());
        let both = with("[[replica_group]]\nid = 1\nservers = []").unwrap_err();
        assert_eq!(both, "c.toml: keyspace: there are [[replica_group]]s too: say one of both");
        let few = with("").map(drop).and(parse(&format!("{before}[keyspace]\nreplicas = 4\n{after}"))).unwrap_err();
        assert!(few.starts_with("c.toml: keyspace: 4 replicas of each key on 3 servers"), "{few}");
    }

    #[test]
    fn the_topology_may_be_a_file_of_its_own() {
        let operator = "[[operator]]\nswitch = \"t\"\naddress = \"10.0.0.1:1\"\ncontrol = \"10.0.0.1:2\"\n";
        let with = |topology: &str| format!("controllers = [\"10.0.0.9:1\"]\ntopology = {topology}\n{operator}");
        assert_eq!(parse(&with("\"leaf.toml\"")).unwrap().network.groups()[0].id, "r");
        assert_eq!(parse(&with("\"other.toml\"")).unwrap_err(), "other.toml: not there");
        let error = parse(&with("{ racks = [] }")).unwrap_err();
        assert!(error.starts_with("c.toml: topology: there are no racks"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |from: &str, to: &str| {
            assert!(EXAMPLE_TOML.contains(from), "{from}");
            parse(&EXAMPLE_TOML.replace(from, to)).unwrap_err()
        };
        for (from, to, expected) in [
            (
                "ask_every = \"100ms\"",
                "ask_every = \"400ms\"",
                "c.toml: times: dead_after and takeover_after are at least",
            ),
            ("rsnodes = 4096", "rsnodes = 65535", "c.toml: bounds.rsnodes = 65535: must be 1 to 65534"),
            ("hysteresis = 1", "hysterese = 1", "c.toml:84: "),
            (
                "packets_per_request = 1",
                "packets_per_request = 3",
                "c.toml: plan.packets_per_request = 3: must be 1 to 2",
            ),
            ("by = \"racks\"", "by = \"racks\"\nhosts_each = 2", "c.toml: traffic_groups: say one of"),
            ("10.0.2.1:7702", "10.0.1.1:7702", "c.toml: operators `tor-0` and `tor-1` take orders at the same address"),
            ("switch = \"tor-1\"", "switch = \"tor-2\"", "c.toml: operator `tor-1` has no address"),
            ("\"10.0.0.251:7790\"", "\"10.0.0.250:7790\"", "c.toml: controllers: one is there twice"),
            ("tor = \"tor-1\", ", "", "c.toml: topology: rack `rack-1` has no ToR switch"),
        ] {
            let error = error(from, to);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
