//! The controller's network: the topology of the planner, with addresses, servers, traffic groups and replica groups.

use midflight_dataplane::cache::{NUMBERS_MAX, TIERS_MAX};
use midflight_placement::{Group, Rate, Topology};
use midflight_wire::cache::CANDIDATES_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// An error in a network: one sentence that names its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);

fn wrong<T>(message: String) -> Result<T, NetworkError> {
    Err(NetworkError(message))
}

/// An operator and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorAt {
    /// The name of its switch in the topology.
    pub switch: String,
    /// Where it takes packets.
    pub address: SocketAddr,
    /// Where its selector takes requests; without one it is never an RSNode.
    pub selector: Option<SocketAddr>,
}

/// A host and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAt {
    /// Its name in the topology.
    pub host: String,
    /// Its address.
    pub ip: IpAddr,
}

/// A server and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAt {
    /// The host or rack of the topology that it is in.
    pub at: String,
    /// Its address.
    pub address: SocketAddr,
}

/// Servers that have the same keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaGroup {
    /// Its id; never used again for other servers (N3).
    pub id: u32,
    /// Its servers.
    pub servers: Vec<SocketAddr>,
}

/// How hosts form traffic groups (section III-A).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// All hosts of a rack.
    #[default]
    Racks,
    /// Each host alone.
    Hosts,
    /// At most this many of a rack, in the order of the topology.
    Parts(usize),
    /// These sets, by name, each of one rack; other hosts send no requests.
    Sets(Vec<(String, Vec<String>)>),
}

/// The parts of a network.
#[derive(Clone, Debug, Default)]
pub struct NetworkParts {
    /// Switches with accelerators, racks, hosts.
    pub topology: Topology,
    /// Each operator of the topology once.
    pub operators: Vec<OperatorAt>,
    /// Hosts with clients. Other hosts of the topology send no requests.
    pub hosts: Vec<HostAt>,
    /// The servers.
    pub servers: Vec<ServerAt>,
    /// How hosts form traffic groups.
    pub grouping: Grouping,
    /// Replica groups.
    pub replica_groups: Vec<ReplicaGroup>,
}

/// A rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rack {
    /// Its index in the topology's areas.
    pub area: usize,
    /// The operator of its ToR switch.
    pub operator: usize,
    /// The marker of its servers' answers.
    pub marker: u32,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its address.
    pub ip: IpAddr,
    /// Its rack.
    pub rack: u16,
    /// Its traffic group.
    pub group: Option<u16>,
}

/// A traffic group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficGroup {
    /// Its name.
    pub id: String,
    /// Its rack.
    pub rack: u16,
    /// Its hosts; empty if it is a whole rack.
    pub hosts: Vec<String>,
}

/// A checked network. Operators are numbered as in the topology, racks and traffic groups from 0.
#[derive(Clone, Debug)]
pub struct Network {
    topology: Topology,
    addresses: Vec<SocketAddr>,
    selectors: Vec<Option<SocketAddr>>,
    racks: Vec<Rack>,
    hosts: Vec<Host>,
    servers: Vec<(SocketAddr, u16)>,
    groups: Vec<TrafficGroup>,
    replica_groups: Vec<ReplicaGroup>,
    masks: [u32; TIERS_MAX],
}

impl Network {
    /// Checks a network, and numbers its parts.
    ///
    /// # Errors
    /// Names what is unknown, missing, duplicate, or in no rack.
    pub fn new(parts: NetworkParts) -> Result<Self, NetworkError> {
        let NetworkParts { topology, operators, hosts, servers, grouping, mut replica_groups } = parts;
        let mut taken = Taken::default();
        let (addresses, selectors) = place_operators(&topology, &operators, &mut taken)?;
        let bits = marker_bits(&topology)?;
        let racks = find_racks(&topology, bits)?;
        let rack_of_area: BTreeMap<usize, u16> = racks.iter().map(|rack| rack.area).zip(0..).collect();
        let mut servers = place_servers(&topology, &rack_of_area, servers, &mut taken)?;
        let groups = find_groups(&topology, &rack_of_area, grouping)?;
        let mut hosts = place_hosts(&topology, &rack_of_area, &groups, hosts, &mut taken)?;
        check_replica_groups(&replica_groups, &servers)?;
        servers.sort_unstable();
        hosts.sort_unstable_by_key(|host| host.ip);
        replica_groups.sort_unstable_by_key(|group| group.id);
        let masks = masks(&topology, bits);
        Ok(Self { topology, addresses, selectors, racks, hosts, servers, groups, replica_groups, masks })
    }

