//! A polled switch: NO_OP, and the next poll.

use super::*;
use midflight_wire::tasks::APPENDED;

const US: Nanos = 1_000;
const POLL_US: u16 = 50;
const POLL: Nanos = 50 * US;
/// Repeat interval of unanswered polls: `ExecutorConfig::poll_repeat_min`.
const REPEAT: Nanos = 5 * MS;
const WAIT: (u32, u32, u32) = (100, 7, 1);

impl World {
    fn no_op(&mut self, wait: (u32, u32, u32)) {
        self.deliver(switch(1), &no_op(EPOCH, &[wait]));
    }

    /// Takes the next turn that is due; returns its time.
    fn turn_due(&mut self) -> Nanos {
        self.pass(self.executor.poll_timeout().unwrap());
        self.now
    }
}

/// Number of waits in each RETRIEVE of the last turn.
fn retrieves(world: &World) -> Vec<u8> {
    let is_retrieve = |packet: &[u8]| packet[3] == Operation::Retrieve as u8;
    world.sent.iter().filter(|(_, packet)| is_retrieve(packet)).map(|(_, packet)| packet[4]).collect()
}

#[test]
fn t6_a_slot_that_finds_no_task_asks_again_under_its_sequence_for_as_long_as_there_is_none() {
    let mut world = World::polling(1, POLL_US);
    for round in 1..=100 {
        assert_eq!(world.waits(), [WAIT]);
        world.now += 20 * US;
        let answered = world.now;
        world.no_op(WAIT);
        assert_eq!(world.waits(), [], "not before its time");
        assert_eq!(world.turn_due(), answered + POLL);
        assert_eq!((world.counters().polls, world.counters().wait_repeats), (round, 0));
    }
    world.now += 20 * US;
    let run = world.start(0, 1, 0);
    assert_eq!((run.asked, run.arrived), (world.now - 20 * US, world.now), "by the poll that found it");
    world.finish(&run, b"");
    assert_eq!(world.waits(), [(100, 7, 2)]);
}

#[test]
fn t12_a_switch_that_is_polled_gets_one_wait_in_a_packet() {
    let mut world = World::polling(40, POLL_US);
    assert_eq!(retrieves(&world), [1; 40]);
    // A switch may still answer several at once.
    let waits = world.waits();
    for waits in waits.chunks(WAITS_MAX) {
        world.deliver(switch(1), &no_op(EPOCH, waits));
    }
    world.turn_due();
    assert_eq!((world.waits(), retrieves(&world)), (waits, vec![1; 40]));
}

#[test]
fn the_way_of_waiting_is_that_of_the_switch_in_use() {
    let mut world = World::polling(32, POLL_US);
    world.no_op(WAIT);
    // The switch restarts and parks slots.
    world.poll_us = 0;
    world.reset(switch(1), 0xBEEF, &[]);
    world.grant(0xBEEF, 8);
    assert_eq!(retrieves(&world), [13, 13, 6]);
    world.deliver(switch(1), &no_op(0xBEEF, &[(100, 8, 1)]));
    assert_eq!((world.counters().polls, world.counters().stale_no_ops), (1, 1), "nobody polls here");
    let due = world.executor.poll_timeout().unwrap();
    assert_eq!(due, world.now + MS, "the repeat of a wait that may be lost");
    // It restarts again and is polled.
    world.poll_us = POLL_US;
    world.reset(switch(1), 0xF00D, &[]);
    world.grant(0xF00D, 9);
    world.deliver(switch(1), &no_op(0xF00D, &[(100, 9, 1)]));
    assert_eq!(world.turn_due(), POLL);
    assert_eq!(world.waits(), [(100, 9, 1)]);
}

