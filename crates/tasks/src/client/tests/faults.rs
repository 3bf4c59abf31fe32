//! With any network faults each task gets exactly one final event; without faults nothing is sent twice.

use super::super::Counters;
use super::world::{Faults, World};
use super::*;
use proptest::prelude::*;

fn faults() -> impl Strategy<Value = Faults> {
    let network = (any::<u64>(), 0..30_u32, 0..20_u32, 1..50_u64, 1..200_usize, 0..4_usize);
    let executors = (0..20_u32, 0..20_u32, 0..50_u32, 0..30_u32, 0..10_u32, any::<bool>());
    let caller = (0..30_u32, prop::option::of(20..500_u64), any::<bool>(), 1..300_usize);
    (network, executors, caller).prop_map(|(network, executors, caller)| Faults {
        seed: network.0,
        lost: network.1,
        repeated: network.2,
        delay_max: network.3 * MS,
        capacity: network.4,
        switch_deaths: network.5,
        failed: executors.0,
        abandoned: executors.1,
        by_reference: executors.2,
        fetch_fails: executors.3,
        executor_dies: executors.4,
        no_record: executors.5,
        cancelled: caller.0,
        timeout: caller.1.map(|ms| ms * MS),
        retry_failed: caller.2,
        tasks: caller.3,
        ..fair()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t7_t8_t9_each_task_gets_exactly_one_final_event(faults in faults()) {
        let counters = live_through(faults)?;
        prop_assert_eq!((counters.bad_answers, counters.too_old), (0, 0));
    }
}

pub(super) fn live_through(faults: Faults) -> Result<Counters, TestCaseError> {
    let mut world = World::new(faults);
    world.run();
    prop_assert_eq!(world.client.open(), 0);
    prop_assert_eq!(world.ended.len() as u64, world.submitted);
    prop_assert!(world.ended.values().all(|&times| times == 1));
    let counters = world.client.counters();
    prop_assert_eq!(counters.completed + counters.lost + counters.cancelled, world.submitted);
    prop_assert_eq!(counters.malformed, 0);
    Ok(*counters)
}

pub(super) fn fair() -> Faults {
    let end = 3_600_000 * MS;
    Faults { seed: 1, delay_max: MS, capacity: 1_000, tasks: 500, calm_from: Nanos::MAX, end, ..Faults::default() }
}

#[test]
fn t8_without_faults_nothing_is_sent_twice() {
    let mut world = World::new(fair());
    world.run();
    let counters = world.client.counters();
    assert_eq!(counters.completed, 500);
    assert_eq!((counters.retransmitted, counters.completions_ignored, counters.full), (0, 0, 0));
}

#[test]
fn t9_with_faults_each_remedy_is_needed_and_all_tasks_complete() {
    let foul = Faults { lost: 20, repeated: 20, delay_max: 40 * MS, capacity: 40, executor_dies: 5, ..fair() };
    let mut seen = [0; 7];
    for seed in 0..6 {
        let mut world = World::new(Faults { seed, switch_deaths: 5, by_reference: 20, fetch_fails: 2, ..foul.clone() });
        world.run();
        let c = world.client.counters();
        assert_eq!(c.completed + c.lost, 500);
        let remedies = [c.retransmitted, c.resubmitted, c.gone, c.full, c.retried, c.failovers, c.completions_ignored];
        seen.iter_mut().zip(remedies).for_each(|(all, one)| *all += one);
    }
    assert!(seen.iter().all(|&times| times > 0), "{seen:?}");
}

#[test]
fn t10_without_a_record_tasks_that_died_are_submitted_again_and_all_complete() {
    let foul = Faults { lost: 10, repeated: 10, capacity: 400, executor_dies: 10, no_record: true, ..fair() };
    for seed in 0..4 {
        let mut world = World::new(Faults { seed, ..foul.clone() });
        world.run();
        let counters = world.client.counters();
        assert_eq!((counters.completed, counters.resubmitted), (500, 0));
        assert!(counters.gone > 25, "{}", counters.gone);
    }
}
