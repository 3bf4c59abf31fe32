//! Runs that wait for other tasks lend their slots to spares until they continue.

use super::*;
use midflight_wire::tasks::{BlobRef, SlotKind};

/// An executor without prefetch with up to `waiting` waiting runs. Its ordinary slots are registered.
fn executor(slots: u32, waiting: u32) -> World {
    let config = never_ahead(ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], slots, 0b101));
    let mut world = World::with(ExecutorConfig { waiting, ..config });
    world.grant(EPOCH, 7);
    world
}

impl World {
    fn wait_for_others(&mut self, run: &Run) -> bool {
        let lends = self.executor.wait_for_others(self.now, run.key);
        self.turn();
        lends
    }

    fn go_on(&mut self, run: &Run) {
        self.executor.go_on(self.now, run.key);
        self.turn();
    }

    fn release(&mut self) {
        let slots: Vec<_> = names(self, Operation::Release).concat().into_iter().map(|slot| (slot, 7)).collect();
        self.deliver(switch(1), &released(EPOCH, self.counter, &slots));
    }
}

#[test]
fn t6_a_run_that_waits_for_others_lends_its_slot_so_any_depth_ends() {
    let mut world = executor(1, 3);
    let mut runs = vec![world.start(0, 1, 1)];
    for spare in 1..=3 {
        assert!(world.wait_for_others(&runs[runs.len() - 1]));
        let requests = world.registers();
        assert_eq!(requests.len(), 1, "one spare for each");
        let (request, kind) = (requests[0].1, u8::from(SlotKind::Ordinary));
        assert_eq!((request.first.get(), request.header.count, request.kind), (spare, 1, kind));
        world.grant(EPOCH, 7);
        assert_eq!(world.waits(), [(100 + spare, 7, 1)], "the task that it waits for may run here");
        runs.push(world.start(spare, 1, 1 + spare as u8));
        assert_eq!((world.executor.running(), world.executor.waiting()), (1 + spare, spare));
    }
    // The run that waits longest continues last.
    while let Some(run) = runs.pop() {
        world.finish(&run, b"");
        runs.last().into_iter().for_each(|waits| world.go_on(waits));
    }
    assert_eq!((world.executor.running(), world.executor.waiting()), (0, 0));
    world.release();
    assert_eq!(world.executor.registered(), 1);
    assert_eq!(world.executor.slots.census.parkable(State::Waiting), 1, "one slot waits, as at first");
}

#[test]
fn t7_no_more_runs_wait_than_may_and_they_are_told() {
    let mut world = executor(2, 1);
    let (one, other) = (world.start(0, 1, 1), world.start(1, 1, 2));
    assert!(world.wait_for_others(&one));
    assert!(!world.wait_for_others(&one), "it does already");
    assert!(!world.wait_for_others(&other));
    let counters = world.executor.counters();
    assert_eq!((counters.waits_for_others, counters.waits_refused), (1, 2));
    world.finish(&one, b"");
    assert!(world.wait_for_others(&other), "a run that has ended waits no more");
}

#[test]
fn a_run_that_goes_on_takes_back_the_wait_of_its_spare() {
    let mut world = executor(1, 1);
    let run = world.start(0, 1, 1);
    world.wait_for_others(&run);
    world.grant(EPOCH, 7);
    world.go_on(&run);
    assert_eq!(names(&world, Operation::Release), [vec![101]]);
    // The switch had just assigned it a task, which is returned.
    world.deliver(switch(1), &assign(EPOCH, &[assignment(1, 7, 1, 2)]));
    assert_eq!(world.runs(), []);
    // It waits again, because the spare is still registered.
    world.deliver(switch(1), &released(EPOCH, world.counter, &[(101, 7)]));
    world.wait_for_others(&run);
    assert_eq!((world.registers().len(), world.waits()), (0, vec![(101, 7, 2)]));
}

#[test]
fn a_run_that_goes_on_goes_on_at_once_and_the_next_slot_that_is_done_does_not_wait() {
    let mut world = executor(1, 1);
    let run = world.start(0, 1, 1);
    world.wait_for_others(&run);
    world.grant(EPOCH, 7);
    let child = world.start(1, 1, 2);
    world.go_on(&run);
    assert_eq!((world.executor.running(), world.executor.waiting()), (2, 0));
    world.finish(&run, b"");
    assert_eq!(world.waits(), [], "the only worker is the spare's");
    assert_eq!(names(&world, Operation::Release), [vec![100]], "the switch is told that its task is done");
    world.release();
    world.finish(&child, b"");
    world.release();
    assert_eq!(world.waits(), [(100, 7, 3)], "the ordinary slot goes first");
}

#[test]
fn a_spare_that_is_parked_in_the_place_of_an_ordinary_slot_takes_back_its_wait() {
    let mut config = never_ahead(ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], 2, 0b101));
    config.bundles[0] = 1;
    let mut world = World::with(ExecutorConfig { waiting: 1, ..config });
    world.grant(EPOCH, 7);
    let run = world.start(0, 1, 1); // does not require the bundle that slot 0 offered
    world.pass(world.now + world.executor.link.round_trip.smoothed());
    assert_eq!(names(&world, Operation::Release), [vec![101]], "to offer the bundle");
    world.wait_for_others(&run);
    world.grant(EPOCH, 7);
    assert_eq!(world.waits(), [(102, 7, 1)]);
    world.go_on(&run);
    assert_eq!(names(&world, Operation::Release), [vec![102]]);
    world.released(EPOCH, &[(101, 7), (102, 7)]);
    assert_eq!(world.waits(), [(101, 7, 2)], "the ordinary slot goes first");
}