#[test]
fn a_poll_that_is_lost_is_repeated_and_backs_off_anew_after_an_answer() {
    let mut world = World::polling(1, POLL_US);
    let mut after = |gaps: [Nanos; 4]| {
        for gap in gaps {
            let before = world.now;
            let passed = world.turn_due() - before;
            assert!((gap - gap / 8..=gap).contains(&passed), "{passed} of {gap}");
            assert_eq!(world.waits(), [WAIT]);
        }
        world.no_op(WAIT);
    };
    after([REPEAT, 2 * REPEAT, 4 * REPEAT, 8 * REPEAT]);
    after([POLL, REPEAT, 2 * REPEAT, 4 * REPEAT]);
    after([POLL, REPEAT, 2 * REPEAT, 4 * REPEAT]);
    assert_eq!((world.counters().polls, world.counters().wait_repeats), (3, 10));
}

#[test]
fn t11_a_no_op_to_no_present_wait_changes_nothing_and_is_counted() {
    let mut world = World::polling(2, POLL_US);
    let due = world.executor.poll_timeout();
    for stale in [(100, 6, 1), (100, 7, 0), (100, 7, 2), (109, 7, 1)] {
        world.no_op(stale);
    }
    world.deliver(switch(1), &no_op(EPOCH + 1, &[WAIT]));
    world.deliver(switch(2), &no_op(EPOCH, &[WAIT]));
    assert_eq!((world.counters().stale_no_ops, world.counters().foreign), (4, 2));
    assert_eq!((world.counters().polls, world.executor.poll_timeout()), (0, due));
    // To a running slot, and to the wait before the current one.
    let run = world.start(0, 1, 0);
    world.no_op(WAIT);
    world.finish(&run, b"");
    world.no_op(WAIT);
    assert_eq!((world.counters().polls, world.counters().stale_no_ops), (0, 6));
}

#[test]
fn a_no_op_that_comes_twice_makes_a_slot_ask_once() {
    let mut world = World::polling(1, POLL_US);
    world.no_op(WAIT);
    world.now += 10 * US;
    world.no_op(WAIT);
    assert_eq!((world.counters().polls, world.counters().stale_no_ops), (1, 1));
    assert_eq!(world.turn_due(), POLL, "as the first one said");
    assert_eq!(world.waits(), [WAIT]);
    world.pass(2 * POLL);
    assert_eq!(world.waits(), []);
}

/// The slot repeated its RETRIEVE, and a task arrived between the two.
#[test]
fn t2_a_task_that_comes_behind_a_no_op_is_run() {
    let mut world = World::polling(1, POLL_US);
    world.turn_due();
    assert_eq!((world.waits(), world.counters().wait_repeats), (vec![WAIT], 1));
    world.no_op(WAIT);
    let run = world.start(0, 1, 0);
    // Also when its poll is due and not yet sent.
    world.finish(&run, b"");
    world.no_op((100, 7, 2));
    world.now += POLL;
    world.executor.handle_timeout(world.now);
    world.start(0, 2, 2);
    assert_eq!(world.waits(), []);
    assert_eq!((world.counters().runs, world.counters().extra_tasks), (2, 0));
}

/// A switch without records answered each of several RETRIEVEs with a task.
#[test]
fn t1_all_tasks_that_one_wait_was_given_are_run_each_once() {
    let mut world = World::polling(1, POLL_US);
    let mut run = world.start(0, 1, 0);
    for index in [1, 0, 2, 1, 2, 0] {
        world.assign(&[assignment(0, 7, 1, index)]);
        assert_eq!(world.runs(), [], "one at a time");
    }
    assert_eq!((world.counters().extra_tasks, world.counters().stale_assignments), (2, 4));
    for index in [1, 2] {
        world.finish(&run, b"");
        assert_eq!((world.waits(), world.runs().len()), (vec![], 1), "nothing is asked for meanwhile");
        run = world.runs()[0].clone();
        assert_eq!((run.key.slot, run.task.tid.get()), (0, index));
    }
    world.finish(&run, b"");
    assert_eq!((world.waits(), world.runs()), (vec![(100, 7, 2)], vec![]));
    assert_eq!((world.counters().runs, world.executor.unacknowledged()), (3, 3));
}

