//! Failures and new plans (N6).

mod common;

use common::{group, network, small, ten};
use midflight_placement::failure::{Decision, decide, rearrange};
use midflight_placement::{Instance, Limits, Options, Outcome, Plan, Topology, solve, solve_or_degrade, violations};
use proptest::prelude::*;
use std::collections::BTreeSet;

const FREE: Limits = Limits { extra_hops: 1_000_000, packets_per_request: 1 };

/// Two core switches, and one pod of two aggregation switches and two racks; one group per rack.
fn two_racks(rates: [f64; 2], limits: Limits) -> (Topology, Instance) {
    let topology = network(2, &[(2, 2)], &ten());
    let racks: Vec<usize> = topology.racks().collect();
    let groups = (0..2).map(|at| group(&topology, at, racks[at], &[rates[at], 0.0, 1.0])).collect();
    (topology.clone(), Instance::new(topology, groups, limits))
}

fn plan(topology: &Topology, names: [&str; 2]) -> Plan {
    Plan { rsnodes: names.map(|name| topology.operator(name)).to_vec() }
}

fn failed(topology: &Topology, names: &[&str]) -> BTreeSet<usize> {
    names.iter().map(|name| topology.operator(name).expect(name)).collect()
}

#[test]
fn n6_same_tier_first_then_up_then_down() {
    let (topology, instance) = two_racks([4.0, 4.0], FREE);
    let old = plan(&topology, ["agg-0-0", "tor-0-1"]);
    let to = |names: &[&str]| {
        let [to, other] = rearrange(&instance, &old, &failed(&topology, names)).rsnodes[..] else { panic!() };
        assert_eq!(other, old.rsnodes[1]);
        to.map(|operator| topology.operators()[operator].id.clone())
    };
    assert_eq!(to(&["agg-0-0"]).as_deref(), Some("agg-0-1"));
    assert_eq!(to(&["agg-0-0", "agg-0-1"]).as_deref(), Some("core-0"));
    assert_eq!(to(&["agg-0-0", "agg-0-1", "core-0", "core-1"]).as_deref(), Some("tor-0-0"));
    assert_eq!(to(&["agg-0-0", "agg-0-1", "core-0", "core-1", "tor-0-0"]), None);
}

#[test]
fn n6_operators_in_use_come_first_in_their_tier() {
    let (topology, instance) = two_racks([4.0, 4.0], FREE);
    let old = plan(&topology, ["core-0", "core-1"]);
    let rearranged = rearrange(&instance, &old, &failed(&topology, &["core-0"]));
    assert_eq!(rearranged, plan(&topology, ["core-1", "core-1"]));
    // Two aggregation switches: the one in use has no room for both groups, so the other one is taken.
    let (topology, instance) = two_racks([8.0, 8.0], FREE);
    let old = plan(&topology, ["core-0", "agg-0-1"]);
    let rearranged = rearrange(&instance, &old, &failed(&topology, &["core-0", "core-1"]));
    assert_eq!(rearranged, plan(&topology, ["agg-0-0", "agg-0-1"]));
}

#[test]
fn n6_what_finds_no_place_within_the_constraints_stays_degraded() {
    // No extra hops are allowed, and both groups have traffic within their racks.
    let (topology, instance) = two_racks([4.0, 4.0], Limits { extra_hops: 0, ..FREE });
    let old = plan(&topology, ["tor-0-0", "tor-0-1"]);
    let rearranged = rearrange(&instance, &old, &failed(&topology, &["tor-0-0"]));
    assert_eq!(rearranged.rsnodes, vec![None, topology.operator("tor-0-1")]);
}

#[test]
fn n6_a_failed_operator_is_barred_from_the_next_plan() {
    let (topology, instance) = two_racks([4.0, 4.0], FREE);
    let before = solve(&instance, &Options::default()).solved().unwrap();
    let used = before.plan.in_use();
    let after = solve(&instance.bar(used.iter().copied()), &Options::default()).solved().unwrap();
    assert!(after.plan.in_use().is_disjoint(&used), "{}", topology.operators()[0].id);
}

#[test]
fn n6_a_new_plan_is_taken_only_if_it_is_worth_its_moves() {
    let (topology, instance) = two_racks([4.0, 4.0], FREE);
    let (two, one) = (plan(&topology, ["tor-0-0", "tor-0-1"]), plan(&topology, ["core-0", "core-0"]));
    assert_eq!(decide(&instance, &two, &one, 1), Decision::Keep);
    assert_eq!(decide(&instance, &two, &one, 0), Decision::Take, "it saves an RSNode");
    let degraded = Plan { rsnodes: vec![one.rsnodes[0], None] };
    assert_eq!(decide(&instance, &degraded, &one, 5), Decision::Take, "it serves more");
    let (_, heavier) = two_racks([4.0, 7.0], FREE);
    assert_eq!(decide(&heavier, &one, &two, 5), Decision::Take, "the old plan gives core-0 too much");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn n4_n6_algorithm_1_breaks_no_constraint_and_moves_no_other_group(
        instance in small(), which in any::<prop::sample::Index>()
    ) {
        let old = solve_or_degrade(&instance, &Options::default()).solved.plan;
        let used: Vec<usize> = old.in_use().into_iter().collect();
        prop_assume!(!used.is_empty());
        let dead = BTreeSet::from([*which.get(&used)]);
        let rearranged = rearrange(&instance, &old, &dead);
        let barred = instance.bar(dead.iter().copied());
        prop_assert_eq!(violations(&barred, &rearranged), vec![]);
        for (group, (before, after)) in old.rsnodes.iter().zip(&rearranged.rsnodes).enumerate() {
            let lost = before.is_some_and(|operator| dead.contains(&operator));
            prop_assert!(lost || before == after, "group {} moved", group);
        }
        if let Outcome::Infeasible = solve(&barred, &Options::default()) {
            prop_assert!(rearranged.under_drs().next().is_some());
        }
    }
}
