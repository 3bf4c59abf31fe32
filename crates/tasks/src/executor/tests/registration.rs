//! Registration, resets, other switches, drain.

use super::*;

#[test]
fn all_slots_register_and_wait() {
    let mut world = World::new(70);
    let counts: Vec<_> = world.registers().iter().map(|(_, r)| (r.first.get(), usize::from(r.header.count))).collect();
    assert_eq!(counts, [(0, REGISTER_MAX), (32, REGISTER_MAX), (64, 6)]);
    world.grant(EPOCH, 7);
    assert_eq!(world.waits().len(), 70);
    assert!(world.waits().iter().all(|&(_, generation, sequence)| (generation, sequence) == (7, 1)));
    assert_eq!(world.events, [Event::Registered { switch: switch(1), slots: 70, seen: client(200) }]);
}

#[test]
fn a_lost_register_is_repeated_under_its_sequence() {
    let mut world = World::new(4);
    let first = world.registers()[0].1;
    world.pass(500 * MS);
    let repeats = world.registers();
    assert!(repeats.len() >= 3, "doubling from 20 ms: {} repeats", repeats.len());
    assert!(repeats.iter().all(|(_, request)| *request == first));
    // The switch answers twice; the second response is unexpected.
    let answer = registered(EPOCH, &first, 4, 7);
    world.deliver(switch(1), &answer);
    world.deliver(switch(1), &answer);
    assert_eq!((world.executor.registered(), world.counters().foreign), (4, 1));
}

/// A switch that compares the lower halves of counters as serial numbers must accept the first wait as later.
#[test]
fn a_register_says_where_the_counter_is() {
    let mut world = World::new(4);
    let begins = u32::from(world.registers()[0].1.counter.get()) << 16;
    world.grant(EPOCH, 7);
    let counters = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Retrieve(retrieve, _)) => Some(retrieve.counter.get() as u32),
        _ => None,
    });
    let ahead: Vec<_> = counters.map(|counter| counter.wrapping_sub(begins)).collect();
    assert!(!ahead.is_empty() && ahead.iter().all(|&ahead| ahead < 1 << 17), "{ahead:?}");
}

#[test]
fn the_first_answer_of_several_asks_for_no_slot_again() {
    let mut world = World::new(64);
    let requests = world.registers();
    assert_eq!(requests.len(), 2);
    // The later REGISTER is answered first. Its epoch changes nothing for slots without a name.
    for (_, request) in requests.iter().rev() {
        world.deliver(switch(1), &registered(EPOCH, request, 32, 7));
        assert_eq!(world.registers(), []);
    }
    assert_eq!((world.executor.registered(), world.counters().foreign), (64, 0));
}

#[test]
fn refused_slots_ask_a_restarted_switch_at_once() {
    let mut world = World::new(8);
    let request = world.registers()[0].1;
    world.deliver(switch(1), &registered(EPOCH, &request, 3, 7));
    world.reset(switch(1), 0xBEEF, &[]);
    let asked: Vec<_> = world.registers().iter().map(|(_, r)| (r.first.get(), r.header.count)).collect();
    assert_eq!(asked, [(0, 8)]);
    world.grant(0xBEEF, 9);
    assert_eq!(world.executor.registered(), 8);
    world.pass(200 * MS);
    assert_eq!(world.registers(), [], "after the time that the first switch's refusal set");
}

#[test]
fn slots_full_keeps_what_it_got_and_asks_again() {
    let mut world = World::new(8);
    let request = world.registers()[0].1;
    world.deliver(switch(1), &registered(EPOCH, &request, 3, 7));
    assert_eq!(world.waits().len(), 3);
    assert!(world.events.contains(&Event::SlotsFull { got: 3, is_share: false }));
    world.pass(140 * MS);
    let again = world.registers();
    assert!(again.iter().all(|repeat| *repeat == again[0]));
    assert_eq!((again[0].1.first.get(), again[0].1.header.count), (3, 5));
    assert_ne!(again[0].1.header.sequence, request.header.sequence);
    world.grant(EPOCH, 8);
    assert_eq!(world.executor.registered(), 8);
}

#[test]
fn t19_every_slot_is_registered_at_the_executors_places() {
    let config = ExecutorConfig { places: [5, 9], ..ExecutorConfig::new(42, 1, vec![switch(1)], 40, 0) };
    let world = World::with(config);
    let places: Vec<_> =
        world.registers().iter().map(|(_, register)| register.places.map(|place| place.get())).collect();
    assert_eq!(places, [[5, 9]; 2]);
}

/// Another executor process replaced it, with the same address and first sequence.
#[test]
fn an_answer_to_the_process_before_is_no_answer() {
    let mut world = World::new(2);
    let request = world.registers()[0].1;
    let before = Register { executor: (request.executor.get() ^ 1).into(), ..request };
    world.deliver(switch(1), &registered(EPOCH, &before, 2, 6));
    assert_eq!((world.executor.registered(), world.counters().foreign), (0, 1));
    world.deliver(switch(1), &registered(EPOCH, &request, 2, 7));
    assert_eq!(world.waits(), [(100, 7, 1), (101, 7, 1)]);
}