#[test]
fn a_second_task_of_a_wait_keeps_its_appended_argument() {
    let mut world = World::polling(1, POLL_US);
    let first = world.start(0, 1, 0);
    let mut second = assignment(0, 7, 1, 1);
    second.task.argument_length = APPENDED;
    second.task.argument = [0; 16];
    second.task.argument[1] = 17;
    let argument = vec![9; 17];
    world.deliver(switch(1), &[assign(EPOCH, &[second]), argument.clone(), vec![0; 7]].concat());
    world.finish(&first, b"");
    assert_eq!(world.runs()[0].appended.as_deref(), Some(&argument));
}

/// The first task ended before the second arrived.
#[test]
fn t1_a_task_for_the_wait_before_the_present_one_is_run_at_once() {
    let mut world = World::polling(1, POLL_US);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    world.assign(&[assignment(0, 7, 1, 0)]);
    assert_eq!((world.runs(), world.counters().stale_assignments), (vec![], 1), "that one has run");
    let run = world.start(0, 1, 1);
    // The task for the current wait comes next; a NO_OP for that wait is stale.
    world.no_op((100, 7, 2));
    world.assign(&[assignment(0, 7, 2, 2)]);
    assert_eq!((world.runs(), world.counters().stale_no_ops), (vec![], 1));
    world.finish(&run, b"");
    let run = world.runs()[0].clone();
    world.finish(&run, b"");
    assert_eq!(world.waits(), [(100, 7, 3)]);
    // Assignments to older or unsent waits are forged.
    for sequence in [0, 1, 4] {
        world.assign(&[assignment(0, 7, sequence, 9)]);
    }
    assert_eq!((world.counters().runs, world.counters().stale_assignments), (3, 4));
}

#[test]
fn t12_few_tasks_are_kept_for_a_slot() {
    let mut world = World::polling(1, POLL_US);
    for index in 0..100 {
        world.assign(&[assignment(0, 7, 1, index)]);
    }
    assert_eq!((world.counters().extra_tasks, world.counters().stale_assignments), (7, 92));
}

#[test]
fn t2_a_switch_that_parks_gives_one_task_to_a_wait() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.assign(&[assignment(0, 7, 1, 1)]);
    world.finish(&run, b"");
    world.assign(&[assignment(0, 7, 1, 1)]);
    assert_eq!(
        (world.counters().runs, world.counters().stale_assignments),
        (1, 2),
        "it knows, and gives it to another"
    );
}

#[test]
fn a_drain_ends_when_what_was_kept_has_run() {
    let mut world = World::polling(1, POLL_US);
    let run = world.start(0, 1, 0);
    world.assign(&[assignment(0, 7, 1, 1)]);
    world.executor.drain(world.now);
    world.finish(&run, b"");
    let run = world.runs()[0].clone();
    world.finish(&run, b"");
    assert_eq!(names(&world, Operation::Release), [[100]]);
    world.assign(&[assignment(0, 7, 1, 1)]);
    assert_eq!((world.runs(), world.counters().runs), (vec![], 2), "that one has run");
}

/// Its RETRIEVE was in flight when the drain began, and no other slot would run the task.
#[test]
fn t1_what_a_leaving_slot_is_given_is_run_before_it_leaves() {
    let mut world = World::polling(2, POLL_US);
    assert_eq!(world.waits().len(), 2);
    world.executor.drain(world.now);
    world.turn();
    assert_eq!(names(&world, Operation::Release), [[100, 101]]);
    world.assign(&[assignment(0, 7, 1, 0)]);
    let run = world.runs()[0].clone();
    world.finish(&run, b"");
    assert_eq!(names(&world, Operation::Release), [[100]], "once more, now that it is done");
    // The other slot has left already.
    world.released(EPOCH, &[(101, 7)]);
    world.assign(&[assignment(1, 7, 1, 1)]);
    assert_eq!((world.runs(), world.counters().runs), (vec![], 1));
}

