//! Plans: the first one, another one, a wrong one, one that meets a new controller.

use crate::world::{MS, Path, World, times};
use midflight_cache::control::controller::{self, PlanRefused};
use midflight_cache::control::{ControllerConfig, Event, Role, Start};
use midflight_placement::{Options, Plan, Use};
use std::collections::BTreeSet;

pub(crate) fn deployed(controllers: u32) -> World {
    let mut world = World::new(1, controllers, times());
    assert!(world.run_until_selected(5_000), "{:?}", world.controller(0).status());
    world.run(1_000);
    world
}

/// The operators that select.
pub(crate) fn rsnodes(world: &World) -> BTreeSet<usize> {
    let at = |path: &Path| match path {
        Path::Selected(at) => *at,
        other => panic!("{other:?}"),
    };
    world.paths().iter().map(at).collect()
}

#[test]
fn n4_the_first_plan_is_made_of_what_the_monitors_count_of_degraded_requests() {
    let mut world = World::new(1, 1, times());
    world.run(500);
    assert_eq!(world.paths(), [Path::Backup; 4], "rules are set, and all groups degraded");
    assert!(world.run_until_selected(3_000));
    // 400 requests per second, of which an accelerator takes 500.
    assert_eq!(rsnodes(&world).len(), 1);
    world.run(1_000);
    let status = world.controller(0).status();
    assert!(status.is_deployed && status.operators.iter().all(|operator| operator.is_up_to_date), "{status:?}");
    assert!(world.events.iter().any(|(_, event)| matches!(event, Event::Deployed)));
}

#[test]
fn n4_the_start_may_be_at_the_racks_own_operators() {
    let mut world = World::new(1, 1, ControllerConfig { start: Start::OwnRack, ..times() });
    world.is_planning = false;
    assert!(world.run_until_selected(2_000));
    assert_eq!(rsnodes(&world).len(), 4);
}

#[test]
fn n5_a_plan_that_is_late_or_wrong_or_of_other_operators_changes_nothing() {
    let mut world = World::new(1, 1, times());
    world.is_planning = false;
    let wanted = loop {
        world.step();
        if let Some((_, Event::PlanWanted(wanted))) = world.events.pop() {
            break wanted;
        }
    };
    let good = wanted.solve(&Options { methods: Use::FirstFit, ..Options::default() });
    let now = world.now;
    let target = world.controller(0).status().target;
    assert_eq!(world.controller(0).planned(now, 77, &good), Err(PlanRefused::NotWanted(77)));
    let tor = world.network.topology().operator("tor-0");
    let off_path = Plan { rsnodes: vec![tor; 4] };
    assert!(matches!(world.controller(0).planned(now, wanted.number, &off_path), Err(PlanRefused::Violates { .. })));
    let again = world.controller(0).planned(now, wanted.number, &good);
    assert_eq!(again, Err(PlanRefused::NotWanted(wanted.number)), "an answer ends a question");
    assert_eq!(world.controller(0).status().target, target);
    // Of a network in which an operator has failed since.
    world.events.clear();
    let wanted = loop {
        world.step();
        if let Some((_, Event::PlanWanted(wanted))) = world.events.pop() {
            break wanted;
        }
    };
    world.kill(0);
    world.run(650);
    let now = world.now;
    let late = world.controller(0).planned(now, wanted.number, &good);
    assert_eq!(late, Err(PlanRefused::NotWanted(wanted.number)));
}

#[test]
fn n7_counts_that_cannot_be_true_change_no_plan() {
    let mut world = deployed(1);
    let before = world.controller(0).status();
    for node in &mut world.nodes {
        node.switch.counts.values_mut().for_each(|counts| counts[0] /= 2);
    }
    world.run(700);
    for node in &mut world.nodes {
        node.switch.counts.values_mut().for_each(|counts| counts[0] = u64::MAX - 1_000_000);
    }
    world.run(700);
    for node in &mut world.nodes {
        node.switch.counts.values_mut().for_each(|counts| counts[0] = 7);
    }
    world.run(3_000);
    let after = world.controller(0).status();
    assert_eq!(after.target, before.target);
    assert!(after.counters.statistics_backwards >= 4 && after.counters.statistics_invalid >= 4, "{:?}", after.counters);
}