/// The switch dropped two idle slots and registers them again in another order.
#[test]
fn a_slot_whose_number_goes_to_another_registers_anew() {
    let mut world = World::registered(2);
    world.reset(switch(1), EPOCH, &[(100, 7, 1)]);
    let request = world.registers()[0].1;
    let mut answer = registered(EPOCH, &request, 1, 8);
    let number = answer.len() - 5; // of the last slot that it names
    answer[number] = 101;
    world.deliver(switch(1), &answer);
    let asked: Vec<_> = world.registers().iter().map(|(_, r)| (r.first.get(), r.header.count)).collect();
    assert_eq!(asked, [(1, 1)], "its name is void, and no RESET will ever say so");
    let mut answer = registered(EPOCH, &world.registers()[0].1, 1, 9);
    answer[number] = 100;
    world.deliver(switch(1), &answer);
    assert_eq!((world.waits(), world.executor.registered()), (vec![(100, 9, 1)], 2));
}

#[test]
fn a_silent_switch_is_asked_and_then_left() {
    let mut world = World::registered(2);
    // A parked wait gets no response. A live switch answers a probe, without a cookie.
    world.pass(301 * MS);
    let asked = world.question(switch(1));
    let (_, question) = world.sent.iter().find(|(_, packet)| counter(packet) == Some(asked)).unwrap();
    let Ok(Packet::Keepalive(_, [named])) = parse(question) else { panic!("{question:?}") };
    assert_eq!(numbers(named), (100, 7, 1), "a slot by which the switch knows who asks");
    world.deliver(switch(1), &reset(EPOCH, asked, &[]));
    assert!(world.events.is_empty());
    assert_eq!((world.executor.registered(), world.counters().resets), (2, 0));
    world.pass(850 * MS);
    assert!(world.events.is_empty());
    world.pass(910 * MS);
    assert_eq!(world.events, [Event::SwitchChanged { switch: switch(2) }], "two leases after it was heard");
    assert!(world.registers().iter().any(|(to, request)| *to == switch(2) && request.header.count == 2));
    world.grant(0xBEEF, 9);
    assert_eq!((world.executor.switch(), world.executor.registered()), (switch(2), 2));
}

/// Otherwise executors that failed over and those that did not would stay at different switches.
#[test]
fn t9_an_executor_returns_to_a_better_switch_when_it_answers_again() {
    let mut world = World::registered(2);
    world.pass(910 * MS);
    world.grant(0xBEEF, 9);
    assert_eq!((world.executor.switch(), world.executor.registered()), (switch(2), 2));
    let run = {
        world.deliver(switch(2), &assign(0xBEEF, &[assignment(1, 9, 1, 0)]));
        world.runs()[0].clone()
    };
    // A RESET that answers no packet is ignored.
    world.reset(switch(1), EPOCH, &[]);
    assert_eq!(world.executor.switch(), switch(2));
    let probes = |world: &World| world.sent.iter().filter(|(to, _)| *to == switch(1)).count();
    for _ in 0..21 {
        world.pass(world.now + 50 * MS);
        if probes(&world) > 0 {
            break;
        }
        let asked = world.questions(switch(2));
        for counter in asked {
            world.deliver(switch(2), &reset(0xBEEF, counter, &[]));
        }
    }
    let asked = world.question(switch(1));
    // Only the response to the probe shows that the preferred switch is alive.
    for (from, counter) in [(switch(1), asked - 1), (switch(1), asked + 1), (switch(3), asked)] {
        world.deliver(from, &reset(EPOCH, counter, &[]));
        assert_eq!(world.executor.switch(), switch(2));
    }
    world.deliver(switch(1), &reset(EPOCH, asked, &[]));
    assert_eq!(world.events, [Event::SwitchChanged { switch: switch(1) }]);
    world.grant(EPOCH, 11);
    assert_eq!((world.executor.switch(), world.executor.registered()), (switch(1), 1), "the other slot runs");
    world.finish(&run, b"done");
    world.grant(EPOCH, 12);
    assert_eq!(world.executor.registered(), 2);
}