    /// The network as the planner knows it.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Number of operators.
    #[must_use]
    pub fn operators(&self) -> usize {
        self.addresses.len()
    }

    /// Where an operator takes packets.
    #[must_use]
    pub fn address(&self, operator: usize) -> SocketAddr {
        self.addresses[operator]
    }

    /// The operator at this address.
    #[must_use]
    pub fn operator_at(&self, address: SocketAddr) -> Option<usize> {
        self.addresses.iter().position(|&other| other == address)
    }

    /// Where an operator's selector takes requests.
    #[must_use]
    pub fn selector(&self, operator: usize) -> Option<SocketAddr> {
        self.selectors[operator]
    }

    /// The racks.
    #[must_use]
    pub fn racks(&self) -> &[Rack] {
        &self.racks
    }

    /// The rack whose ToR switch has this operator.
    #[must_use]
    pub fn rack_of(&self, operator: usize) -> Option<u16> {
        self.racks.iter().position(|rack| rack.operator == operator).map(|rack| rack as u16)
    }

    /// The hosts.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The servers, each with its rack.
    #[must_use]
    pub fn servers(&self) -> &[(SocketAddr, u16)] {
        &self.servers
    }

    /// The rack of a server.
    #[must_use]
    pub fn rack_of_server(&self, address: SocketAddr) -> Option<u16> {
        self.servers.binary_search_by_key(&address, |&(address, _)| address).ok().map(|at| self.servers[at].1)
    }

    /// The host at this address.
    #[must_use]
    pub fn host(&self, ip: IpAddr) -> Option<Host> {
        self.hosts.binary_search_by_key(&ip, |host| host.ip).ok().map(|at| self.hosts[at])
    }

    /// The replica group of this id.
    #[must_use]
    pub fn replica_group(&self, id: u32) -> Option<&ReplicaGroup> {
        self.replica_groups.binary_search_by_key(&id, |group| group.id).ok().map(|at| &self.replica_groups[at])
    }

    /// The traffic groups.
    #[must_use]
    pub fn groups(&self) -> &[TrafficGroup] {
        &self.groups
    }

    /// The operator that labels the requests of a traffic group.
    #[must_use]
    pub fn labeller(&self, group: usize) -> usize {
        self.racks[usize::from(self.groups[group].rack)].operator
    }

    /// The replica groups.
    #[must_use]
    pub fn replica_groups(&self) -> &[ReplicaGroup] {
        &self.replica_groups
    }

    /// The `masks` by which operators find the tiers of these markers.
    #[must_use]
    pub fn masks(&self) -> [u32; TIERS_MAX] {
        self.masks
    }

    /// The traffic groups as the planner knows them, with their traffic.
    #[must_use]
    pub fn traffic(&self, by_tier: impl Fn(usize) -> Vec<Rate>) -> Vec<Group> {
        let area = |group: &TrafficGroup| self.racks[usize::from(group.rack)].area;
        let groups = self.groups.iter().enumerate().map(|(number, group)| Group {
            id: group.id.clone(),
            rack: area(group),
            hosts: group.hosts.clone(),
            by_tier: by_tier(number),
        });
        groups.collect()
    }
}

#[derive(Default)]
struct Taken {
    addresses: BTreeMap<SocketAddr, String>,
    ips: BTreeMap<IpAddr, String>,
}

impl Taken {
    fn take(&mut self, address: SocketAddr, by: String) -> Result<(), NetworkError> {
        if address.port() == 0 {
            return wrong(format!("{by}: {address} has no port"));
        }
        match self.addresses.insert(address, by.clone()) {
            Some(before) => wrong(format!("{address} is the address of {before} and of {by}")),
            None => Ok(()),
        }
    }
}

type Places = (Vec<SocketAddr>, Vec<Option<SocketAddr>>);

fn place_operators(topology: &Topology, given: &[OperatorAt], taken: &mut Taken) -> Result<Places, NetworkError> {
    let count = topology.operators().len();
    let (mut addresses, mut selectors) = (vec![None; count], vec![None; count]);
    for OperatorAt { switch, address, selector } in given {
        let Some(operator) = topology.operator(switch) else {
            return wrong(format!("operator `{switch}`: there is no such switch with an accelerator in the topology"));
        };
        if addresses[operator].replace(*address).is_some() {
            return wrong(format!("operator `{switch}` is there twice"));
        }
        taken.take(*address, format!("operator `{switch}`"))?;
        if let Some(selector) = selector {
            taken.take(*selector, format!("the selector of `{switch}`"))?;
        }
        selectors[operator] = *selector;
    }
    let named = topology.operators().iter().zip(addresses);
    let addresses = named.map(|(operator, address)| {
        address.ok_or_else(|| NetworkError(format!("operator `{}` has no address", operator.id)))
    });
    Ok((addresses.collect::<Result<_, _>>()?, selectors))
}

