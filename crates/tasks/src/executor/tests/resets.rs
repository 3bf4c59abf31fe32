//! Which RESETs and RELEASEDs count.

use super::*;

#[test]
fn t9_reset_of_all_registers_waiting_slots_at_once_and_running_ones_when_done() {
    let mut world = World::registered(4);
    let run = world.start(1, 1, 0);
    world.reset(switch(1), 0xBEEF, &[]);
    let asked: Vec<_> = world.registers().iter().map(|(_, r)| (r.first.get(), r.header.count)).collect();
    assert_eq!(asked, [(0, 1), (2, 2)], "slot 1 runs");
    world.grant(0xBEEF, 9);
    assert_eq!(world.executor.registered(), 3);
    world.finish(&run, b"late");
    assert_eq!(world.operations(), [Operation::Complete, Operation::Register]);
    let Ok(Packet::Complete(complete, _)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    assert_eq!(complete.header.epoch.get(), EPOCH, "of the switch that assigned");
    world.grant(0xBEEF, 10);
    assert_eq!(world.executor.registered(), 4);
}

/// An address moves from one switch to another and back.
#[test]
fn t16_epoch_that_returns_is_entered_again() {
    let mut world = World::registered(2);
    for (epoch, generation) in [(0xBEEF, 8), (EPOCH, 9), (0xBEEF, 10)] {
        world.reset(switch(1), epoch, &[]);
        world.grant(epoch, generation);
        assert_eq!(world.waits(), [(100, generation, 1), (101, generation, 1)]);
    }
    assert_eq!((world.counters().resets, world.counters().foreign), (6, 0));
}

#[test]
fn t13_a_reset_that_is_late_changes_nothing() {
    let mut world = World::registered(2);
    let before = world.counter;
    world.reset(switch(1), EPOCH, &[]);
    assert!(world.sent.is_empty(), "of the present epoch");
    world.reset(switch(1), 0xBEEF, &[]);
    world.grant(0xBEEF, 9);
    world.deliver(switch(1), &reset(EPOCH, before, &[]));
    world.deliver(switch(1), &reset(0xF00D, before, &[]));
    world.deliver(switch(1), &reset(EPOCH, before, &[(100, 7, 1)]));
    world.reset(switch(1), EPOCH, &[(100, 9, 1)]);
    world.reset(switch(1), 0, &[]);
    world.reset(switch(3), 0xF00D, &[]);
    assert!(world.sent.is_empty());
    assert_eq!((world.executor.registered(), world.counters().foreign), (2, 7));
}

#[test]
fn t13_a_reset_of_all_with_a_counter_that_was_not_sent_lately_changes_nothing() {
    let mut world = World::with(never_ahead(ExecutorConfig::new(42, 1, vec![switch(1)], 2, 0)));
    world.grant(EPOCH, 7);
    let first = world.counter;
    world.start(1, 1, 0);
    while world.counter < first + ANSWERABLE {
        world.pass(world.now + 10 * MS);
    }
    let last = world.counter;
    for counter in [0, 1, first, last - ANSWERABLE, last + 1, u64::MAX] {
        world.deliver(switch(1), &reset(0xBEEF, counter, &[]));
        world.deliver(switch(1), &reset(EPOCH, counter, &[(100, 7, 1)]));
    }
    assert_eq!((world.executor.registered(), world.counters().foreign), (2, 12));
    world.deliver(switch(1), &reset(0xBEEF, last - ANSWERABLE + 1, &[]));
    assert_eq!(world.registers().len(), 1);
}

#[test]
fn t9_a_reset_that_names_waits_registers_just_their_slots() {
    let mut world = World::registered(4);
    let run = world.start(3, 1, 0);
    world.reset(switch(1), EPOCH, &[(102, 7, 1), (103, 7, 1), (101, 6, 1)]);
    let asked: Vec<_> = world.registers().iter().map(|(_, r)| (r.first.get(), r.header.count)).collect();
    assert_eq!(asked, [(2, 1)], "slot 1 has another generation, slot 3 runs");
    world.grant(EPOCH, 8);
    assert_eq!(world.waits(), [(102, 8, 1)]);
    world.finish(&run, b"");
    world.grant(EPOCH, 9);
    assert_eq!(world.waits(), [(103, 9, 1)]);
}

#[test]
fn t13_a_reset_that_names_no_present_wait_takes_no_slot() {
    let mut world = World::registered(3);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    world.start(1, 1, 1);
    // Late responses to earlier waits, and to waits that were never sent.
    world.reset(switch(1), EPOCH, &[(100, 7, 1), (101, 7, 2), (102, 7, 0), (103, 7, 1)]);
    assert_eq!((world.registers(), world.executor.registered()), (vec![], 3));
    assert_eq!((world.counters().resets, world.counters().stale_resets), (0, 4));
    world.reset(switch(1), EPOCH, &[(100, 7, 2)]);
    assert_eq!((world.registers().len(), world.counters().resets), (1, 1));
}

/// A polled switch gets a packet per slot.
#[test]
fn t16_a_large_executor_hears_the_answer_to_each_packet_of_a_burst() {
    let mut world = World::polling(300, 50);
    let first = world.counter - 299;
    world.deliver(switch(1), &reset(EPOCH, first, &[(100, 7, 1)]));
    assert_eq!(world.registers().len(), 1);
    world.grant(EPOCH, 8);
    world.deliver(switch(1), &reset(0xBEEF, first, &[]));
    world.grant(0xBEEF, 9);
    assert_eq!(world.waits().len(), 300);
}

#[test]
fn t13_released_takes_only_slots_that_leave() {
    let mut world = World::registered(3);
    let run = world.start(1, 1, 0);
    world.released(EPOCH, &[(100, 7), (101, 7)]);
    assert_eq!((world.executor.registered(), world.counters().stale_releases), (3, 2));
    world.executor.drain(world.now);
    world.turn();
    for counter in [0, world.counter - ANSWERABLE, world.counter + 1] {
        world.deliver(switch(1), &released(EPOCH, counter, &[(100, 7), (102, 7)]));
    }
    world.released(EPOCH, &[(100, 6), (101, 7)]);
    assert_eq!((world.executor.registered(), world.counters().foreign), (3, 3));
    world.released(EPOCH, &[(100, 7), (102, 7)]);
    assert_eq!((world.executor.registered(), world.counters().stale_releases), (1, 4), "the one that runs");
    world.finish(&run, b"");
    world.released(EPOCH, &[(101, 7)]);
    assert_eq!(world.executor.registered(), 0);
}

#[test]
fn t13_counters_start_anywhere_and_count_what_speaks_for_slots() {
    let mut world = World::registered(2);
    let first = world.counter;
    assert!((1..1 << 62).contains(&first));
    assert_ne!(first, World::with(ExecutorConfig::new(42, 2, vec![switch(1)], 1, 0)).executor.link.next_counter());
    world.start(1, 1, 0);
    world.pass(150 * MS);
    world.executor.drain(world.now);
    world.turn();
    let mut counters = Vec::new();
    world.pass(200 * MS);
    counters.extend(world.sent.iter().filter_map(|(_, packet)| counter(packet)));
    let steps = counters.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(steps && counters.len() > 3, "{counters:?}");
}
