//! COOKIE: the executor stores the cookie and repeats what needs it, a bounded number of times.

use super::*;

const IDENTITY: u64 = 42;

/// First slot, sequence and cookie of each REGISTER in the last turn.
fn asked(world: &World) -> Vec<(u32, u32, u64)> {
    let registers = world.registers();
    registers.iter().map(|(_, r)| (r.first.get(), r.header.sequence.get(), r.cookie.get())).collect()
}

#[test]
fn t13_a_cookie_is_kept_and_what_was_asked_is_asked_again_with_it() {
    let mut world = World::new(40);
    assert_eq!(asked(&world), [(0, 1, 0), (32, 2, 0)]);
    world.deliver(switch(1), &cookie(1, IDENTITY, 5));
    assert_eq!(asked(&world), [(0, 1, 5), (32, 2, 5)], "the same registrations");
    world.deliver(switch(1), &cookie(2, IDENTITY, 5));
    assert_eq!(asked(&world), [], "it is held already");
    for (first, count) in [(0, 32), (32, 8)] {
        let new = Register::new(0, 1 + first / 32);
        let mut request = Register { executor: IDENTITY.into(), cookie: 5.into(), first: first.into(), ..new };
        request.header.count = count;
        world.deliver(switch(1), &registered(EPOCH, &request, count.into(), 7));
    }
    assert_eq!((world.executor.registered(), world.counters().cookies), (40, 2));
    world.reset(switch(1), 0xBEEF, &[]);
    assert!(asked(&world).iter().all(|&(_, _, cookie)| cookie == 5), "as long as no other comes");
}

#[test]
fn t13_a_cookie_that_answers_no_register_of_ours_changes_nothing() {
    let mut world = World::new(2);
    let request = world.registers()[0].1;
    for (from, sequence, identity) in [(switch(2), 1, IDENTITY), (switch(1), 2, IDENTITY), (switch(1), 1, 43)] {
        world.deliver(from, &cookie(sequence, identity, 5));
        assert_eq!(asked(&world), []);
    }
    world.deliver(switch(1), &registered(EPOCH, &request, 2, 7));
    world.deliver(switch(1), &cookie(1, IDENTITY, 5));
    assert_eq!((asked(&world), world.counters().cookies, world.counters().foreign), (vec![], 0, 4));
    world.reset(switch(1), EPOCH, &[(100, 7, 1)]);
    assert_eq!(asked(&world), [(0, 2, 0)]);
}

#[test]
fn t13_a_register_that_was_not_sent_is_sent_once_with_the_cookie() {
    // Of 9 REGISTERs, 8 are in flight at a time.
    let mut world = World::new(9 * REGISTER_MAX as u32);
    assert_eq!(asked(&world).len(), 8);
    world.deliver(switch(1), &cookie(3, IDENTITY, 5));
    assert_eq!(asked(&world).len(), 8);
    let request = world.registers()[0].1;
    world.deliver(switch(1), &registered(EPOCH, &request, 32, 7));
    assert_eq!(asked(&world), [(8 * 32, 9, 5)]);
    world.deliver(switch(1), &cookie(9, IDENTITY, 5));
    assert_eq!(asked(&world), []);
}

/// A switch that only sends cookies may never accept anything.
#[test]
fn t16_cookies_are_no_sign_of_life() {
    let mut world = World::new(2);
    for round in 0..100 {
        world.pass(round * 20 * MS);
        assert_eq!(world.executor.switch(), switch(1));
        world.deliver(switch(1), &cookie(1, IDENTITY, round));
    }
    world.pass(2_010 * MS);
    assert_eq!(world.executor.switch(), switch(2));
    assert_eq!(asked(&world).last().map(|&(_, _, cookie)| cookie), Some(0), "the other switch's cookie is another");
}

