//! T18, counted resources: offers, bundles and withdrawn waits. The test acts as the switch.

use super::*;
use midflight_wire::tasks::LeaveHow;

/// The first resource has two bundles; the third is not counted.
const GPU: u8 = 1;
const OTHER: u8 = 4;

fn config(slots: u32, bundles: &[u16]) -> ExecutorConfig {
    let mut config = never_ahead(ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], slots, 0b111));
    config.bundles[..bundles.len()].copy_from_slice(bundles);
    config
}

fn world(slots: u32, bundles: &[u16]) -> World {
    let mut world = World::with(config(slots, bundles));
    world.grant(EPOCH, 7);
    world
}

/// Waits of the last turn: local slot, sequence, and resources of the packet.
fn offers(world: &World) -> Vec<(u32, u32, u8)> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Retrieve(fixed, waits)) => Some((fixed.resources, waits)),
        _ => None,
    });
    let of = |wait: &Wait, mask| (wait.slot.get() - 100, wait.sequence.get(), mask);
    packets.flat_map(|(mask, waits)| waits.iter().map(move |wait| of(wait, mask))).collect()
}

/// Local slots whose waits are withdrawn in the last turn.
fn taken_back(world: &World) -> Vec<u32> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Release(_, leaves)) => Some(leaves),
        _ => None,
    });
    let stay = packets.flatten().filter(|leave| leave.done == u8::from(LeaveHow::Stays));
    stay.map(|leave| leave.slot.get() - 100).collect()
}

fn given(slot: u32, sequence: u32, index: u8, resources: u8) -> Assignment {
    let assignment = assignment(slot, 7, sequence, index);
    Assignment { task: TaskInfo { resources, ..assignment.task }, ..assignment }
}

/// Assigns a task to this slot; returns the run.
fn start(world: &mut World, slot: u32, sequence: u32, resources: u8) -> Run {
    world.assign(&[given(slot, sequence, slot as u8, resources)]);
    world.runs()[0].clone()
}

/// Time after which a wait that could offer more is withdrawn.
fn patience(world: &World) -> Nanos {
    world.executor.link.round_trip.smoothed()
}

#[test]
fn t18_as_many_waits_offer_a_resource_as_it_has_bundles() {
    let world = world(4, &[2]);
    assert_eq!(offers(&world), [(0, 1, 0b111), (1, 1, 0b111), (2, 1, 0b110), (3, 1, 0b110)]);
    assert_eq!(world.executor.bundles(0), BundleCounts { total: 2, held: 0, offered: 2 });
    assert_eq!(world.executor.bundles(2), BundleCounts::default(), "it is not counted");
}

#[test]
fn t18_a_registration_offers_nothing_that_is_counted() {
    let world = World::with(config(4, &[2]));
    assert_eq!(world.registers()[0].1.resources, 0b110);
}

#[test]
fn t18_each_run_has_a_bundle_of_its_own_until_it_has_ended() {
    let mut world = world(3, &[2]);
    let first = start(&mut world, 0, 1, GPU);
    let second = start(&mut world, 1, 1, GPU | OTHER);
    assert_eq!((first.bundles.of(0), second.bundles.of(0)), (Some(0), Some(1)));
    assert_eq!(second.bundles.iter().collect::<Vec<_>>(), [(0, 1)], "the other one is not counted");
    world.finish(&second, b"");
    assert_eq!(offers(&world), [(1, 2, 0b111)], "it offers what it had");
    let third = start(&mut world, 1, 2, GPU);
    assert_eq!(third.bundles.of(0), Some(1));
    assert_eq!(world.executor.bundles(0), BundleCounts { total: 2, held: 2, offered: 0 });
}

#[test]
fn t18_what_a_task_does_not_require_another_wait_offers() {
    let mut world = world(3, &[1]);
    let run = start(&mut world, 0, 1, OTHER);
    assert_eq!(run.bundles, Bundles::default());
    assert_eq!(taken_back(&world), [] as [u32; 0], "an answer may be on its way");
    world.pass(world.now + patience(&world));
    assert_eq!(taken_back(&world), [1], "one wait for one bundle");
    world.released(EPOCH, &[(101, 7)]);
    assert_eq!(offers(&world), [(1, 2, 0b111)]);
    assert_eq!(world.counters().offers_renewed, 1);
    world.finish(&run, b"");
    assert_eq!(offers(&world), [(0, 2, 0b110)]);
}

#[test]
fn t18_the_next_slot_that_waits_offers_what_is_free() {
    let mut world = world(2, &[1]);
    let ordinary = start(&mut world, 1, 1, 0);
    let other = start(&mut world, 0, 1, 0);
    assert_eq!(world.executor.bundles(0), BundleCounts { total: 1, held: 0, offered: 0 });
    world.finish(&ordinary, b"");
    assert_eq!(offers(&world), [(1, 2, 0b111)]);
    world.finish(&other, b"");
    assert_eq!(offers(&world), [(0, 2, 0b110)]);
    let later = world.now + 10 * patience(&world);
    world.pass(later);
    assert_eq!(world.counters().offers_renewed, 0);
}

