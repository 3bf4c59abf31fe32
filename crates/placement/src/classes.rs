//! Classes of interchangeable operators, which the aggregated form counts instead of naming them.
//!
//! Switches of one area whose accelerators have the same limit serve the same groups at the same cost. Several of them at one accelerator
//! count as one. Switches of several areas at one accelerator form a class per area, and the loads of these classes are tied together.

use crate::instance::Instance;
use std::collections::BTreeMap;

/// Operators of one area, each with its own accelerator, all with the same limit.
#[derive(Debug)]
pub(crate) struct Class {
    pub tier: usize,
    /// Limit of each accelerator, in thousandths of packets per second.
    pub limit: u64,
    pub operators: Vec<usize>,
    /// The accelerator, if other classes share it; then there is one operator.
    pub joint: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Classes {
    pub classes: Vec<Class>,
    /// For each group: classes on its default paths that can take it alone, within the limits of load and extra hops.
    pub options: Vec<Vec<usize>>,
}

impl Classes {
    pub(crate) fn of(instance: &Instance) -> Self {
        let topology = instance.topology();
        let mut classes: Vec<Class> = Vec::new();
        let mut at_area: Vec<Vec<usize>> = vec![Vec::new(); topology.areas().len()];
        let mut alike: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for (accelerator, sharers) in topology.sharers().into_iter().enumerate() {
            let mut first_of_area = BTreeMap::new();
            for operator in sharers.into_iter().filter(|operator| !instance.barred().contains(operator)) {
                first_of_area.entry(topology.operators()[operator].area).or_insert(operator);
            }
            let limit = topology.accelerators()[accelerator].limit();
            let joint = (first_of_area.len() > 1).then_some(accelerator);
            for (area, operator) in first_of_area {
                let new = classes.len();
                let class = if joint.is_some() { new } else { *alike.entry((area, limit)).or_insert(new) };
                if class == new {
                    at_area[area].push(new);
                    classes.push(Class { tier: topology.areas()[area].tier, limit, operators: vec![], joint });
                }
                classes[class].operators.push(operator);
            }
        }
        let fits = |group: usize, class: &Class| {
            instance.load(group) <= class.limit
                && instance.extra_hops(group, class.tier) <= instance.limits().extra_hops
        };
        let options_of = |group: usize| {
            let around = topology.around(instance.groups()[group].rack);
            around
                .flat_map(|area| at_area[area].iter().copied())
                .filter(|&class| fits(group, &classes[class]))
                .collect()
        };
        let options = (0..instance.groups().len()).map(options_of).collect();
        Self { classes, options }
    }

    /// Groups that no operator can take, even alone.
    pub(crate) fn homeless(&self) -> impl Iterator<Item = usize> {
        self.options.iter().enumerate().filter(|(_, options)| options.is_empty()).map(|(group, _)| group)
    }

    pub(crate) fn of_operators(&self) -> BTreeMap<usize, usize> {
        let members = |(class, of): (usize, &Class)| {
            of.operators.iter().map(move |&operator| (operator, class)).collect::<Vec<_>>()
        };
        self.classes.iter().enumerate().flat_map(members).collect()
    }
}
