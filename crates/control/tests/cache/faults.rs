//! Random interleavings: lost, repeated and late messages; operators, selectors and controllers that die and return. At each step `World`
//! checks that requests are lost only where an operator is down, that no id is reused too early, and that no operator obeys an older term.

use crate::world::{Faults, Path, World, times};
use midflight_control::cache::ControllerConfig;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Happening {
    KillController(usize),
    StartController(usize),
    KillOperator(usize),
    RestartOperator(usize),
    SelectorGoes(usize),
    SelectorComes(usize),
    Load(u64),
    Cut(usize, usize),
}

fn happening(operators: bool, cuts: bool) -> impl Strategy<Value = Happening> {
    let controllers = prop_oneof![
        (0..2_usize).prop_map(Happening::KillController),
        (0..2_usize).prop_map(Happening::StartController),
        (1..4_u64).prop_map(Happening::Load),
    ];
    if !operators {
        return controllers.boxed();
    }
    prop_oneof![
        3 => controllers,
        2 => (0..8_usize).prop_map(Happening::KillOperator),
        2 => (0..8_usize).prop_map(Happening::RestartOperator),
        1 => (0..8_usize).prop_map(Happening::SelectorGoes),
        1 => (0..8_usize).prop_map(Happening::SelectorComes),
        u32::from(cuts) * 2 => (0..2_usize, 0..8_usize).prop_map(|(controller, at)| Happening::Cut(controller, at)),
    ]
    .boxed()
}

fn happen(world: &mut World, happening: &Happening) {
    match *happening {
        Happening::KillController(place) => world.kill_controller(place),
        Happening::StartController(place) => {
            world.kill_controller(place);
            world.start_controller(place);
        }
        Happening::KillOperator(operator) => world.kill(operator),
        Happening::RestartOperator(operator) => world.start(operator),
        Happening::SelectorGoes(operator) => world.set_selector(operator, false),
        Happening::SelectorComes(operator) => world.set_selector(operator, true),
        Happening::Load(requests) => world.requests_per_step = requests,
        Happening::Cut(controller, operator) => drop(world.cut.insert((controller, operator))),
    }
}

/// Once all processes are back, all groups have a selector again, under one controller.
fn heals(world: &mut World) {
    world.faults = Faults::default();
    world.cut.clear();
    world.requests_per_step = 1;
    for operator in 0..world.nodes.len() {
        if !world.nodes[operator].is_up {
            world.start(operator);
        }
        world.set_selector(operator, true);
    }
    for place in 0..world.controllers.len() {
        if world.controllers[place].is_none() {
            world.start_controller(place);
        }
    }
    world.run(15_000);
    let active = world.active();
    assert_eq!(active.len(), 1);
    let status = world.controller(active[0]).status();
    assert!(world.paths().iter().all(|path| matches!(path, Path::Selected(_))), "{:?} {status:?}", world.paths());
    assert!(status.operators.iter().all(|operator| operator.is_up_to_date), "{status:?}");
    assert!(status.is_deployed, "{status:?}");
}

fn run(seed: u64, faults: Faults, happenings: &[(u64, Happening)], config: ControllerConfig) {
    let mut world = World::new(seed, 2, config);
    world.faults = faults;
    for (wait, what) in happenings {
        world.run(*wait);
        happen(&mut world, what);
    }
    world.run(1_000);
    heals(&mut world);
}

/// 48 cases of each, or `PROPTEST_CASES`.
fn cases() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { default } else { ProptestConfig { cases: 48, ..default } }
}

/// So few ids that they are reused, and frequent plans.
fn few_ids(rsnodes: u16) -> ControllerConfig {
    ControllerConfig { rsnodes, plan_every: 700_000_000, barred_for: 300_000_000, ..times() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn n6_n7_any_deaths_under_an_erring_network(
        seed: u64,
        (lost, twice, late) in (0..30_u64, 0..30_u64, 0..250_u64),
        happenings in vec((0..2_500_u64, happening(true, true)), 0..12),
    ) {
        run(seed, Faults { lost, twice, late }, &happenings, times());
    }

    /// Operators live, so no request is lost once the rules are set; ids are few, so they are reused.
    #[test]
    fn n7_controllers_die_between_any_two_messages_of_a_deployment(
        seed: u64,
        (lost, twice, late) in (0..20_u64, 0..30_u64, 0..150_u64),
        happenings in vec((0..1_500_u64, happening(false, false)), 0..24),
    ) {
        run(seed, Faults { lost, twice, late }, &happenings, few_ids(5));
    }

    /// Operators die and return, while ids are reused.
    #[test]
    fn n7_ids_of_the_dead_are_not_used_again_too_early(
        seed: u64,
        (lost, late) in (0..20_u64, 0..150_u64),
        happenings in vec((0..1_000_u64, happening(true, false)), 8..24),
    ) {
        run(seed, Faults { lost, twice: 10, late }, &happenings, few_ids(6));
    }
}
