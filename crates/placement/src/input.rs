//! Networks and traffic as TOML, or JSON with the same keys. Errors say where the fault is and how to correct it.

use crate::instance::Group;
use crate::rate::{RATE_MAX_PER_S, Rate};
use crate::topology::{Accelerator, Area, HOSTS_MAX, OPERATORS_MAX, Operator, TIERS_MAX, Topology, TopologyError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An error in a file, without the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(String);

impl From<TopologyError> for InputError {
    fn from(error: TopologyError) -> Self {
        Self(error.0)
    }
}

fn wrong<T>(message: String) -> Result<T, InputError> {
    Err(InputError(message))
}

/// JSON starts with a brace.
fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, InputError> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| InputError(error.to_string()));
    }
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        InputError(format!("{place}{}", error.message().replace('\n', " ")))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyFile {
    accelerator: Option<AcceleratorKeys>,
    fat_tree: Option<usize>,
    #[serde(default)]
    core: Vec<String>,
    #[serde(default)]
    pods: Vec<PodKeys>,
    #[serde(default)]
    racks: Vec<RackKeys>,
    #[serde(default)]
    accelerators: Vec<AcceleratorKeys>,
    #[serde(default)]
    without_accelerator: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PodKeys {
    id: String,
    within: Option<String>,
    #[serde(default)]
    switches: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RackKeys {
    id: String,
    within: Option<String>,
    tor: Option<String>,
    hosts: Option<Hosts>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Hosts {
    Number(usize),
    Names(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceleratorKeys {
    id: Option<String>,
    #[serde(default)]
    switches: Vec<String>,
    cores: Option<u32>,
    service_time_us: Option<f64>,
    utilisation: Option<f64>,
}

impl AcceleratorKeys {
    /// These keys, with `default` for the missing ones.
    fn over(&self, default: &Accelerator) -> Result<Accelerator, InputError> {
        let accelerator = Accelerator {
            id: self.id.clone().unwrap_or_else(|| default.id.clone()),
            cores: self.cores.unwrap_or(default.cores),
            service_time_us: self.service_time_us.unwrap_or(default.service_time_us),
            utilisation: self.utilisation.unwrap_or(default.utilisation),
        };
        check_accelerator(&accelerator)?;
        Ok(accelerator)
    }
}

/// Checks an accelerator's numbers.
///
/// # Errors
/// Says which is out of range.
pub fn check_accelerator(accelerator: &Accelerator) -> Result<(), InputError> {
    let Accelerator { id, cores, service_time_us, utilisation } = accelerator;
    if !(1..=4096).contains(cores) {
        return wrong(format!("accelerator `{id}`: cores = {cores}: from 1 to 4096"));
    }
    if !(1e-3..=1e6).contains(service_time_us) {
        return wrong(format!("accelerator `{id}`: service_time_us = {service_time_us}: from 0.001 to 1000000"));
    }
    if !(*utilisation > 0.0 && *utilisation <= 1.0) {
        return wrong(format!("accelerator `{id}`: utilisation = {utilisation}: above 0 and at most 1"));
    }
    if accelerator.limit() == 0 {
        return wrong(format!("accelerator `{id}` may get less than one packet in 1,000 s: look at its service time"));
    }
    Ok(())
}

/// Reads a topology; `default` applies to keys that an accelerator leaves out.
///
/// # Errors
/// Says what is missing, unknown, duplicate or out of range.
pub fn topology(text: &str, default: &Accelerator) -> Result<Topology, InputError> {
    let file: TopologyFile = parse(text)?;
    let default = match &file.accelerator {
        Some(keys) if keys.switches.is_empty() => keys.over(default)?,
        Some(_) => return wrong("[accelerator] is that of all switches: name some of them in [[accelerators]]".into()),
        None => default.clone(),
    };
    let mut topology = match file.fat_tree {
        Some(_) if !(file.core.is_empty() && file.pods.is_empty() && file.racks.is_empty()) => {
            return wrong("fat_tree has its own switches: leave core, pods and racks out, or fat_tree".into());
        }
        Some(k) => Topology::fat_tree(k, &default)?,
        None => tree(&file, &default)?,
    };
    accelerators(&mut topology, &file, &default)?;
    let without: BTreeSet<&String> = file.without_accelerator.iter().collect();
    for id in without {
        let operator = topology.operator(id).ok_or_else(|| crate::topology::unknown("switch", id))?;
        remove(&mut topology, operator);
    }
    if topology.operators.len() > OPERATORS_MAX {
        return wrong(format!(
            "{} operators: at most {OPERATORS_MAX}, as their ids have 16 bits",
            topology.operators.len()
        ));
    }
    Ok(topology)
}

fn tree(file: &TopologyFile, default: &Accelerator) -> Result<Topology, InputError> {
    if file.racks.is_empty() {
        return wrong("there are no racks: add [[racks]] with id, tor and hosts, or fat_tree = 16".into());
    }
    let mut builder = Builder { topology: Topology::default(), default, names: BTreeSet::new() };
    // A single rack without pods or core is a network of one tier.
    let alone = file.core.is_empty() && file.pods.is_empty() && file.racks.len() == 1;
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let root = if alone { None } else { Some(builder.area("network", None, &file.core)?) };
    let mut left: Vec<&PodKeys> = file.pods.iter().collect();
    while !left.is_empty() {
        let known = |pod: &&PodKeys| pod.within.as_deref().is_none_or(|above| places.contains_key(above));
        let (ready, others): (Vec<&PodKeys>, Vec<&PodKeys>) = left.into_iter().partition(known);
        if ready.is_empty() {
            let pod = others[0];
            let above = pod.within.as_deref().unwrap_or_default();
            return wrong(format!("pod `{}` is within `{above}`, which is no pod, or within itself", pod.id));
        }
        for pod in ready {
            let above = pod.within.as_deref().and_then(|above| places.get(above).copied()).or(root);
            if places.contains_key(pod.id.as_str()) {
                return wrong(format!("pod `{}` is there twice", pod.id));
            }
            places.insert(&pod.id, builder.area(&pod.id, above, &pod.switches)?);
        }
        left = others;
    }
    let mut racks = BTreeSet::new();
    for rack in &file.racks {
        let above = match rack.within.as_deref() {
            Some(above) => match places.get(above) {
                Some(&place) => Some(place),
                None => return wrong(format!("rack `{}` is within `{above}`, and there is no such pod", rack.id)),
            },
            None if !file.pods.is_empty() => {
                return wrong(format!("rack `{}` is in no pod: say within = \"…\"", rack.id));
            }
            None => root,
        };
        let Some(tor) = &rack.tor else {
            return wrong(format!("rack `{}` has no ToR switch: say tor = \"…\"", rack.id));
        };
        if !racks.insert(&rack.id) || places.contains_key(rack.id.as_str()) {
            return wrong(format!("`{}` is the name of two racks, or of a rack and a pod", rack.id));
        }
        let area = builder.area(&rack.id, above, std::slice::from_ref(tor))?;
        builder.hosts(area, rack)?;
    }
    builder.finish(file)
}

struct Builder<'a> {
    topology: Topology,
    default: &'a Accelerator,
    names: BTreeSet<String>,
}

impl Builder<'_> {
    fn area(&mut self, id: &str, within: Option<usize>, switches: &[String]) -> Result<usize, InputError> {
        let topology = &mut self.topology;
        let area = topology.areas.len();
        let tier = within.map_or(0, |above| topology.areas[above].tier + 1);
        if tier >= TIERS_MAX {
            return wrong(format!("`{id}` is in tier {tier}: at most {TIERS_MAX} tiers"));
        }
        topology.areas.push(Area { id: id.into(), tier, within, operators: vec![], hosts: vec![] });
        for switch in switches {
            if !self.names.insert(switch.clone()) {
                return wrong(format!("switch `{switch}` is there twice"));
            }
            topology.areas[area].operators.push(topology.operators.len());
            let accelerator = topology.accelerators.len();
            let own = Accelerator { id: format!("accelerator of {switch}"), ..self.default.clone() };
            topology.accelerators.push(own);
            topology.operators.push(Operator { id: switch.clone(), area, accelerator });
        }
        Ok(area)
    }

    fn hosts(&mut self, area: usize, rack: &RackKeys) -> Result<(), InputError> {
        let names = match &rack.hosts {
            Some(Hosts::Names(names)) => names.clone(),
            Some(Hosts::Number(number)) if *number <= HOSTS_MAX => {
                (0..*number).map(|host| format!("{}/host-{host}", rack.id)).collect()
            }
            Some(Hosts::Number(number)) => {
                return wrong(format!("rack `{}`: hosts = {number}: at most {HOSTS_MAX}", rack.id));
            }
            None => vec![],
        };
        for host in &names {
            if self.topology.rack_of_host.insert(host.clone(), area).is_some() {
                return wrong(format!("host `{host}` is there twice"));
            }
        }
        self.topology.areas[area].hosts = names;
        if self.topology.hosts() > HOSTS_MAX {
            return wrong(format!("more than {HOSTS_MAX} hosts"));
        }
        Ok(())
    }

    /// Checks that all racks are in the highest tier, and that every pod has one.
    fn finish(mut self, file: &TopologyFile) -> Result<Topology, InputError> {
        let tier_of =
            |id: &str| self.topology.areas.iter().rev().find(|area| area.id == id).map_or(0, |area| area.tier);
        let first = &file.racks[0];
        let tiers = tier_of(&first.id) + 1;
        for rack in &file.racks {
            let tier = tier_of(&rack.id);
            if tier + 1 != tiers {
                return wrong(format!(
                    "rack `{}` is in tier {tier} and rack `{}` in tier {}: all racks are equally deep",
                    rack.id,
                    first.id,
                    tiers - 1
                ));
            }
        }
        if let Some(pod) = file.pods.iter().find(|pod| tier_of(&pod.id) + 1 >= tiers) {
            return wrong(format!("pod `{}` is as deep as a rack: all racks are below the pods", pod.id));
        }
        self.topology.tiers = tiers;
        Ok(self.topology)
    }
}

/// Applies the file's named accelerators: stronger, weaker, or shared.
fn accelerators(topology: &mut Topology, file: &TopologyFile, default: &Accelerator) -> Result<(), InputError> {
    let mut seen = BTreeSet::new();
    for (number, keys) in file.accelerators.iter().enumerate() {
        let mut accelerator = keys.over(default)?;
        if keys.id.is_none() {
            accelerator.id = format!("accelerator {number}");
        }
        if keys.switches.is_empty() {
            return wrong(format!("accelerator `{}` is at no switch: say switches = [\"…\"]", accelerator.id));
        }
        for switch in &keys.switches {
            if !seen.insert(switch) {
                return wrong(format!("switch `{switch}` has two accelerators"));
            }
            let operator = topology.operator(switch).ok_or_else(|| crate::topology::unknown("switch", switch))?;
            topology.operators[operator].accelerator = topology.accelerators.len();
        }
        topology.accelerators.push(accelerator);
    }
    Ok(())
}

/// Makes a switch that is no operator.
fn remove(topology: &mut Topology, operator: usize) {
    topology.operators.remove(operator);
    for area in &mut topology.areas {
        area.operators.retain(|&other| other != operator);
        area.operators.iter_mut().filter(|other| **other > operator).for_each(|other| *other -= 1);
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrafficFile {
    #[serde(default)]
    groups: Vec<GroupKeys>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupKeys {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rack: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<String>>,
    requests_per_s: Vec<f64>,
}

/// Reads traffic groups of this topology.
///
/// # Errors
/// Says which group is wrong, and why.
pub fn traffic(text: &str, topology: &Topology) -> Result<Vec<Group>, InputError> {
    let file: TrafficFile = parse(text)?;
    if file.groups.is_empty() {
        return wrong("there are no groups: add [[groups]] with rack or hosts, and requests_per_s".into());
    }
    if file.groups.len() > HOSTS_MAX {
        return wrong(format!("{} groups: at most {HOSTS_MAX}", file.groups.len()));
    }
    let (mut ids, mut hosts_seen, mut racks_seen) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    let racks: BTreeMap<&str, usize> =
        topology.racks().map(|rack| (topology.areas()[rack].id.as_str(), rack)).collect();
    let mut groups = Vec::new();
    for (number, keys) in file.groups.iter().enumerate() {
        let id = match (&keys.id, &keys.rack, keys.hosts.as_deref()) {
            (Some(id), ..) => id.clone(),
            (None, Some(rack), _) => rack.clone(),
            (None, None, Some([host])) => host.clone(),
            _ => format!("group {number}"),
        };
        if !ids.insert(id.clone()) {
            return wrong(format!("group `{id}` is there twice"));
        }
        let rack = rack_of(&id, keys, topology, &racks)?;
        let whole = keys.hosts.is_none();
        if *racks_seen.entry(rack).or_insert(whole) != whole
            || (whole && !hosts_seen.insert(topology.areas()[rack].id.clone()))
        {
            return wrong(format!(
                "rack `{}` is counted twice: as a whole, and again in `{id}`",
                topology.areas()[rack].id
            ));
        }
        let hosts = keys.hosts.clone().unwrap_or_default();
        if let Some(host) = hosts.iter().find(|host| !hosts_seen.insert((*host).clone())) {
            return wrong(format!("host `{host}` is in two groups, or twice in `{id}`"));
        }
        groups.push(Group { by_tier: rates(&id, &keys.requests_per_s, topology)?, id, rack, hosts });
    }
    Ok(groups)
}

fn rack_of(
    id: &str,
    keys: &GroupKeys,
    topology: &Topology,
    racks: &BTreeMap<&str, usize>,
) -> Result<usize, InputError> {
    match (&keys.rack, &keys.hosts) {
        (Some(rack), None) => match racks.get(rack.as_str()) {
            Some(&found) => Ok(found),
            None => wrong(format!("group `{id}`: there is no rack `{rack}` in the topology")),
        },
        (None, Some(hosts)) => {
            let mut found: Option<(usize, &String)> = None;
            for host in hosts {
                let Some(rack) = topology.rack_of(host) else {
                    return wrong(format!("group `{id}`: there is no host `{host}` in the topology"));
                };
                match found {
                    Some((other, first)) if other != rack => {
                        let (one, two) = (&topology.areas()[other].id, &topology.areas()[rack].id);
                        return wrong(format!(
                            "group `{id}`: `{first}` is in rack `{one}` and `{host}` in rack `{two}`; a group is of one rack"
                        ));
                    }
                    _ => found = Some((rack, host)),
                }
            }
            found.map(|(rack, _)| rack).ok_or_else(|| InputError(format!("group `{id}` has no hosts")))
        }
        (Some(_), Some(_)) => wrong(format!("group `{id}` has both rack and hosts: hosts are enough")),
        (None, None) => wrong(format!("group `{id}` has neither rack nor hosts")),
    }
}

fn rates(id: &str, per_s: &[f64], topology: &Topology) -> Result<Vec<Rate>, InputError> {
    let tiers = topology.tiers();
    if per_s.len() != tiers {
        return wrong(format!(
            "group `{id}`: requests_per_s has {} entries, and needs {tiers}: one for each highest tier of a request, from \
             0 (core) to {}",
            per_s.len(),
            tiers - 1
        ));
    }
    let rate = |&per_s: &f64| {
        let message = format!("group `{id}`: {per_s} requests per second: from 0 to {RATE_MAX_PER_S}");
        Rate::from_per_s(per_s).ok_or(InputError(message))
    };
    per_s.iter().map(rate).collect()
}

/// The groups as a file that [`traffic`] reads.
#[must_use]
pub fn write_traffic(groups: &[Group], topology: &Topology) -> String {
    let keys = |group: &Group| {
        let whole = group.hosts.is_empty();
        let rack = topology.areas()[group.rack].id.clone();
        GroupKeys {
            id: (group.id != rack && group.hosts != [group.id.clone()]).then(|| group.id.clone()),
            rack: whole.then_some(rack),
            hosts: (!whole).then(|| group.hosts.clone()),
            requests_per_s: group.by_tier.iter().map(|rate| rate.per_s()).collect(),
        }
    };
    let file = TrafficFile { groups: groups.iter().map(keys).collect() };
    // TOML can write all lists of numbers and names.
    toml::to_string(&file).unwrap_or_default()
}
