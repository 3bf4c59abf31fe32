//! Packets meet the rules that a controller deploys.

use crate::world::{World, wait_until};
use midflight_cache::control::Role;
use midflight_dataplane::cache::Selection;
use std::sync::atomic::Ordering::Relaxed;

/// N1, N2: each request passes the selector of its rack once, and so does its answer.
#[test]
fn n1_requests_pass_the_selector_that_the_plan_names() {
    let world = World::new();
    let controller = world.controller(|_| ());
    wait_until("the plan is deployed", || {
        let status = controller.report().status;
        status.is_deployed && status.labels[0].is_some() && status.operators.iter().all(|o| o.is_up_to_date)
    });
    let outcomes = world.client().read(300);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // A plan from the first counts may have moved the group already.
    let selectors = ["tor-0", "core-0"].map(|name| world.operator(name).selector.clone().unwrap());
    let reports = || selectors.each_ref().map(|selector| selector.report());
    wait_until("answers have come to the selectors", || {
        reports().iter().map(|r| r.rsnode.answered).sum::<u64>() >= 300
    });
    let reports = reports();
    let served: u64 = world.backends.iter().map(|backend| backend.served.load(Relaxed)).sum();
    let selected: u64 = reports.iter().map(|report| report.rsnode.selected).sum();
    assert_eq!(served, selected, "{reports:?}");
    assert!(
        reports[0].rsnode.selected > 0 && reports[0].busy.as_nanos() > 0 && reports[0].ring_full == 0,
        "{reports:?}"
    );
    wait_until("counts are published", || world.operator("tor-0").switch.stats().delivered >= 300);
    let stats = world.operator("tor-0").switch.stats();
    assert_eq!((stats.degraded, stats.without_rsnode), (0, 0));
}

/// The same with selection in the operators' cores, without a selector thread.
#[test]
fn n1_operators_select_by_themselves() {
    let world = World::with(Selection::LeastOutstanding);
    let controller = world.controller(|_| ());
    wait_until("the group has its RSNode", || controller.report().status.labels[0].is_some());
    assert!(world.client().read(300).iter().all(Result::is_ok));
    let stats = || ["tor-0", "core-0"].map(|name| world.operator(name).switch.stats());
    wait_until("answers have taught the operators", || stats().iter().map(|stats| stats.answered).sum::<u64>() >= 300);
    let served: u64 = world.backends.iter().map(|backend| backend.served.load(Relaxed)).sum();
    wait_until("all that was served was selected", || {
        stats().iter().map(|stats| stats.selected).sum::<u64>() == served
    });
    assert!(stats().iter().all(|stats| (stats.copied, stats.unknown_group, stats.unmatched) == (0, 0, 0)));
}

#[test]
fn n5_traffic_is_counted_and_planned_for() {
    let world = World::new();
    let controller = world.controller(|config| {
        config.window = 200_000_000;
        config.plan_every = 500_000_000;
        config.hysteresis = 0;
    });
    let mut client = world.client();
    wait_until("there is a plan", || {
        client.read(20);
        controller.report().plan.is_some()
    });
    let plan = controller.report().plan.unwrap();
    assert_eq!((plan.rsnodes, plan.bound, plan.degraded), (1, 1, 0));
}

/// N6: the RSNode dies; its group is degraded, and all reads are answered.
#[test]
fn n6_a_killed_rsnode_degrades_its_group() {
    let mut world = World::new();
    let controller = world.controller(|config| config.barred_for = 60_000_000_000);
    wait_until("the group has its RSNode", || controller.report().status.labels[0].is_some());
    let mut client = world.client();
    assert!(client.read(50).iter().all(Result::is_ok));
    let (before, label) = (world.selected("tor-0"), controller.report().status.labels[0]);
    assert!(before >= 50);
    // The selector dies and the operator survives: its keeper reports it.
    let operator = world.operators[0].as_mut().unwrap();
    operator.selector.as_ref().unwrap().end_thread();
    wait_until("its group is degraded, or at another RSNode", || {
        let status = controller.report().status;
        status.counters.failures == 1 && status.labels[0] != label
    });
    // Counts are published at intervals.
    let diverted = |world: &World, delivered: u64| {
        let stats = || world.operator("tor-0").switch.stats();
        wait_until("counts are published", || stats().delivered >= delivered);
        (stats().selected, stats().delivered)
    };
    let (diverted_before, delivered) = diverted(&world, before);
    assert!(diverted_before >= before);
    assert!(client.read(200).iter().all(Result::is_ok));
    // None went to the dead selector.
    assert_eq!((world.selected("tor-0"), diverted(&world, delivered + 200).0), (before, diverted_before));
}

/// A blocked selector: datagrams that find the ring full are dropped and counted, and nothing else blocks.
#[test]
fn n8_what_finds_the_ring_to_the_selector_full_is_counted() {
    let world = World::new();
    // The keeper waits for the selector too.
    let controller = world.controller(|config| config.dead_after = 60_000_000_000);
    wait_until("the group has its RSNode", || controller.report().status.labels[0].is_some());
    let mut client = world.client();
    assert!(client.read(10).iter().all(Result::is_ok));
    let (operator, packet) = (world.operator("tor-0"), client.packet());
    let selector = operator.selector.as_ref().unwrap();
    let stands_still = selector.hold();
    client.send(&packet, 6_000);
    drop(stands_still);
    wait_until("all that was sent to the selector was handled or has found the ring full", || {
        let (report, stats) = (selector.report(), operator.switch.stats());
        report.ring_full > 0 && report.packets + report.ring_full == stats.selected + stats.copied
    });
    assert!(client.read(50).iter().all(Result::is_ok), "it goes on");
}

/// A server sends impossible statuses and duplicate answers: a selector thread and the core count each by name, and reads are answered.
#[test]
fn n8_forged_statuses_and_answers_are_counted() {
    for selection in [Selection::None, Selection::LeastOutstanding] {
        let world = World::with(selection);
        let controller = world.controller(|config| config.plan_timeout = 0);
        wait_until("the group has its RSNode", || controller.report().status.labels[0].is_some());
        world.backends[0].lies.store(true, Relaxed);
        let mut client = world.client();
        wait_until("both are counted", || {
            assert!(client.read(20).iter().all(Result::is_ok));
            let operator = world.operator("tor-0");
            let (absurd, unmatched) = if let Some(selector) = &operator.selector {
                let report = selector.report();
                (report.disbelieved.statuses_invalid, report.rsnode.unmatched)
            } else {
                let stats = operator.switch.stats();
                (stats.statuses_invalid, stats.unmatched)
            };
            absurd > 0 && unmatched > 0
        });
    }
}

/// When the active controller ends, its standby takes over without changing the rules in force.
#[test]
fn n6_a_standby_takes_over() {
    let world = World::new();
    let first = world.controller(|_| ());
    wait_until("the first is active", || matches!(first.report().status.role, Role::Active(_)));
    let second = world.controller(|config| config.place = 1);
    let mut client = world.client();
    wait_until("the group has its RSNode", || first.report().status.labels[0].is_some());
    let label = first.report().status.labels[0];
    assert!(matches!(second.report().status.role, Role::Standby));
    drop(first);
    assert!(client.read(100).iter().all(Result::is_ok));
    wait_until("the second is active, and knows what is in force", || {
        let status = second.report().status;
        matches!(status.role, Role::Active(_)) && status.labels[0] == label
    });
    assert!(client.read(100).iter().all(Result::is_ok));
}
