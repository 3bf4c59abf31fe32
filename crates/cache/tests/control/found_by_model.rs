//! Traces that the model of `lab/spec/src/cache/control` has found, with the product's controllers
//! (`docs/internals/cache-controller.md#the-model`).

use crate::world::{MS, Path, World, times};
use midflight_cache::control::ControllerConfig;

/// With one RSNode id, which the returned operator has.
fn with_one_id() -> (World, usize) {
    let config = ControllerConfig { rsnodes: 1, plan_every: 500 * MS, batch: 1, ..times() };
    let mut world = World::new(1, 2, config);
    assert!(world.run_until_selected(20_000));
    world.run(1_000);
    let Path::Selected(rsnode) = world.path(0) else { panic!("{:?}", world.paths()) };
    (world, rsnode)
}

fn labels_with_it(world: &World, operator: usize) -> bool {
    world.nodes[operator].switch.labels.values().any(|&id| id == 1)
}

fn is_known(world: &World) -> bool {
    world.nodes.iter().any(|node| node.switch.rsnodes.contains_key(&1))
}

/// Operators that serve the id while `labeller` has it as a label.
fn serve_while_it_is_a_label(world: &mut World, labeller: usize) -> Vec<usize> {
    for _ in 0..1_500 {
        world.step();
        let serves = |node: &usize| world.nodes[*node].switch.rsnodes.get(&1) == Some(&None);
        let serving: Vec<usize> = (0..world.nodes.len()).filter(serves).collect();
        if world.active() == [1] && !serving.is_empty() && labels_with_it(world, labeller) {
            return serving;
        }
    }
    Vec::new()
}

/// `unheard-ignored`: an operator that has the id as a label has not answered the next controller yet.
#[test]
fn n7_an_id_is_not_given_out_while_an_operator_that_was_not_heard_of_may_know_it() {
    let (mut world, rsnode) = with_one_id();
    let labeller = (0..world.nodes.len()).find(|&node| node != rsnode && labels_with_it(&world, node)).unwrap();
    world.cut.extend([(0, labeller), (1, labeller)]);
    world.start(rsnode);
    world.run(400);
    world.kill_controller(0);
    assert!(serve_while_it_is_a_label(&mut world, labeller).is_empty());
    assert!(
        world.active() == [1] && labels_with_it(&world, labeller),
        "the other one acts, and nothing has changed there"
    );
}

/// `label-not-learned`: no operator lists the id, but one still has it as a label and carries out no order of the next controller.
#[test]
fn n7_an_id_that_is_a_label_yet_is_not_given_out_after_a_takeover() {
    let (mut world, rsnode) = with_one_id();
    world.start(rsnode);
    while is_known(&world) {
        world.step();
    }
    let labeller = (0..world.nodes.len()).find(|&node| labels_with_it(&world, node)).expect("a label yet");
    world.kill_controller(0);
    while world.active() != [1] {
        world.step();
    }
    world.cut.insert((1, labeller));
    assert!(labels_with_it(&world, labeller), "it has said what it has, and gets no order");
    assert!(serve_while_it_is_a_label(&mut world, labeller).is_empty());
}

/// The same, but the standby had heard of the silent operator before its restart: it gets the id from the previous controller.
#[test]
fn n7_an_id_is_not_given_out_while_an_operator_that_was_started_again_may_know_it() {
    let config = ControllerConfig { rsnodes: 1, plan_every: 500 * MS, batch: 1, ..times() };
    let mut world = World::new(3, 2, config);
    let silent = world.network.topology().operator("tor-3").unwrap();
    world.run(300);
    world.cut.insert((1, silent));
    world.start(silent);
    assert!(world.run_until_selected(20_000));
    let Path::Selected(rsnode) = world.path(0) else { panic!("{:?}", world.paths()) };
    world.start(rsnode);
    world.cut.insert((0, silent));
    world.run(400);
    world.kill_controller(0);
    world.run(3_000);
    world.cut.clear();
    // Until it has lost the old label.
    assert!(labels_with_it(&world, silent));
    while labels_with_it(&world, silent) {
        world.step();
        assert!(world.nodes.iter().all(|node| node.switch.rsnodes.get(&1) != Some(&None)), "the id was given out");
    }
}
