//! Prefetch: when, in which order tasks start, and what is returned. The test acts as the switch, with a round trip of 80 us.

use super::*;
use midflight_wire::tasks::{LeaveHow, SlotKind};

const ROUND_TRIP: Nanos = 80_000;
const RUN_TIME: Nanos = 20_000;

/// An executor that has run 64 tasks of 20 us and knows of a backlog. Its prefetch slots are registered.
fn busy(slots: u32) -> World {
    busy_with(0, slots)
}

fn busy_with(ahead_span: Nanos, slots: u32) -> World {
    let config = ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], slots, 0b101);
    let mut world = World::with(ExecutorConfig { ahead_span, ..config });
    world.now += ROUND_TRIP;
    world.grant(EPOCH, 7);
    (1..=64).for_each(|sequence| run_queued(&mut world, sequence));
    let requests = world.registers();
    assert!(requests.iter().all(|(_, request)| request.kind == u8::from(SlotKind::Ahead)));
    assert_eq!(requests.iter().map(|(_, request)| request.first.get()).min(), Some(slots));
    world.now += ROUND_TRIP;
    world.grant(EPOCH, 7);
    world
}

/// The first slot gets a queued task and finishes it.
fn run_queued(world: &mut World, sequence: u32) {
    world.now += ROUND_TRIP;
    let run = world.start(0, sequence, sequence as u8);
    world.now += RUN_TIME;
    world.finish(&run, b"");
}

/// RETRIEVEs of prefetch waits in the last turn: number, and waits as (local slot, sequence).
fn asks(world: &World) -> Vec<(u32, Vec<(u32, u32)>)> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Retrieve(fixed, waits)) if fixed.ahead == 1 => Some((
            fixed.header.sequence.get(),
            waits.iter().map(|wait| (wait.slot.get() - 100, wait.sequence.get())).collect(),
        )),
        _ => None,
    });
    packets.collect()
}

/// Slots and sequences that RELEASEs of the last turn return.
fn given_back(world: &World) -> Vec<(u32, u32)> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Release(_, leaves)) => Some(leaves),
        _ => None,
    });
    let stay = packets.flatten().filter(|leave| leave.done == u8::from(LeaveHow::Stays));
    stay.map(|leave| (leave.slot.get() - 100, leave.sequence.get())).collect()
}

/// Assigns queued tasks in response to the RETRIEVE with this number.
fn assign_ahead(world: &mut World, number: u32, waits: &[(u32, u32)]) {
    world.now += ROUND_TRIP;
    let given: Vec<_> = waits.iter().map(|&(slot, sequence)| assignment(slot, 7, sequence, slot as u8)).collect();
    world.deliver(switch(1), &packet(&Assign::new(EPOCH, number), &given));
}

fn nothing_ahead(world: &mut World, number: u32, waits: &[(u32, u32)]) {
    world.now += ROUND_TRIP;
    let waits: Vec<_> = waits.iter().map(|&(slot, sequence)| wait((100 + slot, 7, sequence))).collect();
    world.deliver(switch(1), &packet(&NoOp::new(EPOCH, number), &waits));
}

/// The only RETRIEVE of prefetch waits in the last turn.
fn ask(world: &World) -> (u32, Vec<(u32, u32)>) {
    let asks = asks(world);
    assert_eq!(asks.len(), 1, "{asks:?}");
    asks[0].clone()
}

#[test]
fn it_asks_ahead_for_what_it_runs_in_a_round_trip() {
    let world = busy(2);
    let (number, waits) = ask(&world);
    assert_ne!(number, 0);
    assert_eq!(waits.len(), 8, "two slots, four tasks each in 80 us");
    assert!(waits.iter().all(|&(slot, sequence)| slot >= 2 && sequence == 1));
    assert_eq!(world.executor.registered(), 2);
}

#[test]
fn t6_slots_for_asking_ahead_wait_only_while_tasks_are_queued() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    nothing_ahead(&mut world, number, &waits);
    assert_eq!(asks(&world), []);
    assert_eq!(world.counters().polls_ahead, 1);
    // A task for a parked slot does not show a backlog.
    let parked = Assignment { waited_us: 0.into(), ..assignment(1, 7, 1, 0) };
    world.assign(&[parked]);
    let run = world.runs()[0].clone();
    world.now += RUN_TIME;
    world.finish(&run, b"");
    assert_eq!(asks(&world), []);
    world.now += ROUND_TRIP;
    world.start(1, 2, 0);
    assert_eq!(ask(&world).1.len(), 8);
}

