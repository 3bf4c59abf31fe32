//! A plan (the paper's RSP): the RSNode of each group.

use crate::instance::Instance;
use std::collections::{BTreeMap, BTreeSet};

/// The RSNode of each group, by indices into the lists of [`Instance`] and its topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `None`: degraded replica selection (DRS).
    pub rsnodes: Vec<Option<usize>>,
}

impl Plan {
    /// A plan with all groups degraded.
    #[must_use]
    pub fn degraded(groups: usize) -> Self {
        Self { rsnodes: vec![None; groups] }
    }

    /// The operators in use.
    #[must_use]
    pub fn in_use(&self) -> BTreeSet<usize> {
        self.rsnodes.iter().flatten().copied().collect()
    }

    /// Number of RSNodes, which planning minimises.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.in_use().len()
    }

    /// The groups under degraded replica selection.
    pub fn under_drs(&self) -> impl Iterator<Item = usize> {
        self.rsnodes.iter().enumerate().filter(|(_, rsnode)| rsnode.is_none()).map(|(group, _)| group)
    }

    /// Packets per second of each accelerator in use, in thousandths.
    #[must_use]
    pub fn loads(&self, instance: &Instance) -> BTreeMap<usize, u64> {
        let mut loads = BTreeMap::new();
        for (group, rsnode) in self.rsnodes.iter().enumerate() {
            if let Some(operator) = rsnode {
                *loads.entry(instance.topology.operators[*operator].accelerator).or_default() += instance.load(group);
            }
        }
        loads
    }

    /// Forwardings of requests per second beyond default paths, in thousandths. Responses, through the same RSNode, cost as many again.
    #[must_use]
    pub fn extra_hops(&self, instance: &Instance) -> u64 {
        let placed = self.rsnodes.iter().enumerate().filter_map(|(group, rsnode)| Some((group, (*rsnode)?)));
        placed.map(|(group, operator)| instance.extra_hops(group, instance.topology.tier(operator))).sum()
    }
}
