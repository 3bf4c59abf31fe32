//! No plan serves all groups: which are degraded, and the least possible number (N5).

mod common;

use common::{group, least_degraded, least_rsnodes, network, small, ten};
use midflight_placement::{Instance, Limits, Options, solve_or_degrade, violations};
use proptest::prelude::*;

const FREE: Limits = Limits { extra_hops: 1_000_000, packets_per_request: 1 };

#[test]
fn n5_heaviest_groups_go_under_drs_first_and_the_least_number_stands_beside() {
    // One ToR, one aggregation and one core switch share an accelerator for 10 packets a second.
    let mut topology = network(1, &[(1, 1)], &ten());
    topology.share(&["tor-0-0", "agg-0-0", "core-0"]).unwrap();
    let rack = topology.racks().next().unwrap();
    let rates = [6.0, 5.0, 4.0, 1.0];
    let groups = rates.iter().enumerate().map(|(number, &rate)| group(&topology, number, rack, &[rate, 0.0, 0.0]));
    let instance = Instance::new(topology.clone(), groups.collect(), FREE);
    let degraded = solve_or_degrade(&instance, &Options::default());
    assert_eq!(violations(&instance, &degraded.solved.plan), vec![]);
    // 16 are too many; without the heaviest one 10 remain.
    assert_eq!(degraded.groups, vec![0]);
    assert_eq!((degraded.least.number, degraded.least.exact), (1, true));
    assert_eq!(degraded.solved.plan.cost(), 1);
}

#[test]
fn n5_a_group_that_fits_nowhere_is_under_drs_and_no_lighter_one_with_it() {
    let topology = network(1, &[(1, 1)], &ten());
    let rack = topology.racks().next().unwrap();
    let rates = [11.0, 10.0, 9.0, 8.0];
    let groups = rates.iter().enumerate().map(|(number, &rate)| group(&topology, number, rack, &[rate, 0.0, 0.0]));
    let instance = Instance::new(topology.clone(), groups.collect(), FREE);
    let degraded = solve_or_degrade(&instance, &Options::default());
    assert_eq!(degraded.groups, vec![0]);
    assert_eq!(degraded.solved.plan.cost(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn n5_drs_leaves_a_plan_that_keeps_constraints_and_a_true_least_number(instance in small()) {
        let degraded = solve_or_degrade(&instance, &Options::default());
        prop_assert_eq!(violations(&instance, &degraded.solved.plan), vec![]);
        prop_assert_eq!(degraded.solved.plan.under_drs().count(), degraded.groups.len());
        let least = least_degraded(&instance);
        prop_assert!(degraded.least.number <= least && least <= degraded.groups.len());
        if degraded.least.exact {
            prop_assert_eq!(degraded.least.number, least);
        }
        if cfg!(feature = "ilp") {
            prop_assert_eq!(degraded.groups.is_empty(), least_rsnodes(&instance).is_some());
        }
    }
}