#[test]
fn waits_that_an_answer_does_not_name_got_nothing() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits[..1]);
    assert_eq!((world.runs().len(), asks(&world).len()), (1, 0));
    world.pass(world.now + 5 * MS);
    assert_eq!(asks(&world), [], "none of them is repeated");
}

#[test]
fn an_answer_to_another_number_settles_nothing() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    nothing_ahead(&mut world, number.wrapping_add(1), &waits);
    assert_eq!(world.counters().polls_ahead, 0);
    world.pass(world.now + 2 * MS);
    let (again, repeated) = asks(&world)[0].clone();
    assert_eq!((again != number, repeated), (true, waits[..2].to_vec()), "two at a time, whose tasks fit the answer");
    // The response to the first RETRIEVE does not end the repeated waits.
    nothing_ahead(&mut world, number, &waits);
    assign_ahead(&mut world, again, &waits[..2]);
    assert_eq!(world.runs().len(), 2);
}

#[test]
fn as_many_tasks_run_at_once_as_there_are_ordinary_slots() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits);
    let mut runs = world.runs();
    assert_eq!((runs.len(), world.executor.running(), world.executor.ready()), (2, 2, 6));
    // An ordinary slot's task also waits for a worker, in order of arrival.
    world.assign(&[assignment(1, 7, 1, 99)]);
    assert_eq!((world.runs().len(), world.executor.ready()), (0, 7));
    let mut order = Vec::new();
    while !runs.is_empty() {
        let run = runs.remove(0);
        order.push(run.task.tid.get());
        world.now += 1_000;
        world.finish(&run, b"");
        assert!(world.executor.running() <= 2);
        runs.extend(world.runs());
        world.executor.ahead.has_backlog = false;
    }
    let expected: Vec<u32> = waits.iter().map(|(slot, _)| *slot).chain([99]).collect();
    assert_eq!(order, expected);
}

#[test]
fn a_task_taken_ahead_that_is_done_is_told_with_the_next_ask() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits);
    let run = world.runs()[0].clone();
    world.now += RUN_TIME;
    world.finish(&run, b"");
    assert_eq!(ask(&world).1, [(run.key.slot, 2)]);
    assert_eq!(world.operations()[0], Operation::Complete);
}

#[test]
fn without_a_next_ask_the_slot_says_that_its_task_is_done_and_stays() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits[..1]);
    let run = world.runs()[0].clone();
    world.now += RUN_TIME;
    world.finish(&run, b"");
    assert_eq!(given_back(&world), [(run.key.slot, 2)], "the sequence is larger: done");
    let before = world.executor.registered_ahead();
    world.released(EPOCH, &[(100 + run.key.slot, 7)]);
    assert_eq!((world.counters().stale_releases, world.executor.registered_ahead()), (0, before));
}

#[test]
fn t6_what_has_not_started_within_two_round_trips_goes_back_in_order() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assert_eq!(waits.len(), 4);
    assign_ahead(&mut world, number, &waits);
    let run = world.runs()[0].clone();
    world.assign(&[assignment(0, 7, 65, 99)]);
    let late = world.now + 2 * world.executor.link.round_trip.smoothed();
    world.pass(late - 1);
    assert_eq!(given_back(&world), []);
    world.pass(late);
    let ordinary = (0, 65);
    assert_eq!(given_back(&world), [ordinary, waits[3], waits[2], waits[1]], "the last one first");
    assert_eq!((world.executor.ready(), world.counters().given_back), (0, 4));
    // Late assignments never start it.
    assign_ahead(&mut world, number, &waits[1..]);
    world.finish(&run, b"");
    assert_eq!((world.runs().len(), world.executor.running()), (0, 0));
    // The ordinary slot waits again when the switch has its task back.
    assert_eq!(world.waits().iter().filter(|wait| wait.0 == 100).count(), 0);
    world.pass(world.now + 2 * MS);
    assert!(given_back(&world).contains(&ordinary), "and it is repeated until it is answered");
    let slots: Vec<_> = waits[1..].iter().map(|(slot, _)| (100 + slot, 7)).chain([(100, 7)]).collect();
    world.released(EPOCH, &slots);
    assert!(world.waits().contains(&(100, 7, 66)));
}

#[test]
fn t6_with_a_longer_span_tasks_stay_for_twice_that() {
    let span = 2 * MS;
    let mut world = busy_with(span, 1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits);
    world.pass(world.now + 2 * span - 1);
    assert_eq!((given_back(&world), world.executor.ready()), (vec![], 3));
    world.pass(world.now + 1);
    assert_eq!((world.executor.ready(), world.counters().given_back), (0, 3));
}