#[test]
fn n7_a_standby_takes_over_and_changes_nothing() {
    let mut world = deployed(2);
    let before: Vec<_> = world.nodes.iter().map(|node| node.switch.labels.clone()).collect();
    let paths = world.paths();
    world.kill_controller(0);
    world.is_planning = false;
    for _ in 0..400 {
        world.step();
        assert_eq!(world.paths(), paths);
    }
    assert_eq!(world.active(), [1]);
    let after: Vec<_> = world.nodes.iter().map(|node| node.switch.labels.clone()).collect();
    assert_eq!(after, before);
    let status = world.controller(1).status();
    assert!(status.operators.iter().all(|operator| operator.is_up_to_date) && status.is_deployed, "{status:?}");
    // The first one returns, and is a standby now.
    world.start_controller(0);
    world.run(5_000);
    assert_eq!(world.active(), [1]);
    assert_eq!(world.controller(0).role(), Role::Standby);
}

/// N7: `World` checks for how long; also if the controller that removed the id is dead by then.
#[test]
fn n7_the_id_of_a_failed_rsnode_rests_also_under_the_next_controller() {
    for is_killed in [false, true] {
        let config = ControllerConfig { rsnodes: 1, longest_response: 3_500 * MS, plan_every: 500 * MS, ..times() };
        let mut world = World::new(1, 2, config);
        assert!(world.run_until_selected(9_000));
        world.start(*rsnodes(&world).first().unwrap());
        world.run(400);
        assert!(world.nodes.iter().all(|node| node.switch.rsnodes.is_empty()), "it is removed");
        if is_killed {
            world.kill_controller(0);
        }
        assert!(world.run_until_selected(15_000), "{:?}", world.paths());
    }
}

/// At once when all rules of the previous term are removed, and later periodically.
#[test]
fn n7_what_an_operator_has_refused_is_sent_again() {
    let mut world = World::new(1, 1, times());
    let hosts = world.network.hosts().len();
    world.nodes[0].switch.is_full = true;
    world.run(1_500);
    assert_eq!(world.nodes[0].switch.told_of_hosts, 2 * hosts);
    let refused =
        |world: &World| world.events.iter().filter(|(_, event)| matches!(event, Event::OrderRefused { .. })).count();
    assert_eq!(refused(&world), hosts, "said once");
    world.nodes[0].switch.is_full = false;
    world.run(2_500);
    assert_eq!((world.nodes[0].switch.told_of_hosts, refused(&world)), (3 * hosts, hosts));
    assert!(world.run_until_selected(3_000), "{:?}", world.paths());
}

/// At the first start no operator knows any id, so a missing operator delays nothing.
#[test]
fn n4_the_first_plan_does_not_wait_for_an_operator_that_is_not_there() {
    let mut world = World::new(1, 1, times());
    let missing = world.network.topology().operator("tor-3").unwrap();
    world.kill(missing);
    world.run(5_000);
    let others = world.paths().into_iter().filter(|path| *path != Path::Down(missing));
    assert!(others.clone().all(|path| matches!(path, Path::Selected(_))), "{:?}", world.paths());
    assert_eq!(others.count(), 3);
}

/// A standby's own pause is no silence of operators: it has not read their answers yet.
#[test]
fn n7_a_standby_that_stands_still_while_it_takes_over_removes_nothing() {
    let mut world = World::new(1, 2, ControllerConfig { start: Start::OwnRack, ..times() });
    world.is_planning = false;
    assert!(world.run_until_selected(2_000));
    world.run(1_000);
    let (paths, ids) = (world.paths(), world.controller(0).status().ids);
    world.kill_controller(0);
    while !matches!(world.controller(1).role(), Role::Claiming(_)) {
        world.step();
    }
    // It asks, and the operators answer.
    world.step();
    world.step();
    world.now += 3_000 * MS;
    world.run(1_000);
    assert_eq!(world.active(), [1]);
    assert_eq!((world.paths(), world.controller(1).status().ids), (paths, ids));
}

#[test]
fn n7_ids_come_free_although_an_operator_does_not_obey() {
    let config = ControllerConfig { start: Start::OwnRack, forget_after: 5_000 * MS, ..times() };
    let mut world = World::new(1, 1, config);
    world.is_planning = false;
    assert!(world.run_until_selected(2_000));
    let stuck = world.network.topology().operator("core-1").unwrap();
    world.nodes[stuck].is_stuck = true;
    world.is_planning = true;
    world.run(4_500);
    let removing = |world: &mut World| {
        world.controller(0).status().ids.iter().filter(|(.., used)| *used == controller::Use::Removing).count()
    };
    assert!(removing(&mut world) >= 3, "it may still know them");
    world.run(6_000);
    assert_eq!(removing(&mut world), 0);
}