#[test]
fn a_no_op_measures_the_round_trip_of_what_was_sent_once() {
    let mut world = World::polling(1, POLL_US);
    for _ in 0..40 {
        world.now += 15 * MS;
        world.no_op(WAIT);
        world.turn_due();
    }
    let due = |world: &World| world.executor.poll_timeout().unwrap() - world.now;
    assert!((29 * MS..=30 * MS).contains(&due(&world)), "twice 15 ms, nearly: {}", due(&world));
    // A response after a repeat is ambiguous.
    let asked = due(&world);
    world.turn_due();
    world.now += 100 * MS;
    world.no_op(WAIT);
    world.turn_due();
    assert_eq!(due(&world), asked);
    // An immediate assignment is also a sample, whatever the task's waiting time.
    for sequence in 1..40 {
        world.now += 12 * MS;
        let run = world.start(0, sequence, 0);
        world.finish(&run, b"");
        world.deliver(client(1), &ack(0, AckState::Done));
    }
    assert!((24 * MS..=25 * MS).contains(&due(&world)), "twice 12 ms, nearly: {}", due(&world));
}

#[test]
fn t9_a_switch_that_leaves_polls_unanswered_for_a_lease_is_left() {
    let mut world = World::polling(3, POLL_US);
    for slot in 0..3 {
        world.no_op((100 + slot, 7, 1));
    }
    world.turn_due();
    assert_eq!(world.waits().len(), 3);
    world.pass(POLL + 299 * MS);
    assert_eq!(world.executor.switch(), switch(1));
    world.pass(POLL + 301 * MS);
    assert_eq!(world.executor.switch(), switch(2), "the polls were the question");
    assert!(world.events.contains(&Event::SwitchChanged { switch: switch(2) }));
    let asked: Vec<_> = world.registers().iter().map(|(to, request)| (*to, request.header.count)).collect();
    assert_eq!(asked[0], (switch(2), 3));
}

/// Neither a switch without tasks, nor one whose poll interval exceeds a lease.
#[test]
fn t9_a_switch_that_answers_polls_is_not_left() {
    for poll_us in [POLL_US, u16::MAX] {
        let mut world = World::polling(2, poll_us);
        world.executor.link.lease = 10 * MS;
        let run = world.start(1, 1, 0);
        world.no_op(WAIT);
        while world.now < 1_000 * MS {
            world.turn_due();
            if world.waits() == [WAIT] {
                world.no_op(WAIT);
            }
            assert_eq!(world.registers(), []);
        }
        assert_eq!((world.executor.switch(), world.counters().switch_changes), (switch(1), 0));
        world.finish(&run, b"");
    }
}

/// An only switch is probed, as one that parks slots.
#[test]
fn t9_a_single_switch_that_is_silent_is_asked_for_its_epoch() {
    let mut world = World::with(ExecutorConfig::new(42, 1, vec![switch(1)], 1, 0));
    world.poll_us = POLL_US;
    world.grant(EPOCH, 7);
    world.pass(310 * MS);
    world.deliver(switch(1), &reset(0xBEEF, world.question(switch(1)), &[]));
    world.grant(0xBEEF, 8);
    assert_eq!(world.waits().last(), Some(&(100, 8, 1)));
}

#[test]
fn a_slot_that_leaves_does_not_ask_again() {
    let mut world = World::polling(2, POLL_US);
    world.no_op(WAIT);
    world.executor.drain(world.now);
    world.turn();
    world.no_op((101, 7, 1));
    assert_eq!((world.counters().polls, world.counters().stale_no_ops), (1, 1));
    world.pass(10 * MS);
    assert_eq!(world.waits(), []);
    world.released(EPOCH, &[(100, 7), (101, 7)]);
    assert!(world.executor.is_drained());
    assert_eq!(world.executor.poll_timeout(), None);
}