#[test]
fn t1_a_late_answer_to_an_earlier_release_does_not_count() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits[..2]);
    let run = world.runs()[0].clone();
    world.pass(world.now + 2 * ROUND_TRIP + 40_000);
    let (slot, first) = (waits[1].0, world.counter);
    world.released(EPOCH, &[(100 + slot, 7), (100, 7)]);
    world.finish(&run, b"");
    // It prefetches another task and returns that too.
    world.now += ROUND_TRIP;
    let run = world.start(0, 66, 0);
    let (number, waits) = ask(&world);
    world.finish(&run, b"");
    let again = *waits.iter().find(|wait| wait.0 == slot).expect("it asks again");
    let other = *waits.iter().find(|wait| wait.0 != slot).unwrap();
    assign_ahead(&mut world, number, &[other, again]);
    world.pass(world.now + 4 * ROUND_TRIP);
    assert!(given_back(&world).contains(&again));
    let stale = world.counters().stale_releases;
    world.deliver(switch(1), &released(EPOCH, first, &[(100 + slot, 7)]));
    assert_eq!(world.counters().stale_releases, stale + 1);
}

#[test]
fn t6_no_slot_waits_whose_worker_is_busy_for_long() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits[..1]);
    let run = world.runs()[0].clone();
    let late = world.now + 2 * world.executor.link.round_trip.smoothed();
    world.pass(late);
    assert_eq!(given_back(&world), [(0, 65)], "the ordinary slot takes back its wait");
    world.released(EPOCH, &[(100, 7)]);
    world.pass(world.now + 100 * MS);
    assert!(!world.waits().iter().any(|wait| wait.0 == 100));
    world.finish(&run, b"");
    assert!(world.waits().contains(&(100, 7, 66)), "and waits again when its worker is free");
}

#[test]
fn t10_keepalive_names_a_slot_for_asking_ahead_only_while_it_has_a_task() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits[..2]);
    let (started, ready) = (waits[0].0, waits[1].0);
    world.executor.slots.keep_alive();
    world.turn();
    let mut named = names(&world, Operation::Keepalive).concat();
    named.sort_unstable();
    assert_eq!(named, [(100 + started).min(100 + ready), (100 + started).max(100 + ready)]);
    world.pass(world.now + 2 * ROUND_TRIP + 40_000);
    world.executor.slots.keep_alive();
    world.turn();
    assert_eq!(names(&world, Operation::Keepalive), [[100 + started]]);
}

#[test]
fn t14_it_gives_up_slots_that_it_does_not_use() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    let all = world.executor.registered_ahead();
    nothing_ahead(&mut world, number, &waits);
    world.pass(world.now + 450 * MS);
    let left: Vec<u32> = names(&world, Operation::Release).concat();
    assert!(left.len() >= all as usize, "{left:?}");
    let slots: Vec<_> = (0..all).map(|n| (102 + n, 7)).collect();
    world.released(EPOCH, &slots);
    assert_eq!((world.executor.registered_ahead(), world.executor.registered()), (0, 2));
}

/// The switch drops slots that send no RETRIEVE for a lease, so the executor must not use an idle prefetch slot again after
/// that time.
#[test]
fn t14_idle_prefetch_slots_are_released_although_others_prefetch() {
    let mut world = busy(2);
    let (number, waits) = ask(&world);
    nothing_ahead(&mut world, number, &waits);
    let asked = world.now - ROUND_TRIP;
    world.pass(asked + 250 * MS);
    let local = world.executor.slots.next_idle().unwrap();
    world.executor.slots.wait(local);
    world.turn();
    assert_eq!(world.executor.slots.unused(asked - 1), [0; 0]);
    let unused = world.executor.slots.unused(asked);
    assert!(!unused.contains(&local) && unused.len() == waits.len() - 1, "{unused:?}");
}

#[test]
fn t14_a_refusal_is_not_the_users_concern() {
    let mut world = World::with(ExecutorConfig::new(42, 1, vec![switch(1)], 2, 0));
    world.now += ROUND_TRIP;
    world.grant(EPOCH, 7);
    (1..=64).for_each(|sequence| run_queued(&mut world, sequence));
    let (_, request) = world.registers()[0];
    world.deliver(switch(1), &answer_with(&request, EPOCH, &[], 300 * MS, 0));
    assert_eq!((world.events.len(), world.counters().slots_full), (0, 0));
    run_queued(&mut world, 65);
    assert_eq!(world.registers(), []);
}

