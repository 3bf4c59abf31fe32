//! The planner's input: a network, the traffic of its groups, and limits.

use crate::rate::Rate;
use crate::topology::Topology;
use std::collections::BTreeSet;

/// Requests that get the same RSNode: those of a rack, a host, or several hosts of a rack (section III-A).
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub id: String,
    /// The rack of its hosts.
    pub rack: usize,
    /// Its hosts; empty if it is a whole rack.
    pub hosts: Vec<String>,
    /// T\[i\]\[k\]: its requests by the highest tier on their default path; one entry per tier, tier 0 first.
    pub by_tier: Vec<Rate>,
}

impl Group {
    /// All its requests.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.by_tier.iter().copied().sum()
    }
}

/// Limits that a plan must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// E: forwardings per second beyond those of default paths that all requests may cost, in thousandths.
    pub extra_hops: u64,
    /// Packets that an accelerator handles for each request: 1 as in the paper's equation (6), 2 if responses' clones count.
    pub packets_per_request: u64,
}

/// A network, its traffic and limits: all that a plan depends on.
#[derive(Clone, Debug)]
pub struct Instance {
    pub(crate) topology: Topology,
    pub(crate) groups: Vec<Group>,
    pub(crate) limits: Limits,
    pub(crate) barred: BTreeSet<usize>,
}

impl Instance {
    /// The groups must be of this topology ([`crate::input`] checks files).
    ///
    /// # Panics
    /// If a group's rack is no rack of the topology, or it does not have one rate per tier.
    #[must_use]
    pub fn new(topology: Topology, groups: Vec<Group>, limits: Limits) -> Self {
        for group in &groups {
            let rack = topology.areas().get(group.rack);
            assert!(rack.is_some_and(|rack| rack.tier + 1 == topology.tiers()), "{} is in no rack", group.id);
            assert_eq!(group.by_tier.len(), topology.tiers(), "{} needs a rate for each tier", group.id);
        }
        Self { topology, groups, limits, barred: BTreeSet::new() }
    }

    /// As [`Self::new`], with E as a share of all requests: 0.2 allows 200 extra forwardings for 1,000 requests.
    #[must_use]
    pub fn with_share(topology: Topology, groups: Vec<Group>, extra_hops: f64, packets_per_request: u64) -> Self {
        let all: Rate = groups.iter().map(Group::rate).sum();
        // Corrects binary rounding just below a whole number.
        let extra_hops = (all.0 as f64 * extra_hops + 1e-6) as u64;
        Self::new(topology, groups, Limits { extra_hops, packets_per_request })
    }

    /// Bars operators that have failed (N6) from all plans.
    #[must_use]
    pub fn bar(mut self, operators: impl IntoIterator<Item = usize>) -> Self {
        self.barred.extend(operators);
        self
    }

    /// The network.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The operators that no plan may use.
    #[must_use]
    pub fn barred(&self) -> &BTreeSet<usize> {
        &self.barred
    }

    /// The same instance with other limits.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Load of a group on an accelerator, in thousandths of packets per second.
    #[must_use]
    pub fn load(&self, group: usize) -> u64 {
        self.groups[group].rate().0 * self.limits.packets_per_request
    }

    /// Limit of an operator's accelerator, in the same unit.
    #[must_use]
    pub fn limit(&self, operator: usize) -> u64 {
        self.topology.accelerators[self.topology.operators[operator].accelerator].limit()
    }

    /// Forwardings per second beyond those of default paths if the RSNode of a group is in this tier, in thousandths: equation (7), Σ over
    /// k below h of 2(h−k)·T\[t−k\], with t the tier of ToR switches and h = t − tier.
    #[must_use]
    pub fn extra_hops(&self, group: usize, tier: usize) -> u64 {
        let tor = self.topology.tiers - 1;
        let up = tor - tier;
        (0..up).map(|k| 2 * (up - k) as u64 * self.groups[group].by_tier[tor - k].0).sum()
    }

    /// The operators on default paths of a group, equation (4), without barred ones.
    pub fn on_path(&self, group: usize) -> impl Iterator<Item = usize> {
        let areas = self.topology.around(self.groups[group].rack);
        areas
            .flat_map(|area| self.topology.areas[area].operators.iter().copied())
            .filter(|at| !self.barred.contains(at))
    }
}