#[test]
fn t18_a_repeat_offers_the_same() {
    let mut world = world(2, &[1]);
    let run = start(&mut world, 0, 1, GPU);
    world.pass(world.now + 20 * MS);
    assert!(offers(&world).contains(&(1, 1, 0b110)), "{:?}", offers(&world));
    world.finish(&run, b"");
    world.pass(world.now + 50 * MS);
    assert!(offers(&world).iter().all(|&(slot, _, mask)| (mask == 0b111) == (slot == 0)), "{:?}", offers(&world));
}

#[test]
fn t18_a_wait_that_is_taken_back_starts_nothing_and_keeps_its_bundle_until_that_is_confirmed() {
    let mut world = world(3, &[1, 1]);
    assert_eq!(offers(&world), [(0, 1, 0b111), (1, 1, 0b100), (2, 1, 0b100)]);
    start(&mut world, 0, 1, 0b01);
    world.pass(world.now + patience(&world));
    assert_eq!(taken_back(&world), [1], "it could offer the second resource");
    world.assign(&[given(1, 1, 9, 0)]);
    assert_eq!(world.runs(), []);
    assert_eq!(world.counters().stale_assignments, 1);
    world.released(EPOCH, &[(101, 7)]);
    assert_eq!(offers(&world), [(1, 2, 0b110)]);
}

#[test]
fn t18_a_task_that_requires_what_its_wait_does_not_offer_is_not_run() {
    let mut world = world(2, &[1]);
    world.assign(&[given(1, 1, 0, GPU)]);
    assert_eq!(world.runs(), []);
    assert_eq!(world.counters().stale_assignments, 1);
}

#[test]
fn t18_a_run_keeps_its_bundle_though_its_slot_is_void() {
    let mut world = world(4, &[1]);
    let run = start(&mut world, 0, 1, GPU);
    world.reset(switch(1), EPOCH + 1, &[]);
    world.grant(EPOCH + 1, 8);
    assert!(offers(&world).iter().all(|&(_, _, mask)| mask == 0b110), "{:?}", offers(&world));
    world.finish(&run, b"");
    world.grant(EPOCH + 1, 9);
    assert_eq!(world.executor.bundles(0), BundleCounts { total: 1, held: 0, offered: 1 });
}

#[test]
fn t18_a_task_that_requires_both_gets_one_of_each_in_one_wait() {
    let mut world = world(3, &[1, 1]);
    let first = start(&mut world, 0, 1, 0b01);
    world.pass(world.now + patience(&world));
    world.released(EPOCH, &[(101, 7)]);
    assert_eq!(offers(&world), [(1, 2, 0b110)]);
    // The first resource is free, and the slot that waits with the second must get both.
    world.finish(&first, b"");
    assert_eq!(offers(&world), [(0, 2, 0b100)]);
    let later = world.now + 2 * patience(&world);
    world.pass(later);
    assert_eq!(taken_back(&world)[0], 1);
    world.released(EPOCH, &[(101, 7)]);
    assert_eq!(offers(&world), [(1, 3, 0b111)]);
    let both = start(&mut world, 1, 3, 0b11);
    assert_eq!(both.bundles.iter().collect::<Vec<_>>(), [(0, 0), (1, 0)]);
}

#[test]
fn t18_waits_ahead_offer_nothing_that_is_counted() {
    let ahead = ExecutorConfig { ahead: 256, ..config(2, &[2]) };
    let mut world = World::with(ahead);
    world.now += 80_000;
    world.grant(EPOCH, 7);
    for sequence in 1..=64 {
        world.now += 80_000;
        let run = world.start(0, sequence, sequence as u8);
        world.now += 20_000;
        world.finish(&run, b"");
    }
    world.grant(EPOCH, 7);
    let ahead: Vec<_> = offers(&world).into_iter().filter(|(slot, ..)| *slot >= 2).collect();
    assert!(!ahead.is_empty() && ahead.iter().all(|&(_, _, mask)| mask == 0b110), "{ahead:?}");
}

#[test]
fn t18_where_slots_poll_a_slot_keeps_its_bundles() {
    let mut world = World::with(config(2, &[1]));
    world.poll_us = 50;
    world.grant(EPOCH, 7);
    assert_eq!(offers(&world), [(0, 1, 0b111), (1, 1, 0b110)]);
    let ordinary = start(&mut world, 0, 1, 0);
    assert_eq!(ordinary.bundles.of(0), None);
    // The second assignment to that wait requires the bundle.
    world.assign(&[given(0, 1, 9, GPU)]);
    world.finish(&ordinary, b"");
    assert_eq!(world.runs()[0].bundles.of(0), Some(0));
    world.pass(world.now + 100 * MS);
    assert_eq!(world.counters().offers_renewed, 0);
}

#[test]
fn t18_a_drain_offers_nothing_more() {
    let mut world = world(2, &[2]);
    let run = start(&mut world, 0, 1, GPU);
    world.executor.drain(world.now);
    world.turn();
    assert_eq!(world.executor.bundles(0), BundleCounts { total: 2, held: 1, offered: 0 });
    world.finish(&run, b"");
    assert_eq!(world.executor.bundles(0).held, 0);
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let refused = |bundles: &[u16], resources: u8| {
        let config = ExecutorConfig { resources, ..config(1, bundles) };
        Executor::new(config, 0).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&[4097], 1),
        "4097 bundles of resource r0: use up to 4096, of a resource that the executor offers"
    );
    assert_eq!(refused(&[0, 1], 1), "1 bundles of resource r1: use up to 4096, of a resource that the executor offers");
}
