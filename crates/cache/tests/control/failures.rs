//! Failures of an operator, a selector or a controller, each by itself (N6).

use crate::plans::{deployed, rsnodes};
use crate::world::{MS, Path, STEP, TOPOLOGY, World, times};
use midflight_cache::control::controller::Failure;
use midflight_cache::control::{Ask, ControlMessage, ControllerConfig, Event, Role, Start, TERM_MAX, Term};
use std::collections::BTreeSet;

fn failures(world: &World) -> Vec<(usize, Failure)> {
    let failed = |(_, event): &(usize, Event)| match event {
        Event::OperatorFailed { operator, why, .. } => Some((*operator, *why)),
        _ => None,
    };
    world.events.iter().filter_map(failed).collect()
}

#[test]
fn n6_an_operator_that_was_dead_is_in_no_plan_until_it_has_been_back_for_a_while() {
    let mut world = deployed(1);
    let dead = *rsnodes(&world).first().unwrap();
    world.kill(dead);
    world.run(1_000);
    world.start(dead);
    world.run(500);
    let status = world.controller(0).status();
    assert!(status.operators[dead].is_alive && status.operators[dead].is_barred);
    assert!(status.operators[dead].is_up_to_date, "it has all its rules again");
    world.run(1_500);
    assert!(!world.controller(0).status().operators[dead].is_barred);
}

#[test]
fn n6_a_selector_that_starts_again_gets_the_replica_groups() {
    let mut world = deployed(1);
    let again = rsnodes(&world);
    world.set_selector(*again.first().unwrap(), true);
    assert_eq!(world.path(0), Path::Backup);
    world.run(500);
    assert_eq!(rsnodes(&world), again);
}

#[test]
fn n6_an_accelerator_that_gets_too_much_is_relieved() {
    let mut world = World::new(1, 1, ControllerConfig { plan_every: 60_000 * MS, ..times() });
    assert!(world.run_until_selected(5_000));
    world.run(1_000);
    let before = rsnodes(&world);
    world.requests_per_step = 3;
    world.run(4_000);
    assert!(world.events.iter().any(|(_, event)| matches!(event, Event::Overloaded { groups: 4, .. })));
    assert!(world.run_until_selected(6_000));
    assert!(rsnodes(&world).len() > before.len(), "1,200 requests a second need three");
}

#[test]
fn n6_of_two_controllers_that_believe_to_be_active_the_older_one_steps_down_when_it_hears_of_the_other() {
    let mut world = deployed(2);
    // The first one reaches only two operators.
    let far: Vec<_> = (2..world.nodes.len()).map(|operator| (0, operator)).collect();
    world.cut.extend(far);
    world.cut.extend([(1, 0), (1, 1)]);
    world.run(4_000);
    assert_eq!(world.active(), [0, 1], "both: neither hears of the other");
    world.cut.clear();
    world.run(1_000);
    assert_eq!(world.active(), [1]);
    assert!(world.run_until_selected(5_000));
}

#[test]
fn n6_who_hears_of_few_operators_does_not_take_over() {
    let mut world = World::new(1, 1, times());
    world.cut.extend((0..4).map(|operator| (0, operator)));
    world.run(5_000);
    assert_eq!(world.controller(0).role(), Role::Standby, "4 of 8");
    world.cut.remove(&(0, 0));
    world.run(2 * STEP / MS + 1_000);
    assert!(matches!(world.controller(0).role(), Role::Active(_)));
}

