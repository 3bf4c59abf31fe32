//! The network: areas of switches, tier by tier, and the accelerators at the switches.
//!
//! A network of several tiers is a tree of *areas*. The whole network is the area of the core switches (tier 0), a pod that of its
//! aggregation switches, a rack that of its one ToR switch. Switches of one area are on default paths of the same hosts.

use std::collections::{BTreeMap, BTreeSet};

/// More tiers than any network has.
pub const TIERS_MAX: usize = 8;
/// RSNode ids have 16 bits on the wire.
pub const OPERATORS_MAX: usize = 65_535;
/// Most hosts or groups; no plan was tried with more.
pub const HOSTS_MAX: usize = 100_000;

/// The accelerator that selects replicas for one switch or for several (section III-B).
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    /// Its name.
    pub id: String,
    /// Processor cores.
    pub cores: u32,
    /// Service time of a packet on a core, in microseconds.
    pub service_time_us: f64,
    /// The highest permitted utilisation, above 0 and at most 1.
    pub utilisation: f64,
}

impl Accelerator {
    /// The paper's: one core of 5 µs per packet, at a utilisation of a half.
    #[must_use]
    pub fn paper(id: String) -> Self {
        Self { id, cores: 1, service_time_us: 5.0, utilisation: 0.5 }
    }

    /// T_max = U·c/t, in thousandths of packets per second.
    #[must_use]
    pub fn limit(&self) -> u64 {
        // Corrects binary rounding just below a whole number.
        (self.utilisation * f64::from(self.cores) / self.service_time_us * 1e9 + 1e-6) as u64
    }
}

/// A switch with an accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// Its name.
    pub id: String,
    /// The area of the switch.
    pub area: usize,
    /// Its accelerator.
    pub accelerator: usize,
}

/// Switches of one tier that are on default paths of the same hosts, and what lies below them.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// Its name.
    pub id: String,
    /// 0 at the top; racks have the highest.
    pub tier: usize,
    /// The area above; `None` at the top.
    pub within: Option<usize>,
    /// Its switches that are operators.
    pub operators: Vec<usize>,
    /// Its hosts, if it is a rack.
    pub hosts: Vec<String>,
}

/// A network. Everything refers to indices into these lists.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Topology {
    pub(crate) areas: Vec<Area>,
    pub(crate) operators: Vec<Operator>,
    pub(crate) accelerators: Vec<Accelerator>,
    pub(crate) rack_of_host: BTreeMap<String, usize>,
    pub(crate) tiers: usize,
}

/// An error in a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TopologyError(pub(crate) String);

impl Topology {
    /// A fat-tree of switches with `k` ports: k²/4 core switches, k pods of k/2 aggregation and k/2 ToR switches, k/2 hosts per rack, and
    /// an accelerator at every switch.
    ///
    /// # Errors
    /// If `k` is odd, or below 2, or above 64.
    pub fn fat_tree(k: usize, each: &Accelerator) -> Result<Self, TopologyError> {
        if !(2..=64).contains(&k) || !k.is_multiple_of(2) {
            return Err(TopologyError(format!("fat-tree:{k}: the number of ports is even, from 2 to 64")));
        }
        let half = k / 2;
        let mut tree = Self { tiers: 3, ..Self::default() };
        let core = tree.add_area("network".into(), None);
        (0..half * half).for_each(|core_switch| tree.add_switch(format!("core-{core_switch}"), core, each));
        for pod in 0..k {
            let area = tree.add_area(format!("pod-{pod}"), Some(core));
            (0..half).for_each(|switch| tree.add_switch(format!("agg-{pod}-{switch}"), area, each));
            for rack in 0..half {
                let area = tree.add_area(format!("rack-{pod}-{rack}"), Some(area));
                tree.add_switch(format!("tor-{pod}-{rack}"), area, each);
                let hosts: Vec<String> = (0..half).map(|host| format!("host-{pod}-{rack}-{host}")).collect();
                tree.rack_of_host.extend(hosts.iter().map(|host| (host.clone(), area)));
                tree.areas[area].hosts = hosts;
            }
        }
        Ok(tree)
    }