#[test]
fn a_void_slot_drops_what_has_not_started() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits);
    world.reset(switch(1), EPOCH, &[(100 + waits[1].0, 7, 1)]);
    assert_eq!(world.executor.ready(), 2);
    world.reset(switch(1), EPOCH + 1, &[]);
    assert_eq!((world.executor.ready(), world.executor.running(), world.executor.registered_ahead()), (0, 1, 0));
}

#[test]
fn a_drain_gives_back_what_has_not_started() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits);
    let run = world.runs()[0].clone();
    world.executor.drain(world.now);
    world.turn();
    let leaving: Vec<u32> = names(&world, Operation::Release).concat();
    assert!(waits[1..].iter().all(|(slot, _)| leaving.contains(&(100 + slot))));
    world.finish(&run, b"");
    assert_eq!((world.runs().len(), world.executor.running()), (0, 0));
}

#[test]
fn it_never_asks_ahead_where_slots_poll_or_the_configuration_says_so() {
    for (poll_us, ahead) in [(50, 256), (0, 0)] {
        let config = ExecutorConfig { ahead, ..ExecutorConfig::new(42, 1, vec![switch(1)], 1, 0) };
        let mut world = World::with(config);
        world.poll_us = poll_us;
        world.now += ROUND_TRIP;
        world.grant(EPOCH, 7);
        for sequence in 1..=80 {
            run_queued(&mut world, sequence);
            assert_eq!((asks(&world).len(), world.registers().len()), (0, 0));
        }
    }
}

/// Only the process of a kernel engine sends cookies, and it may be suspended while the switch serves known slots. So an
/// unanswered REGISTER for prefetch slots proves nothing.
#[test]
fn t16_an_unanswered_register_for_asking_ahead_is_no_reason_to_leave_the_switch() {
    let mut world = World::with(ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], 2, 0));
    world.now += ROUND_TRIP;
    world.grant(EPOCH, 7);
    (1..=64).for_each(|sequence| run_queued(&mut world, sequence));
    let kinds: Vec<u8> = world.registers().iter().map(|(_, request)| request.kind).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|&kind| kind == u8::from(SlotKind::Ahead)));
    // From now on the ordinary slots are parked. The switch answers probes, but no REGISTER.
    for _ in 0..20 {
        world.pass(world.now + 100 * MS);
        assert_eq!(world.executor.switch(), switch(1), "after {} ms", world.now / MS);
        for counter in world.questions(switch(1)) {
            world.deliver(switch(1), &reset(EPOCH, counter, &[]));
        }
    }
}

/// Responses of a switch that knows no slot of generation 7 at this address: new names, and nothing to RELEASE.
fn answers_to_a_stranger(sent: &[(SocketAddr, Vec<u8>)]) -> Vec<Vec<u8>> {
    let answer = |packet: &[u8]| match parse(packet) {
        Ok(Packet::Register(request)) => Some(registered(EPOCH, request, u32::from(request.header.count), 8)),
        Ok(Packet::Keepalive(fixed, _)) if fixed.header.epoch.get() == 0 => {
            Some(reset(EPOCH, fixed.counter.get(), &[]))
        }
        Ok(Packet::Retrieve(_, waits) | Packet::Keepalive(_, waits)) => {
            let void: Vec<_> = waits.iter().map(numbers).filter(|wait| wait.1 == 7).collect();
            let counter = counter(packet).unwrap();
            (!void.is_empty()).then(|| reset(EPOCH, counter, &void))
        }
        _ => None,
    };
    sent.iter().filter_map(|(_, packet)| answer(packet)).collect()
}

/// A switch does not answer RELEASE from an unknown address.
#[test]
fn t16_a_slot_that_gives_back_learns_that_its_address_has_changed() {
    let mut world = busy(1);
    let (number, waits) = ask(&world);
    assign_ahead(&mut world, number, &waits[..1]);
    let run = world.runs()[0].clone();
    world.assign(&[assignment(0, 7, 65, 99)]);
    world.pass(world.now + 2 * ROUND_TRIP + 40_000);
    assert_eq!(given_back(&world), [(0, 65)]);
    world.finish(&run, b"");
    let until = world.now + 8 * 300 * MS;
    while world.now < until {
        let mut answers = answers_to_a_stranger(&world.sent);
        while let Some(answer) = answers.pop() {
            world.deliver(switch(1), &answer);
            answers.extend(answers_to_a_stranger(&world.sent));
        }
        world.pass(world.now + 5 * MS);
    }
    let slot = world.executor.slots.get(0).unwrap();
    assert_eq!((slot.state, slot.name.generation), (State::Waiting, 8), "within 8 leases");
}
