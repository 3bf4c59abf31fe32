//! Waits, assignments, keepalives.

use super::*;

#[test]
fn t2_an_assignment_is_run_exactly_once() {
    let mut world = World::registered(2);
    let task = assignment(0, 7, 1, 0);
    world.assign(&[task, task]);
    world.assign(&[task]);
    assert_eq!(world.counters().runs, 1);
    assert_eq!(world.counters().stale_assignments, 2);
    assert_eq!(world.executor.running(), 1);
}

#[test]
fn an_assignment_that_answers_no_present_wait_is_ignored() {
    let mut world = World::registered(2);
    let foreign = [assignment(0, 6, 1, 0), assignment(0, 7, 2, 0), assignment(0, 7, 0, 0), assignment(9, 7, 1, 0)];
    world.assign(&foreign);
    world.deliver(switch(1), &assign(EPOCH + 1, &[assignment(0, 7, 1, 0)]));
    world.deliver(switch(2), &assign(EPOCH, &[assignment(0, 7, 1, 0)]));
    assert_eq!(world.counters().runs, 0);
    assert_eq!((world.counters().stale_assignments, world.counters().foreign), (4, 2));
    // After its task ended, the assignment of the old wait is repeated.
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    world.assign(&[assignment(0, 7, 1, 1)]);
    assert_eq!(world.counters().runs, 1);
}

/// A forged packet with only the right epoch must not hide that the switch is dead.
#[test]
fn t13_what_answers_nothing_is_no_sign_of_life() {
    for polled in [0, 50] {
        let mut world = World::new(2);
        world.poll_us = polled;
        world.grant(EPOCH, 7);
        for _ in 0..150 {
            world.pass(world.now + 5 * MS);
            world.assign(&[assignment(0, 6, 1, 0), assignment(0, 7, 9, 0)]);
            world.deliver(switch(1), &no_op(EPOCH, &[(100, 6, 1), (100, 7, 9)]));
            world.deliver(switch(1), &reset(EPOCH, 0, &[(100, 7, 1)]));
            world.deliver(switch(1), &released(EPOCH, 0, &[(100, 7)]));
        }
        assert_eq!((world.executor.switch(), world.counters().runs), (switch(2), 0));
    }
}

#[test]
fn a_switch_is_known_however_its_ipv4_address_is_written() {
    let mut world = World::registered(1);
    let std::net::IpAddr::V4(ip) = switch(1).ip() else { panic!("IPv4") };
    let mapped = SocketAddr::from((ip.to_ipv6_mapped(), switch(1).port()));
    world.deliver(mapped, &assign(EPOCH, &[assignment(0, 7, 1, 0)]));
    assert_eq!(world.counters().runs, 1);
}

#[test]
fn a_run_says_what_its_task_is() {
    let mut world = World::registered(1);
    world.now = 3 * MS;
    let run = world.start(0, 1, 4);
    assert_eq!((run.key.slot, run.uid, run.jid, run.waited_us, run.arrived), (0, 5, 6, 11, 3 * MS));
    assert_eq!((run.task.tid.get(), run.task.attempt), (4, 2));
    assert_eq!(run.client, client(1));
}