/// Two operators share an accelerator for 500 requests per second. One has 300 and dies; then the other one may have them.
#[test]
fn n6_the_load_of_a_dead_operator_does_not_count_any_more() {
    let shared = r#"
accelerators = [{ id = "shared", cores = 1, service_time_us = 1000.0, utilisation = 0.5, switches = ["tor-0", "agg-0"] }]
"#;
    let config = ControllerConfig { start: Start::OwnRack, ..times() };
    let mut world = World::with_topology(1, 1, config, &(TOPOLOGY.to_owned() + shared));
    world.is_planning = false;
    assert!(world.run_until_selected(2_000));
    let dies = world.network.topology().operator("agg-0").unwrap();
    // At `tor-0`, whose rack has all the requests of its group.
    let is_overloaded = |world: &mut World, requests: u64, steps: usize| {
        world.requests_per_step = requests;
        for _ in 0..steps {
            let node = &mut world.nodes[dies];
            node.switch.load.selected += if node.is_up { 3 } else { 0 };
            world.step();
        }
        world.events.iter().any(|(_, event)| matches!(event, Event::Overloaded { .. }))
    };
    assert!(!is_overloaded(&mut world, 1, 400), "100 and 300");
    world.kill(dies);
    assert!(!is_overloaded(&mut world, 1, 100), "until it is found dead");
    assert!(!is_overloaded(&mut world, 4, 600), "400 alone");
    assert!(is_overloaded(&mut world, 6, 600), "600 are too much");
}

#[test]
fn n6_a_controller_that_stood_still_takes_nobody_for_dead() {
    let mut world = deployed(1);
    let paths = world.paths();
    for stands_ms in [600, 5_000, 60_000] {
        world.now += stands_ms * MS;
        world.run(1_000);
        assert_eq!((failures(&world), world.paths()), (vec![], paths.clone()), "{stands_ms} ms");
    }
    let dead = *rsnodes(&world).first().unwrap();
    world.kill(dead);
    world.run(1_000);
    assert_eq!(failures(&world), [(dead, Failure::Silent)], "it finds who is");
}

#[test]
fn n6_a_controller_that_has_lost_all_its_links_takes_nobody_for_dead() {
    let mut world = deployed(1);
    let paths = world.paths();
    let operators = world.nodes.len();
    world.cut.extend((0..operators).map(|operator| (0, operator)));
    world.run(5_000);
    world.cut.clear();
    world.run(2_000);
    assert_eq!((failures(&world), world.paths()), (vec![], paths));
}

#[test]
fn n6_an_operator_that_answers_and_does_not_obey_holds_up_nobody() {
    let mut world = deployed(1);
    let stuck = *rsnodes(&world).first().unwrap();
    world.nodes[stuck].is_stuck = true;
    // More traffic: another plan, of which all operators must hear.
    world.requests_per_step = 2;
    world.run(6_000);
    assert_eq!(failures(&world), [(stuck, Failure::Stuck)]);
    let status = world.controller(0).status();
    assert!(status.is_deployed && status.operators[stuck].is_barred, "{status:?}");
    assert!(world.paths().iter().all(|path| matches!(path, Path::Selected(at) if *at != stuck)), "{:?}", world.paths());
    world.nodes[stuck].is_stuck = false;
    world.run(2_500);
    let status = world.controller(0).status();
    assert!(status.operators[stuck].is_up_to_date && !status.operators[stuck].is_barred, "{status:?}");
}

/// A lack of room is the operator's own failure, not that of one RSNode after the other.
#[test]
fn n6_an_operator_that_refuses_several_rsnodes_fails_itself() {
    let mut world = deployed(1);
    let first = *rsnodes(&world).first().unwrap();
    let refuses = ["core-0", "core-1"].map(|switch| world.network.topology().operator(switch).unwrap());
    let refuses = *refuses.iter().find(|&&operator| operator != first).unwrap();
    world.start(refuses);
    world.nodes[refuses].switch.refuses_rsnodes = true;
    world.run(6_000);
    let expected = [(refuses, Failure::Restarted), (first, Failure::Refuses), (refuses, Failure::RefusesOthers)];
    assert_eq!(failures(&world), expected, "the second RSNode has not failed");
    assert!(
        world.paths().iter().all(|path| matches!(path, Path::Selected(at) if *at != refuses)),
        "{:?}",
        world.paths()
    );
    let status = world.controller(0).status();
    assert!(status.is_deployed && status.operators[refuses].is_barred, "{status:?}");
    // It has room again.
    world.nodes[refuses].switch.refuses_rsnodes = false;
    world.run(4_000);
    assert!(!world.controller(0).status().operators[refuses].is_barred);
    assert_eq!(failures(&world), expected);
}

