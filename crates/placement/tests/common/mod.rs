//! Small random instances, and their optimum by exhaustive search.

#![allow(dead_code, reason = "each test uses a part")]

use midflight_placement::{Accelerator, Group, Instance, Limits, Plan, Rate, Topology, input, violations};
use proptest::prelude::*;

/// A network of three tiers: the number of core switches, then for each pod the numbers of aggregation switches and racks.
pub(crate) fn network(core: usize, pods: &[(usize, usize)], each: &Accelerator) -> Topology {
    let names = |prefix: &str, count: usize| {
        (0..count).map(|number| format!("\"{prefix}{number}\"")).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("core = [{}]\n", names("core-", core));
    for (pod, &(switches, _)) in pods.iter().enumerate() {
        text += &format!("[[pods]]\nid = \"pod-{pod}\"\nswitches = [{}]\n", names(&format!("agg-{pod}-"), switches));
    }
    for (pod, &(_, racks)) in pods.iter().enumerate() {
        for rack in 0..racks {
            text += &format!(
                "[[racks]]\nid = \"rack-{pod}-{rack}\"\nwithin = \"pod-{pod}\"\ntor = \"tor-{pod}-{rack}\"\nhosts = 8\n"
            );
        }
    }
    input::topology(&text, each).expect("the network is right")
}

/// A group of a whole rack, or one of several of it.
pub(crate) fn group(topology: &Topology, number: usize, rack: usize, per_s: &[f64]) -> Group {
    let by_tier = per_s.iter().map(|&rate| Rate::from_per_s(rate).expect("a rate")).collect();
    assert!(topology.racks().any(|other| other == rack));
    Group { id: format!("group-{number}"), rack, hosts: vec![format!("host-{number}")], by_tier }
}

/// One core and T_max of 10 packets per second: small numbers make ties and exact fits likely.
pub(crate) fn ten() -> Accelerator {
    Accelerator { id: "ten".into(), cores: 1, service_time_us: 1e5, utilisation: 1.0 }
}

/// At most six groups and seven operators; some accelerators differ or are shared, some operators are barred.
pub(crate) fn small() -> impl Strategy<Value = Instance> {
    let pods =
        prop_oneof![Just(vec![(1, 1)]), Just(vec![(2, 2)]), Just(vec![(1, 1), (1, 1)]), Just(vec![(1, 2), (1, 1)])];
    let rates = prop::collection::vec((any::<prop::sample::Index>(), 0_u32..5, 0_u32..4, 0_u32..3), 1..=6);
    let strange = (any::<bool>(), prop::collection::vec(any::<prop::sample::Index>(), 0..3), 0_u32..3);
    (1_usize..=2, pods, rates, strange, 0_u64..60, 1_u64..=2, any::<prop::sample::Index>(), 0_u32..4).prop_map(
        |(core, pods, rates, (unequal, shared, more), hops, packets, barred, bar)| {
            let mut topology = network(core, &pods, &ten());
            if shared.len() == 2 {
                let ids: Vec<String> = topology.operators().iter().map(|operator| operator.id.clone()).collect();
                let (one, two) = (shared[0].get(&ids), shared[1].get(&ids));
                topology.share(&[one, two]).expect("both exist");
            }
            if unequal {
                let strong = more as usize;
                for (number, accelerator) in topology.accelerators_mut().iter_mut().enumerate() {
                    accelerator.utilisation = if number % 3 == strong { 1.0 } else { 0.6 };
                }
            }
            let racks: Vec<usize> = topology.racks().collect();
            let group_of = |(number, (rack, far, pod, near)): (usize, (prop::sample::Index, u32, u32, u32))| {
                let rates = [f64::from(far), f64::from(pod), f64::from(near)];
                group(&topology, number, *rack.get(&racks), &rates)
            };
            let groups: Vec<Group> = rates.into_iter().enumerate().map(group_of).collect();
            let operators = topology.operators().len();
            assert!(operators <= 7 && groups.len() <= 6);
            let limits = Limits { extra_hops: hops * 1000, packets_per_request: packets };
            let instance = Instance::new(topology, groups, limits);
            if bar == 0 { instance.bar([barred.index(operators)]) } else { instance }
        },
    )
}

/// The least number of RSNodes of a plan that serves all groups, by exhaustive search.
pub(crate) fn least_rsnodes(instance: &Instance) -> Option<usize> {
    all_plans(instance, false)
        .into_iter()
        .filter(|plan| violations(instance, plan).is_empty())
        .map(|plan| plan.cost())
        .min()
}

pub(crate) fn least_degraded(instance: &Instance) -> usize {
    let plans = all_plans(instance, true).into_iter().filter(|plan| violations(instance, plan).is_empty());
    plans.map(|plan| plan.under_drs().count()).min().expect("all groups under DRS break nothing")
}

fn all_plans(instance: &Instance, degraded: bool) -> Vec<Plan> {
    let mut plans = vec![vec![]];
    for group in 0..instance.groups().len() {
        let mut options: Vec<Option<usize>> = instance.on_path(group).map(Some).collect();
        if degraded {
            options.push(None);
        }
        plans = plans
            .into_iter()
            .flat_map(|plan: Vec<Option<usize>>| {
                options.iter().map(move |&option| plan.iter().copied().chain([option]).collect()).collect::<Vec<_>>()
            })
            .collect();
    }
    plans.into_iter().map(|rsnodes| Plan { rsnodes }).collect()
}