#[test]
fn done_completes_first_then_waits_under_the_next_sequence() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"value");
    assert_eq!(world.operations(), [Operation::Complete, Operation::Retrieve]);
    assert_eq!(world.waits(), [(100, 7, 2)]);
    let Ok(Packet::Complete(complete, mut completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    let public_name = ExecutorConfig::new(42, 1, vec![], 1, 0).public_name;
    assert_eq!((world.sent[0].0, complete.executor.get()), (client(1), public_name));
    let (completion, result) = completions.next().unwrap();
    let Completion { proof, submission, index, attempt, .. } = *completion;
    assert_eq!((submission.get(), index, attempt), (9, 0, 2));
    assert_eq!(proof.get(), Token::new(TOKEN).completion_proof(public_name, completion, result));
    assert_eq!((completion.waited_us.get(), completion.held_us.get(), completion.ran_ns.get()), (11, 5, 4_000));
    assert_eq!((completion.status, result), (Status::Ok as u8, b"value".as_slice()));
}

#[test]
fn what_finishes_together_leaves_together() {
    let mut world = World::registered(40);
    let tasks: Vec<_> = (0..40).map(|slot| assignment(slot, 7, 1, slot as u8)).collect();
    let mut runs = Vec::new();
    for tasks in tasks.chunks(WAITS_MAX) {
        world.assign(tasks);
        runs.extend(world.runs());
    }
    let end = End { status: Status::Ok, result: Output::Inline(Vec::new()), started: 0, ended: 0 };
    runs.iter().for_each(|run| world.executor.finish(world.now, run.key, end.clone()));
    world.turn();
    use Operation::{Complete, Retrieve};
    assert_eq!(world.operations(), [Complete, Complete, Retrieve, Retrieve, Retrieve, Retrieve]);
    let counts: Vec<_> = world.sent.iter().map(|(_, packet)| packet[4]).collect();
    assert_eq!(counts, [32, 8, 13, 13, 13, 1]);
}

#[test]
fn a_lost_wait_is_repeated_and_a_parked_one_backs_off_to_a_third_of_the_lease() {
    let mut world = World::registered(1);
    let mut times = Vec::new();
    for _ in 0..20 {
        let due = world.executor.poll_timeout().unwrap();
        world.pass(due);
        if !world.waits().is_empty() {
            assert_eq!(world.waits(), [(100, 7, 1)], "the same wait");
            times.push(world.now);
        }
    }
    assert_eq!(times[0], MS, "after the shortest repeat: the round trip was nil");
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap <= 100 * MS), "{gaps:?}");
    assert!(gaps.iter().rev().take(3).all(|&gap| gap >= 85 * MS), "{gaps:?}");
}

#[test]
fn thousands_of_parked_slots_cost_few_packets() {
    let mut world = World::with(ExecutorConfig::new(42, 1, vec![switch(1)], 315 * WAITS_MAX as u32, 0));
    world.grant(EPOCH, 7);
    world.pass(2_000 * MS);
    world.pass(2_250 * MS);
    let retrieves = world.operations().iter().filter(|&&op| op == Operation::Retrieve).count();
    assert!((315 * 2..=315 * 3).contains(&retrieves), "{retrieves} RETRIEVEs in 250 ms");
    assert_eq!(world.waits().len().div_ceil(WAITS_MAX), retrieves, "full packets");
}

#[test]
fn t10_running_slots_are_kept_alive_each_third_of_the_lease() {
    let mut world = World::registered(40);
    let tasks: Vec<_> = (0..36).map(|slot| assignment(slot, 7, 1, slot as u8)).collect();
    tasks.chunks(WAITS_MAX).for_each(|tasks| world.assign(tasks));
    world.pass(99 * MS);
    assert!(names(&world, Operation::Keepalive).is_empty());
    world.pass(299 * MS);
    let lists = names(&world, Operation::Keepalive);
    assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [32, 4, 32, 4]);
    assert!(lists.iter().flatten().all(|slot| (100..136).contains(slot)), "slots that wait are not named");
}

#[test]
fn an_immediate_answer_measures_the_round_trip() {
    let mut world = World::registered(1);
    for sequence in 1..=20 {
        world.now += 4 * MS;
        let mut task = assignment(0, 7, sequence, 0);
        task.waited_us = 1_000_000.into();
        world.assign(&[task]);
        let run = world.runs()[0].clone();
        world.finish(&run, b"");
        world.deliver(client(1), &ack(0, AckState::Done));
    }
    let (asked, due) = (world.now, world.executor.poll_timeout().unwrap());
    assert!((due - asked) > 6 * MS, "twice 4 ms, nearly: {}", due - asked);
}