/// Bits of a marker for each tier below the topmost: enough to distinguish the areas within one area.
fn marker_bits(topology: &Topology) -> Result<[u32; TIERS_MAX], NetworkError> {
    let tiers = topology.tiers();
    match tiers {
        1 => Ok([0; TIERS_MAX]),
        2 => Ok([0, 32, 0, 0]),
        3 => Ok([0, 16, 16, 0]),
        4 => Ok([0, 8, 12, 12]),
        _ => wrong(format!("the topology has {tiers} tiers: an operator tells {TIERS_MAX} apart")),
    }
}

fn masks(topology: &Topology, bits: [u32; TIERS_MAX]) -> [u32; TIERS_MAX] {
    let mut masks = [0; TIERS_MAX];
    let mut used = 0;
    for tier in 1..topology.tiers() {
        used += bits[tier];
        masks[tier] = u32::MAX << (32 - used);
    }
    masks
}

fn find_racks(topology: &Topology, bits: [u32; TIERS_MAX]) -> Result<Vec<Rack>, NetworkError> {
    // The index of each area among those within the same one.
    let mut children: BTreeMap<Option<usize>, u32> = BTreeMap::new();
    let mut places = Vec::new();
    for area in topology.areas() {
        let next = children.entry(area.within).or_default();
        places.push(*next);
        *next += 1;
    }
    let mut racks = Vec::new();
    for area in topology.racks() {
        let rack = &topology.areas()[area];
        let Some(&operator) = rack.operators.first() else {
            return wrong(format!("rack `{}` has no ToR switch with an operator: its hosts have no way out", rack.id));
        };
        let (mut marker, mut below) = (0_u32, 0);
        for around in topology.around(area) {
            let tier = topology.areas()[around].tier;
            let Some(room) = bits.get(tier).copied().filter(|&room| room > 0) else { break };
            if u64::from(places[around]) >= 1 << room {
                let id = &topology.areas()[around].id;
                return wrong(format!(
                    "`{id}` is number {} in its tier: a marker has {room} bits for it",
                    places[around]
                ));
            }
            // The lowest tier has the lowest bits; the tiers above follow.
            marker |= places[around] << below;
            below += room;
        }
        racks.push(Rack { area, operator, marker });
    }
    if racks.len() > NUMBERS_MAX as usize {
        return wrong(format!("{} racks: at most {NUMBERS_MAX}", racks.len()));
    }
    Ok(racks)
}

fn place_servers(
    topology: &Topology,
    racks: &BTreeMap<usize, u16>,
    given: Vec<ServerAt>,
    taken: &mut Taken,
) -> Result<Vec<(SocketAddr, u16)>, NetworkError> {
    let mut servers = Vec::new();
    for ServerAt { at, address } in given {
        let area = topology.rack_of(&at).or_else(|| topology.rack(&at));
        let Some(&rack) = area.and_then(|area| racks.get(&area)) else {
            return wrong(format!("server {address} is in no rack: the topology has no host and no rack `{at}`"));
        };
        taken.take(address, format!("server {address}"))?;
        servers.push((address, rack));
    }
    Ok(servers)
}