#[test]
fn t13_a_flood_of_cookies_is_answered_once_for_each_repeat_that_is_due() {
    let mut config = ExecutorConfig::new(IDENTITY, 1, vec![switch(1)], 64, 0);
    config.round_trip = MS / 10; // nearly that of the cookies
    let (mut quiet, mut world) = (World::with(config.clone()), World::with(config));
    let mut sent = world.registers().len();
    quiet.pass(10_000 * MS);
    let due = sent + quiet.registers().len();
    for round in 0..10_000 {
        world.pass(round * MS);
        sent += world.registers().len();
        world.deliver(switch(1), &cookie(1 + (round % 2) as u32, IDENTITY, round));
        sent += world.registers().len();
    }
    assert!((due..=2 * due).contains(&sent), "{sent}, and {due} without cookies");
}

#[test]
fn t13_a_cookie_measures_the_round_trip_and_what_was_sent_again_for_it_does_not() {
    let mut world = World::new(1);
    world.now = 4 * MS;
    let request = world.registers()[0].1;
    world.deliver(switch(1), &cookie(1, IDENTITY, 5));
    world.now = 7 * MS;
    world.deliver(switch(1), &registered(EPOCH, &request, 1, 7));
    assert_eq!(world.waits(), [(100, 7, 1)]);
    assert_eq!(world.executor.poll_timeout(), Some((7 + 2 * 4) * MS), "the first repeat of the wait");
}

/// A cookie expires after some seconds; the next request is refused once.
#[test]
fn t16_a_cookie_that_has_run_out_is_replaced() {
    let mut world = World::new(1);
    world.deliver(switch(1), &cookie(1, IDENTITY, 5));
    world.grant(EPOCH, 7);
    world.reset(switch(1), EPOCH, &[(100, 7, 1)]);
    assert_eq!(asked(&world), [(0, 2, 5)]);
    world.deliver(switch(1), &cookie(2, IDENTITY, 6));
    assert_eq!(asked(&world), [(0, 2, 6)]);
    world.grant(EPOCH, 8);
    assert_eq!(world.executor.registered(), 1);
}

/// A kernel engine without its process serves known slots and sends no cookies.
#[test]
fn t16_the_question_whether_a_switch_lives_needs_no_cookie() {
    let mut world = World::new(1);
    world.deliver(switch(1), &cookie(1, IDENTITY, 5));
    world.grant(EPOCH, 7);
    for second in 1..10 {
        world.pass(second * 310 * MS);
        assert_eq!(world.registers(), []);
        world.deliver(switch(1), &reset(EPOCH, world.question(switch(1)), &[]));
    }
    assert_eq!((world.executor.switch(), world.counters().resets), (switch(1), 0));
}

/// The switch knows the slots under the old address, and the cookie was for that one.
#[test]
fn t16_an_executor_whose_address_moves_registers_anew_with_another_cookie() {
    let mut world = World::new(3);
    world.deliver(switch(1), &cookie(1, IDENTITY, 5));
    world.grant(EPOCH, 7);
    let run = world.start(2, 1, 0);
    world.pass(101 * MS);
    assert_eq!(names(&world, Operation::Keepalive), [[102]]);
    world.reset(switch(1), EPOCH, &[(102, 7, 1)]);
    assert_eq!(asked(&world), [], "it finishes first");
    world.reset(switch(1), EPOCH, &[(100, 7, 1), (101, 7, 1)]);
    assert_eq!(asked(&world), [(0, 2, 5)]);
    world.deliver(switch(1), &cookie(2, IDENTITY, 6));
    assert_eq!(asked(&world), [(0, 2, 6)]);
    world.grant(EPOCH, 8);
    assert_eq!(world.waits(), [(100, 8, 1), (101, 8, 1)]);
    world.finish(&run, b"");
    assert_eq!(asked(&world), [(2, 3, 6)]);
    world.grant(EPOCH, 9);
    assert_eq!((world.waits(), world.executor.registered()), (vec![(102, 9, 1)], 3));
}