    fn add_area(&mut self, id: String, within: Option<usize>) -> usize {
        let tier = within.map_or(0, |above| self.areas[above].tier + 1);
        self.areas.push(Area { id, tier, within, operators: vec![], hosts: vec![] });
        self.areas.len() - 1
    }

    fn add_switch(&mut self, id: String, area: usize, each: &Accelerator) {
        self.areas[area].operators.push(self.operators.len());
        let accelerator = self.accelerators.len();
        self.accelerators.push(Accelerator { id: format!("accelerator of {id}"), ..each.clone() });
        self.operators.push(Operator { id, area, accelerator });
    }

    /// Lets several switches share the first one's accelerator.
    ///
    /// # Errors
    /// If one is unknown, or none is named.
    pub fn share(&mut self, switches: &[&str]) -> Result<(), TopologyError> {
        let found = switches.iter().map(|id| self.operator(id).ok_or_else(|| unknown("switch", id)));
        let found: Vec<usize> = found.collect::<Result<_, _>>()?;
        let first = found.first().ok_or_else(|| TopologyError("an accelerator is shared by no switch".into()))?;
        let accelerator = self.operators[*first].accelerator;
        found.iter().for_each(|&operator| self.operators[operator].accelerator = accelerator);
        Ok(())
    }

    /// All areas: the whole network, pods, racks.
    #[must_use]
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// All operators.
    #[must_use]
    pub fn operators(&self) -> &[Operator] {
        &self.operators
    }

    /// All accelerators.
    #[must_use]
    pub fn accelerators(&self) -> &[Accelerator] {
        &self.accelerators
    }

    /// The accelerators, to change their performance.
    pub fn accelerators_mut(&mut self) -> &mut [Accelerator] {
        &mut self.accelerators
    }

    /// Number of tiers of switches.
    #[must_use]
    pub fn tiers(&self) -> usize {
        self.tiers
    }

    /// The tier of an operator's switch: 0 for core.
    #[must_use]
    pub fn tier(&self, operator: usize) -> usize {
        self.areas[self.operators[operator].area].tier
    }

    /// The operator of this name.
    #[must_use]
    pub fn operator(&self, id: &str) -> Option<usize> {
        self.operators.iter().position(|operator| operator.id == id)
    }

    /// The racks: areas of the highest tier.
    pub fn racks(&self) -> impl Iterator<Item = usize> {
        (0..self.areas.len()).filter(|&area| self.areas[area].tier + 1 == self.tiers)
    }

    /// The rack of this name.
    #[must_use]
    pub fn rack(&self, id: &str) -> Option<usize> {
        self.racks().find(|&rack| self.areas[rack].id == id)
    }

    /// The rack of a host.
    #[must_use]
    pub fn rack_of(&self, host: &str) -> Option<usize> {
        self.rack_of_host.get(host).copied()
    }

    /// Number of hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.rack_of_host.len()
    }

    /// An area and those around it, up to the whole network.
    pub fn around(&self, area: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(area), |&inner| self.areas[inner].within)
    }

    /// The switches that share each accelerator.
    pub(crate) fn sharers(&self) -> Vec<BTreeSet<usize>> {
        let mut sharers = vec![BTreeSet::new(); self.accelerators.len()];
        for (operator, of) in self.operators.iter().enumerate() {
            sharers[of.accelerator].insert(operator);
        }
        sharers
    }
}

pub(crate) fn unknown(what: &str, id: &str) -> TopologyError {
    TopologyError(format!("there is no {what} `{id}` in the topology"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fat_trees_have_the_papers_sizes() {
        for (k, core, layer, hosts) in [(16, 64, 128, 1_024), (48, 576, 1_152, 27_648)] {
            let tree = Topology::fat_tree(k, &Accelerator::paper("each".into())).unwrap();
            let count = |tier| (0..tree.operators().len()).filter(|&operator| tree.tier(operator) == tier).count();
            assert_eq!((count(0), count(1), count(2), tree.hosts()), (core, layer, layer, hosts));
        }
        assert!(Topology::fat_tree(15, &Accelerator::paper("each".into())).is_err());
    }

    #[test]
    fn n4_the_papers_accelerator_may_get_100_000_packets_a_second() {
        assert_eq!(Accelerator::paper("a".into()).limit(), 100_000_000);
    }
}