/// An address moves to another switch and back while REGISTERs and their responses are in flight.
#[test]
fn t16_answers_of_two_switches_at_one_address_heal() {
    const OTHER: u32 = 0xBEEF;
    let mut world = World::new(70);
    let requests: Vec<_> = world.registers().into_iter().map(|(_, request)| request).collect();
    let answer = |at: usize, epoch, generation| {
        let count = u32::from(requests[at].header.count);
        registered(epoch, &requests[at], count, generation)
    };
    // Each switch answers what it received; the executor ignores a second response to a request.
    world.deliver(switch(1), &answer(0, EPOCH, 7));
    world.deliver(switch(1), &answer(1, OTHER, 8));
    world.deliver(switch(1), &answer(1, EPOCH, 7));
    world.deliver(switch(1), &answer(0, OTHER, 8));
    world.deliver(switch(1), &answer(2, EPOCH, 7));
    assert_eq!(world.counters().foreign, 2);
    // The address ends at the other switch, which does not know the waits.
    world.pass(world.now + 100 * MS);
    world.reset(switch(1), OTHER, &[]);
    for generation in 9..12 {
        world.grant(OTHER, generation);
        world.pass(world.now + 50 * MS);
    }
    assert_eq!((world.executor.registered(), world.executor.link.epoch()), (70, OTHER));
    assert!(world.waits().iter().all(|&(_, generation, sequence)| (9..12).contains(&generation) && sequence == 1));
    // Late packets of the first switch change nothing.
    (0..3).for_each(|at| world.deliver(switch(1), &answer(at, EPOCH, 7)));
    assert_eq!((world.executor.registered(), world.executor.link.epoch()), (70, OTHER));
}

#[test]
fn a_single_switch_is_never_given_up() {
    let mut world = World::with(ExecutorConfig::new(42, 1, vec![switch(1)], 2, 0));
    world.grant(EPOCH, 7);
    world.pass(60_000 * MS);
    assert!(world.events.is_empty());
    assert!(world.sent.len() < 60 * 12, "bounded: {} packets in a minute", world.sent.len());
    world.deliver(switch(1), &reset(0xBEEF, world.question(switch(1)), &[]));
    world.grant(0xBEEF, 9);
    assert_eq!(world.executor.registered(), 2, "it came back with another epoch");
}

#[test]
fn a_switch_that_does_not_answer_at_the_start_is_left() {
    let mut world = World::new(2);
    world.pass(2_100 * MS);
    assert_eq!(world.events, [Event::SwitchChanged { switch: switch(2) }]);
    world.grant(EPOCH, 7);
    assert_eq!(world.executor.registered(), 2);
}

#[test]
fn drain_releases_waits_finishes_runs_and_ends_when_all_is_settled() {
    let mut world = World::registered(3);
    let run = world.start(1, 1, 0);
    world.executor.drain(world.now);
    world.turn();
    assert_eq!(names(&world, Operation::Release), [[100, 102]]);
    // The switch queues an assignment again that crossed the RELEASE.
    world.assign(&[assignment(0, 7, 1, 5)]);
    assert!(world.runs().is_empty());
    world.released(EPOCH, &[(100, 7), (102, 7)]);
    assert!(!world.executor.is_drained());
    world.finish(&run, b"");
    assert_eq!(world.operations(), [Operation::Complete, Operation::Release]);
    let Ok(Packet::Release(_, leaves)) = parse(&world.sent[1].1) else { panic!("RELEASE") };
    assert_eq!((leaves[0].done, leaves[0].sequence.get()), (1, 1));
    world.released(EPOCH, &[(101, 7)]);
    assert!(!world.executor.is_drained(), "a completion is owed");
    world.deliver(client(1), &ack(0, AckState::Done));
    assert_eq!(world.events, [Event::Drained]);
    world.pass(10_000 * MS);
    assert!(world.executor.is_drained() && world.sent.is_empty() && world.events.is_empty());
}

#[test]
fn drain_does_not_wait_for_a_silent_switch() {
    let mut world = World::registered(3);
    world.executor.drain(world.now);
    world.turn();
    world.pass(1_990 * MS);
    assert!(names(&world, Operation::Release).len() > 3, "repeated");
    assert!(!world.executor.is_drained());
    world.pass(2_010 * MS);
    assert_eq!(world.events, [Event::Drained]);
    assert_eq!(world.executor.poll_timeout(), None);
}

#[test]
fn drain_of_an_executor_that_never_registered_ends_at_once() {
    let mut world = World::new(3);
    world.executor.drain(world.now);
    world.turn();
    assert_eq!(world.events, [Event::Drained]);
}

#[test]
fn a_wrong_configuration_is_refused_with_what_to_do() {
    let refused = |change: fn(&mut ExecutorConfig)| {
        let mut config = ExecutorConfig::new(1, 1, vec![switch(1)], 1, 0);
        change(&mut config);
        Executor::new(config, 0).unwrap_err().to_string()
    };
    assert_eq!(refused(|c| c.switches.clear()), "no switch: name at least one address");
    assert_eq!(refused(|c| c.slots = 4097), "4097 slots: use 1 to 4096, and several executors for more");
    assert_eq!(refused(|c| c.lease = 5), "lease = 5 ns: use 100 us to 1 h");
    assert_eq!(refused(|c| c.completions = 0), "completions and complete_tries must be at least 1");
}
