//! Traffic from seeds, by named generators.

use crate::instance::Group;
use crate::rate::Rate;
use crate::topology::{Topology, TopologyError};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

/// The generators of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Each rack draws its rate uniformly from 0 to `load` times T_max of its ToR's accelerator, and its shares of traffic within the rack
    /// and the pod uniformly up to bounds that the seed draws, at most 30 % and 40 %.
    Uniform,
    /// Like `uniform`, but a fifth of the racks has rates from half of `load` to `load` times T_max, the others from 0 to a quarter of it.
    Skewed,
    /// The paper's evaluation (section V-A): 500 clients and 100 servers on random hosts, one role per host, 90,000 requests per second
    /// times `load` / 0.9, each to a random server. Needs 600 hosts.
    Paper,
}

/// All generators by name.
pub const GENERATORS: [(&str, Generator); 3] =
    [("uniform", Generator::Uniform), ("skewed", Generator::Skewed), ("paper", Generator::Paper)];

const CLIENTS: usize = 500;
const SERVERS: usize = 100;
const REQUESTS_PER_S: f64 = 90_000.0;

/// The granularity of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// One group per rack.
    Rack,
    /// One group per host.
    Host,
}

/// Groups of this topology; hosts of a rack have random parts of its traffic. The same arguments give the same groups.
///
/// # Errors
/// If the load is not above 0 and at most 1, or the topology has no hosts, or too few for the paper's.
pub fn generate(
    topology: &Topology,
    generator: Generator,
    seed: u64,
    load: f64,
    grain: Grain,
) -> Result<Vec<Group>, TopologyError> {
    if !(load > 0.0 && load <= 1.0) {
        return Err(TopologyError(format!("a load of {load}: it is above 0 and at most 1")));
    }
    if topology.hosts() == 0 {
        return Err(TopologyError("no rack of the topology has hosts".into()));
    }
    let mut random = Pcg64::seed_from_u64(seed);
    let of_hosts = match generator {
        Generator::Paper => paper(topology, load, &mut random)?,
        Generator::Uniform => by_rack(topology, false, load, &mut random),
        Generator::Skewed => by_rack(topology, true, load, &mut random),
    };
    let mut groups = Vec::new();
    for (host, by_tier) in of_hosts {
        let rack = topology.rack_of(&host).ok_or_else(|| crate::topology::unknown("host", &host))?;
        groups.push(Group { id: host.clone(), rack, hosts: vec![host], by_tier });
    }
    Ok(if grain == Grain::Rack { merge_racks(topology, &groups) } else { groups })
}

/// Merges the groups of each rack into one.
#[must_use]
pub fn merge_racks(topology: &Topology, groups: &[Group]) -> Vec<Group> {
    let mut racks: BTreeMap<usize, Vec<Rate>> = BTreeMap::new();
    for group in groups {
        let sums = racks.entry(group.rack).or_insert_with(|| vec![Rate::ZERO; topology.tiers()]);
        sums.iter_mut().zip(&group.by_tier).for_each(|(sum, rate)| sum.0 += rate.0);
    }
    let group =
        |(rack, by_tier): (usize, _)| Group { id: topology.areas()[rack].id.clone(), rack, hosts: vec![], by_tier };
    racks.into_iter().map(group).collect()
}

type OfHosts = Vec<(String, Vec<Rate>)>;

fn by_rack(topology: &Topology, skewed: bool, load: f64, random: &mut Pcg64) -> OfHosts {
    let tiers = topology.tiers();
    // Upper bounds of the shares of traffic that stay in the rack and in the pod.
    let near = [random.random_range(0.0..0.3), random.random_range(0.0..0.4)];
    let racks: Vec<usize> = topology.racks().collect();
    let mut heavy = racks.clone();
    heavy.shuffle(random);
    heavy.truncate(racks.len().div_ceil(5));
    let mut of_hosts = Vec::new();
    for rack in racks {
        let area = &topology.areas()[rack];
        let limit = area.operators.first().map_or(100_000.0, |&tor| {
            topology.accelerators()[topology.operators()[tor].accelerator].limit() as f64 / 1000.0
        });
        let range = match (skewed, heavy.contains(&rack)) {
            (false, _) => 0.0..1.0,
            (true, true) => 0.5..1.0,
            (true, false) => 0.0..0.25,
        };
        let rate = random.random_range(range) * load * limit;
        // The highest tier is the rack's own; tier 0 gets the rest.
        let mut shares = vec![0.0; tiers];
        let mut left = 1.0;
        for (tier, near) in (1..tiers).rev().zip(near) {
            shares[tier] = random.random_range(0.0..1.0) * near;
            left -= shares[tier];
        }
        shares[0] += left;
        let parts: Vec<f64> = area.hosts.iter().map(|_| random.random_range(0.2..1.0)).collect();
        let all: f64 = parts.iter().sum();
        for (host, part) in area.hosts.iter().zip(parts) {
            let rates = shares.iter().map(|share| Rate((rate * 1000.0 * share * part / all) as u64));
            of_hosts.push((host.clone(), rates.collect()));
        }
    }
    of_hosts
}

fn paper(topology: &Topology, load: f64, random: &mut Pcg64) -> Result<OfHosts, TopologyError> {
    let mut hosts: Vec<(&String, usize)> = topology.rack_of_host.iter().map(|(host, &rack)| (host, rack)).collect();
    if hosts.len() < CLIENTS + SERVERS {
        let needed = CLIENTS + SERVERS;
        return Err(TopologyError(format!(
            "the generator `paper` needs {needed} hosts, and there are {}",
            hosts.len()
        )));
    }
    hosts.shuffle(random);
    let (clients, servers) = (&hosts[..CLIENTS], &hosts[CLIENTS..CLIENTS + SERVERS]);
    let to_each = REQUESTS_PER_S * load / 0.9 / CLIENTS as f64 / SERVERS as f64 * 1000.0;
    let of_client = |&(client, rack): &(&String, usize)| {
        let mut counts = vec![0_u64; topology.tiers()];
        for &(_, other) in servers {
            let ours: Vec<usize> = topology.around(rack).collect();
            let common = topology.around(other).find(|area| ours.contains(area)).unwrap_or(0);
            counts[topology.areas()[common].tier] += 1;
        }
        let rates = counts.into_iter().map(|count| Rate((to_each * count as f64) as u64)).collect();
        (client.clone(), rates)
    };
    Ok(clients.iter().map(of_client).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Accelerator;

    #[test]
    fn n5_generators_repeat_and_racks_are_sums_of_hosts() {
        let tree = Topology::fat_tree(16, &Accelerator::paper("each".into())).unwrap();
        for (name, generator) in GENERATORS {
            let hosts = generate(&tree, generator, 7, 0.9, Grain::Host).unwrap();
            let racks = generate(&tree, generator, 7, 0.9, Grain::Rack).unwrap();
            assert_eq!(merge_racks(&tree, &hosts), racks, "{name}");
            assert_ne!(generate(&tree, generator, 8, 0.9, Grain::Rack).unwrap(), racks, "{name}");
            assert!(racks.iter().all(|rack| rack.rate().per_s() <= 90_000.0), "{name}");
        }
        let all: Rate = generate(&tree, Generator::Paper, 1, 0.9, Grain::Host).unwrap().iter().map(Group::rate).sum();
        assert!((89_990.0..=90_000.0).contains(&all.per_s()), "{all:?}");
        assert!(generate(&tree, Generator::Uniform, 1, 0.0, Grain::Rack).is_err());
    }
}