#[test]
fn t18_a_bundle_that_a_spare_was_about_to_offer_is_offered_by_another_slot_when_the_run_goes_on() {
    let mut config = never_ahead(ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], 3, 0b101));
    config.bundles[0] = 1;
    let mut world = World::with(ExecutorConfig { waiting: 1, ..config });
    world.grant(EPOCH, 7);
    let run = world.start(1, 1, 1);
    world.wait_for_others(&run);
    world.start(0, 1, 2); // does not require the bundle that slot 0 offered
    world.go_on(&run);
    world.pass(world.now + world.executor.link.round_trip.smoothed());
    assert_eq!(names(&world, Operation::Release), [vec![102]], "to offer the bundle");
}

#[test]
fn a_spare_that_is_not_needed_for_a_lease_leaves() {
    let mut world = executor(1, 1);
    let run = world.start(0, 1, 1);
    world.wait_for_others(&run);
    world.grant(EPOCH, 7);
    world.go_on(&run);
    world.release();
    let mut left = Vec::new();
    while left.is_empty() && world.now < 2000 * MS {
        world.pass(world.now + 50 * MS);
        left = names(&world, Operation::Release).concat();
        let kept: Vec<_> = names(&world, Operation::Keepalive).concat().iter().map(|&slot| (slot, 7, 1)).collect();
        assert!(kept.iter().all(|(slot, ..)| *slot == 100), "{kept:?}");
        let counter = world.counter;
        world.deliver(switch(1), &reset(EPOCH, counter, &[])); // the switch lives
    }
    assert_eq!(left, [101]);
}

#[test]
fn a_switch_without_room_for_spares_takes_no_slot_from_the_executor() {
    let mut world = executor(2, 2);
    let run = world.start(0, 1, 1);
    world.wait_for_others(&run);
    let (to, request) = world.registers()[0];
    world.deliver(to, &registered(EPOCH, &request, 0, 7));
    world.go_on(&run);
    assert_eq!(names(&world, Operation::Release), Vec::<Vec<u32>>::new());
    world.finish(&run, b"");
    assert_eq!(world.waits(), [(100, 7, 2)]);
}

#[test]
fn a_run_that_is_stopped_while_it_waits_waits_no_more() {
    let mut world = executor(1, 1);
    let run = world.start(0, 1, 1);
    world.wait_for_others(&run);
    let name = Token::new(TOKEN).run_name(9, 1);
    world.deliver(client(1), &packet(&Stop::new(EPOCH, 0), &[name]));
    assert!(matches!(world.events[..], [Event::Stop(key)] if key == run.key));
    let end = End { status: Status::Cancelled, result: Output::Inline(Vec::new()), started: 0, ended: 0 };
    world.executor.finish(world.now, run.key, end);
    assert_eq!((world.executor.running(), world.executor.waiting()), (0, 0));
}

#[test]
fn a_run_that_gives_back_a_part_goes_on_and_both_are_repeated_until_they_are_acknowledged() {
    let mut world = executor(1, 0);
    let run = world.start(0, 1, 1);
    world.executor.give_back_part(world.now, run.key, Output::Inline(b"rest".to_vec()));
    world.turn();
    assert_eq!(statuses(&world), [Status::Part as u8]);
    assert_eq!((world.executor.running(), world.waits()), (1, vec![]));
    world.finish(&run, b"value");
    assert_eq!(statuses(&world), [Status::Ok as u8]);
    assert_eq!(world.executor.unacknowledged(), 2);
    world.deliver(client(1), &ack(1, AckState::Part));
    assert_eq!(world.executor.unacknowledged(), 1, "the part only");
    world.deliver(client(1), &ack(1, AckState::Done));
    assert_eq!(world.executor.unacknowledged(), 0);
    world.executor.give_back_part(world.now, run.key, Output::Inline(Vec::new()));
    world.turn();
    assert_eq!(statuses(&world), [], "it has ended");
}

/// Its driver serves it until the run ends, whoever has acknowledged it.
#[test]
fn a_part_by_reference_is_not_settled_when_it_is_acknowledged() {
    let mut world = executor(1, 0);
    let run = world.start(0, 1, 1);
    let blob = BlobRef { id: 1.into(), length: 5_000.into(), port: 80.into(), reserved: 0.into() };
    world.executor.give_back_part(world.now, run.key, Output::ByReference(blob));
    world.turn();
    assert_eq!(statuses(&world), [Status::Part as u8]);
    world.deliver(client(1), &ack(1, AckState::Fetching));
    assert_eq!(world.executor.unacknowledged(), 1, "it is no result");
    world.deliver(client(1), &ack(1, AckState::Part));
    assert_eq!((world.executor.unacknowledged(), &world.events[..]), (0, &[][..]));
}

fn statuses(world: &World) -> Vec<u8> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Complete(_, completions)) => {
            Some(completions.map(|(completion, _)| completion.status).collect::<Vec<_>>())
        }
        _ => None,
    });
    packets.flatten().collect()
}