/// It refuses two at the same time: neither has failed.
#[test]
fn n6_an_operator_that_refuses_several_rsnodes_at_once_costs_none_of_them() {
    let mut world = World::new(1, 1, ControllerConfig { start: Start::OwnRack, ..times() });
    world.is_planning = false;
    assert!(world.run_until_selected(2_000));
    let refuses = world.network.topology().operator("core-0").unwrap();
    world.start(refuses);
    world.nodes[refuses].switch.refuses_rsnodes = true;
    world.run(3_000);
    assert_eq!(failures(&world), [(refuses, Failure::Restarted), (refuses, Failure::RefusesOthers)]);
    assert_eq!(rsnodes(&world).len(), 4);
}

/// An operator that works again serves its rack as at the start.
#[test]
fn n6_without_traffic_groups_begin_again_when_their_operator_works_again() {
    let config = ControllerConfig { start: Start::OwnRack, barred_for: 60_000 * MS, ..times() };
    let mut world = World::new(1, 1, config);
    world.requests_per_step = 0;
    assert!(world.run_until_selected(2_000));
    let at = |world: &World, switch: &str| world.network.topology().operator(switch).unwrap();
    let (out_of_reach, dies) = (at(&world, "tor-1"), at(&world, "tor-2"));
    world.cut.insert((0, out_of_reach));
    world.kill(dies);
    world.run(2_000);
    assert_eq!(failures(&world).len(), 2);
    world.cut.clear();
    world.start(dies);
    assert!(world.run_until_selected(4_000), "{:?}", world.paths());
    assert_eq!(rsnodes(&world).len(), 4, "each its own");
    assert_eq!(world.controller(0).status().counters.plans_wanted, 0);
}

#[test]
fn n6_an_operator_that_is_started_after_its_controller_is_not_barred() {
    let mut world = World::new(1, 1, ControllerConfig { start: Start::OwnRack, barred_for: 60_000 * MS, ..times() });
    world.requests_per_step = 0;
    let late = world.network.topology().operator("tor-0").unwrap();
    world.kill(late);
    world.run(3_000);
    assert!(matches!(world.controller(0).role(), Role::Active(_)));
    world.start(late);
    assert!(world.run_until_selected(2_000), "{:?}", world.paths());
    assert!(!world.controller(0).status().operators[late].is_barred);
}

#[test]
fn n6_an_operator_that_was_stuck_may_be_planned_again_also_after_a_step_down() {
    let mut world = deployed(2);
    let stuck = *rsnodes(&world).first().unwrap();
    world.nodes[stuck].is_stuck = true;
    world.requests_per_step = 2;
    world.run(6_000);
    assert_eq!(failures(&world), [(stuck, Failure::Stuck)]);
    // The first controller is cut off until the other one has taken over, which then dies.
    world.cut.extend((0..world.nodes.len()).map(|operator| (0, operator)));
    world.run(4_000);
    world.cut.clear();
    world.run(500);
    assert_eq!(world.active(), [1]);
    world.nodes[stuck].is_stuck = false;
    world.kill_controller(1);
    world.run(6_000);
    assert_eq!(world.active(), [0]);
    assert!(!world.controller(0).status().operators[stuck].is_barred);
}

#[test]
fn n6_an_operator_whose_selector_came_back_while_nobody_looked_may_be_planned_again() {
    let mut world = deployed(2);
    let without = *rsnodes(&world).first().unwrap();
    world.set_selector(without, false);
    world.run(2_000);
    assert!(world.controller(0).status().operators[without].is_barred);
    world.cut.extend((0..world.nodes.len()).map(|operator| (0, operator)));
    world.run(4_000);
    world.set_selector(without, true);
    world.cut.clear();
    world.run(500);
    world.kill_controller(1);
    world.run(6_000);
    assert_eq!(world.active(), [0]);
    assert!(!world.controller(0).status().operators[without].is_barred);
}

