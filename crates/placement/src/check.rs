//! Checks a plan against the constraints (N4), independently of the planner's arithmetic: it finds paths by walking up from the rack,
//! counts extra hops as forwardings with and without the detour, and sums up loads itself.

use crate::instance::Instance;
use crate::plan::Plan;

/// A constraint that a plan violates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The plan does not have one entry per group.
    #[error("the plan has {plan} entries for {groups} groups")]
    Length {
        /// Entries.
        plan: usize,
        /// Groups.
        groups: usize,
    },
    /// The plan names an operator that does not exist.
    #[error("group {group} has operator number {operator}, which does not exist")]
    NoOperator {
        /// The group.
        group: String,
        /// The operator that the plan names.
        operator: usize,
    },
    /// Equation (4): requests would step down a tier before their RSNode.
    #[error("{operator} is on no default path of group {group}")]
    OffPath {
        /// The group.
        group: String,
        /// Its RSNode.
        operator: String,
    },
    /// The RSNode is barred, for example because it failed.
    #[error("{operator}, the RSNode of group {group}, may not be used")]
    Barred {
        /// The group.
        group: String,
        /// Its RSNode.
        operator: String,
    },
    /// Equation (6); in thousandths of packets per second.
    #[error("{accelerator} gets {load} and may get {limit} thousandths of a packet per second")]
    Load {
        /// The accelerator.
        accelerator: String,
        /// Its load.
        load: u128,
        /// T_max.
        limit: u64,
    },
    /// Equation (7); in thousandths of forwardings per second.
    #[error("requests take {taken} extra hops, and may take {limit}, in thousandths per second")]
    ExtraHops {
        /// The extra hops of the plan.
        taken: u128,
        /// E.
        limit: u64,
    },
}

/// All violations of a plan; groups under DRS violate nothing.
#[must_use]
pub fn violations(instance: &Instance, plan: &Plan) -> Vec<Violation> {
    let topology = instance.topology();
    let groups = instance.groups();
    if plan.rsnodes.len() != groups.len() {
        return vec![Violation::Length { plan: plan.rsnodes.len(), groups: groups.len() }];
    }
    let mut broken = Vec::new();
    let mut loads = vec![0_u128; topology.accelerators().len()];
    let mut taken = 0_u128;
    for (group, rsnode) in groups.iter().zip(&plan.rsnodes) {
        let Some(number) = *rsnode else { continue };
        let Some(operator) = topology.operators().get(number) else {
            broken.push(Violation::NoOperator { group: group.id.clone(), operator: number });
            continue;
        };
        if instance.barred().contains(&number) {
            broken.push(Violation::Barred { group: group.id.clone(), operator: operator.id.clone() });
        }
        let mut area = group.rack;
        while area != operator.area {
            let Some(above) = topology.areas()[area].within else { break };
            area = above;
        }
        if area != operator.area {
            broken.push(Violation::OffPath { group: group.id.clone(), operator: operator.id.clone() });
        }
        let detour_top = topology.areas()[operator.area].tier;
        for (top, rate) in group.by_tier.iter().enumerate() {
            let rate = u128::from(rate.0);
            loads[operator.accelerator] += rate * u128::from(instance.limits().packets_per_request);
            let forwardings = |highest: usize| 2 * (topology.tiers() - 1 - highest) as u128 + 1;
            taken += (forwardings(top.min(detour_top)) - forwardings(top)) * rate;
        }
    }
    for (accelerator, load) in topology.accelerators().iter().zip(loads) {
        if load > u128::from(accelerator.limit()) {
            let limit = accelerator.limit();
            broken.push(Violation::Load { accelerator: accelerator.id.clone(), load, limit });
        }
    }
    if taken > u128::from(instance.limits().extra_hops) {
        broken.push(Violation::ExtraHops { taken, limit: instance.limits().extra_hops });
    }
    broken
}