#[test]
fn t11_bad_packets_are_counted_and_change_nothing() {
    let mut world = World::registered(1);
    let good = assign(EPOCH, &[assignment(0, 7, 1, 0)]);
    for length in 0..good.len() {
        world.deliver(switch(1), &good[..length]);
    }
    world.deliver(switch(1), &packet(&Retrieve::new(EPOCH, 0), &[wait((100, 7, 1))]));
    assert_eq!(world.counters().rejected, good.len() as u64 + 1);
    assert_eq!(world.executor.running(), 0);
    world.assign(&[assignment(0, 7, 1, 0)]);
    assert_eq!(world.executor.running(), 1);
}

#[test]
fn finishing_what_does_not_run_is_counted() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    world.finish(&run, b"");
    assert_eq!((world.counters().finished, world.counters().unknown_finishes), (1, 1));
    assert_eq!(world.executor.unacknowledged(), 1);
}

/// STOP of the task that `assignment` gives to a slot.
fn stop(index: u8) -> Vec<u8> {
    packet(&Stop::new(EPOCH, 0), &[Token::new(TOKEN).run_name(9, index)])
}

#[test]
fn t17_a_run_is_stopped_once_and_its_end_is_reported_as_any_other() {
    let mut world = World::registered(2);
    let run = world.start(0, 1, 4);
    world.deliver(client(1), &stop(4));
    assert_eq!((&world.events[..], world.sent.len()), (&[Event::Stop(run.key)][..], 0), "the driver is told");
    world.deliver(client(1), &stop(4));
    assert_eq!((world.events.len(), world.counters().stops, world.counters().unknown_stops), (0, 1, 1));
    assert_eq!(world.executor.running(), 1);
    let (started, ended) = (world.now, world.now + MS);
    let end = End { status: Status::Cancelled, result: Output::Inline(Vec::new()), started, ended };
    world.executor.finish(ended, run.key, end);
    world.turn();
    assert_eq!(world.operations(), [Operation::Complete, Operation::Retrieve]);
    let Ok(Packet::Complete(_, mut completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    assert_eq!(completions.next().unwrap().0.status, Status::Cancelled as u8);
}

#[test]
fn t17_a_stop_before_the_assignment_or_after_the_end_does_nothing() {
    let mut world = World::registered(1);
    world.deliver(client(1), &stop(4));
    let run = world.start(0, 1, 4);
    assert_eq!(world.counters().unknown_stops, 1, "nothing is kept of it");
    world.finish(&run, b"value");
    world.deliver(client(1), &stop(4));
    assert_eq!((world.events.len(), world.counters().stops, world.counters().unknown_stops), (0, 0, 2));
}

#[test]
fn t13_only_who_knows_the_token_of_its_submit_stops_a_run() {
    let mut world = World::registered(1);
    world.start(0, 1, 4);
    let token = Token::new(TOKEN);
    let stop = |name| packet(&Stop::new(EPOCH, 0), &[name]);
    let true_proof = token.run_name(9, 4).proof.get();
    let of_others = [Token::new(TOKEN + 1).run_name(9, 4), token.run_name(8, 4), token.run_name(9, 5)];
    // A proof seen on its way to the executor of another task, with this task's name.
    let of_another_task = [token.run_name(9, 5).proof.get(), true_proof ^ 1, 0, TOKEN].map(|p| RunName::new(p, 9, 4));
    for name in of_others.into_iter().chain(of_another_task) {
        world.deliver(client(1), &stop(name));
    }
    assert_eq!((world.events.len(), world.counters().unknown_stops), (0, 7));
    world.deliver(client(1), &stop(RunName::new(true_proof, 9, 4)));
    assert_eq!(world.counters().stops, 1);
}

/// Two clients may use equal sequences.
#[test]
fn t13_of_two_clients_with_equal_names_each_stops_its_own_run() {
    let mut world = World::registered(2);
    let of_another = Assignment { token: (TOKEN + 1).into(), ..assignment(1, 7, 1, 4) };
    world.assign(&[assignment(0, 7, 1, 4), of_another]);
    let runs = world.runs();
    for (number, token) in [TOKEN, TOKEN + 1].into_iter().enumerate() {
        world.deliver(client(1), &packet(&Stop::new(EPOCH, 0), &[Token::new(token).run_name(9, 4)]));
        assert_eq!(world.events, [Event::Stop(runs[number].key)]);
    }
}