/// After a takeover with an operator out of reach no id is allocated.
#[test]
fn n6_groups_move_to_rsnodes_that_there_are_while_no_id_may_be_given_out() {
    let config = ControllerConfig { start: Start::OwnRack, ..times() };
    let mut world = World::new(1, 2, config);
    world.is_planning = false;
    assert!(world.run_until_selected(2_000));
    let at = |world: &World, switch: &str| world.network.topology().operator(switch).unwrap();
    let (silent, dies) = (at(&world, "core-1"), at(&world, "tor-1"));
    world.cut.insert((1, silent));
    world.kill_controller(0);
    world.run(4_000);
    assert_eq!(world.active(), [1]);
    world.is_planning = true;
    world.run(4_000);
    let before: BTreeSet<u16> = world.controller(1).status().ids.iter().map(|(id, ..)| *id).collect();
    assert!(before.iter().all(|id| *id <= 4), "no new one: {before:?}");
    world.kill(dies);
    world.run(4_000);
    let selected = world.paths().into_iter().filter(|path| *path != Path::Down(dies));
    assert!(selected.clone().all(|path| matches!(path, Path::Selected(_))), "{:?}", world.paths());
    assert_eq!(selected.count(), 3);
}

/// An operator that dies of each of its orders, and is restarted each time.
#[test]
fn n6_an_operator_that_starts_again_and_again_holds_up_nobody() {
    let mut world = deployed(1);
    let victim = *rsnodes(&world).first().unwrap();
    let before = world.controller(0).status().counters;
    world.requests_per_step = 2;
    for _ in 0..40 {
        world.start(victim);
        world.nodes[victim].is_stuck = true;
        world.run(200);
    }
    let status = world.controller(0).status();
    assert!(status.is_deployed, "{status:?}");
    let selected = |group: u16| matches!(world.path(group), Path::Selected(at) if at != victim);
    assert!(
        (0..4).all(|group| selected(group) || world.network.labeller(group.into()) == victim),
        "{:?}",
        world.paths()
    );
    let wanted = status.counters.plans_wanted - before.plans_wanted;
    assert!(wanted <= 6, "{wanted} plans in 8 s, of which one is due every 2 s");
}

/// No controller could have a greater term than the largest number.
#[test]
fn n6_an_impossible_term_is_not_followed() {
    let mut world = World::new(1, 2, times());
    let largest = Term { number: TERM_MAX, controller: u64::MAX };
    let ask = ControlMessage::Ask(Ask { number: 1, term: Some(largest), inventory: None });
    for _ in 0..2 {
        let now = world.now;
        for node in &mut world.nodes {
            let answer = node.keeper.handle(now, &ask, &mut node.switch).unwrap();
            assert!(matches!(answer, ControlMessage::Refused(_)), "{answer:?}");
        }
        world.run(6_000);
        assert_eq!(world.active(), [0]);
    }
    let status = world.controller(0).status();
    assert_eq!((status.role.term().unwrap().number, status.counters.steps_down), (1, 0));
    assert!(status.operators.iter().all(|operator| operator.is_alive));
    world.kill_controller(0);
    world.run(5_000);
    assert_eq!(world.active(), [1], "and the next one can take over");
}

/// A controller that has just started does not know how many terms there were.
#[test]
fn n6_a_high_term_of_most_operators_is_exceeded() {
    let mut world = World::new(1, 1, times());
    let high = Term { number: 1 << 40, controller: 1 };
    let ask = ControlMessage::Ask(Ask { number: 1, term: Some(high), inventory: None });
    let now = world.now;
    for node in &mut world.nodes {
        node.keeper.handle(now, &ask, &mut node.switch).unwrap();
    }
    world.run(4_000);
    let term = world.controller(0).role().term();
    assert_eq!(term.map(|term| term.number), Some((1 << 40) + 1));
}