fn find_groups(
    topology: &Topology,
    racks: &BTreeMap<usize, u16>,
    grouping: Grouping,
) -> Result<Vec<TrafficGroup>, NetworkError> {
    let mut groups = Vec::new();
    let of_rack = |(&area, &rack): (&usize, &u16)| (rack, topology.areas()[area].clone());
    match grouping {
        Grouping::Racks => groups.extend(racks.iter().map(of_rack).map(|(rack, area)| TrafficGroup {
            id: area.id,
            rack,
            hosts: vec![],
        })),
        Grouping::Hosts => {
            for (rack, area) in racks.iter().map(of_rack) {
                groups.extend(area.hosts.iter().map(|host| TrafficGroup {
                    id: host.clone(),
                    rack,
                    hosts: vec![host.clone()],
                }));
            }
        }
        Grouping::Parts(0) => return wrong("traffic groups of 0 hosts: at least 1".into()),
        Grouping::Parts(most) => {
            for (rack, area) in racks.iter().map(of_rack) {
                let parts = area.hosts.chunks(most).zip(0..);
                groups.extend(parts.map(|(hosts, part)| TrafficGroup {
                    id: format!("{}/{part}", area.id),
                    rack,
                    hosts: hosts.to_vec(),
                }));
            }
        }
        Grouping::Sets(sets) => {
            for (id, hosts) in sets {
                groups.push(TrafficGroup { rack: rack_of_set(topology, racks, &id, &hosts)?, id, hosts });
            }
        }
    }
    let mut ids = BTreeSet::new();
    let mut hosts = BTreeSet::new();
    for group in &groups {
        if !ids.insert(&group.id) {
            return wrong(format!("traffic group `{}` is there twice", group.id));
        }
        if let Some(host) = group.hosts.iter().find(|host| !hosts.insert(*host)) {
            return wrong(format!("host `{host}` is in two traffic groups, or twice in `{}`", group.id));
        }
    }
    if groups.len() > NUMBERS_MAX as usize {
        return wrong(format!("{} traffic groups: at most {NUMBERS_MAX}", groups.len()));
    }
    Ok(groups)
}

fn rack_of_set(
    topology: &Topology,
    racks: &BTreeMap<usize, u16>,
    id: &str,
    hosts: &[String],
) -> Result<u16, NetworkError> {
    let mut found: Option<(u16, &String)> = None;
    for host in hosts {
        let Some(&rack) = topology.rack_of(host).and_then(|area| racks.get(&area)) else {
            return wrong(format!("traffic group `{id}`: there is no host `{host}` in the topology"));
        };
        match found {
            Some((other, first)) if other != rack => {
                return wrong(format!("traffic group `{id}`: `{first}` and `{host}` are in different racks"));
            }
            _ => found = Some((rack, host)),
        }
    }
    found.map(|(rack, _)| rack).ok_or_else(|| NetworkError(format!("traffic group `{id}` has no hosts")))
}

fn place_hosts(
    topology: &Topology,
    racks: &BTreeMap<usize, u16>,
    groups: &[TrafficGroup],
    given: Vec<HostAt>,
    taken: &mut Taken,
) -> Result<Vec<Host>, NetworkError> {
    let mut group_of_host: BTreeMap<&str, u16> = BTreeMap::new();
    let mut group_of_rack: BTreeMap<u16, u16> = BTreeMap::new();
    for (group, number) in groups.iter().zip(0..) {
        if group.hosts.is_empty() {
            group_of_rack.insert(group.rack, number);
        }
        group_of_host.extend(group.hosts.iter().map(|host| (host.as_str(), number)));
    }
    let mut hosts = Vec::new();
    for HostAt { host, ip } in given {
        let Some(&rack) = topology.rack_of(&host).and_then(|area| racks.get(&area)) else {
            return wrong(format!("there is no host `{host}` in the topology"));
        };
        if let Some(before) = taken.ips.insert(ip, host.clone()) {
            return wrong(format!("{ip} is the address of host `{before}` and of host `{host}`"));
        }
        let group = group_of_host.get(host.as_str()).or_else(|| group_of_rack.get(&rack)).copied();
        hosts.push(Host { ip, rack, group });
    }
    Ok(hosts)
}

fn check_replica_groups(groups: &[ReplicaGroup], servers: &[(SocketAddr, u16)]) -> Result<(), NetworkError> {
    let known: BTreeSet<SocketAddr> = servers.iter().map(|&(address, _)| address).collect();
    let mut ids = BTreeSet::new();
    for ReplicaGroup { id, servers } in groups {
        if id >> 24 != 0 {
            return wrong(format!("replica group {id}: ids have 24 bits"));
        }
        if !ids.insert(id) {
            return wrong(format!("replica group {id} is there twice"));
        }
        if servers.is_empty() || servers.len() > CANDIDATES_MAX {
            return wrong(format!("replica group {id} has {} servers: 1 to {CANDIDATES_MAX}", servers.len()));
        }
        if let Some(server) = servers.iter().find(|server| !known.contains(server)) {
            return wrong(format!("replica group {id}: there is no server {server}"));
        }
        if servers.iter().collect::<BTreeSet<_>>().len() != servers.len() {
            return wrong(format!("replica group {id} names a server twice"));
        }
    }
    Ok(())
}
