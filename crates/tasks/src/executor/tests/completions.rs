//! Results on their way to clients.

use super::*;
use midflight_wire::BlobRef;

fn completes(world: &World) -> Vec<Complete> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Complete(complete, _)) => Some(*complete),
        _ => None,
    });
    packets.collect()
}

fn blob() -> BlobRef {
    BlobRef { id: 1.into(), length: 5000.into(), port: 4.into(), at: 0.into() }
}

fn finish_by_reference(world: &mut World, run: &Run) {
    let end = End { status: Status::Ok, result: Output::ByReference(blob()), started: 0, ended: 0 };
    world.executor.finish(world.now, run.key, end);
    world.turn();
}

#[test]
fn an_unanswered_complete_is_sent_twenty_times_and_given_up() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    finish_by_reference(&mut world, &run);
    assert_eq!(completes(&world).len(), 1);
    world.pass(2_000 * MS);
    assert!(!world.events.contains(&Event::Settled { run: run.key, delivered: false }));
    let early = completes(&world).len();
    world.pass(6_000 * MS);
    assert_eq!(1 + early + completes(&world).len(), 20);
    assert!(world.events.contains(&Event::Settled { run: run.key, delivered: false }));
    assert_eq!((world.counters().given_up, world.executor.unacknowledged()), (1, 0));
}

#[test]
fn an_acknowledged_complete_is_not_repeated() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    world.deliver(client(1), &ack(0, AckState::Done));
    world.deliver(client(1), &ack(0, AckState::Done));
    world.pass(1_000 * MS);
    assert!(completes(&world).is_empty());
    assert_eq!((world.counters().delivered, world.counters().unknown_acks), (1, 1));
}

#[test]
fn a_result_that_is_being_fetched_is_kept_until_done() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    finish_by_reference(&mut world, &run);
    for _ in 0..100 {
        world.deliver(client(1), &ack(0, AckState::Fetching));
        world.pass(world.now + 300 * MS);
        assert_eq!(completes(&world).len(), 1, "asked again, slowly");
    }
    world.deliver(client(1), &ack(0, AckState::Done));
    assert_eq!(world.events, [Event::Settled { run: run.key, delivered: true }]);
}

#[test]
fn t16_a_result_inside_the_packet_is_not_kept_for_who_says_that_he_fetches_it() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"7");
    world.deliver(client(1), &ack(0, AckState::Fetching));
    assert_eq!((world.executor.unacknowledged(), world.counters().delivered), (0, 1));
}

#[test]
fn a_fetching_client_that_dies_is_given_up() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    finish_by_reference(&mut world, &run);
    world.deliver(client(1), &ack(0, AckState::Fetching));
    world.pass(6_000 * MS);
    assert!(world.events.contains(&Event::Settled { run: run.key, delivered: false }));
}

#[test]
fn clients_get_packets_of_their_own_and_large_results_are_split() {
    let mut world = World::registered(4);
    let mut tasks: Vec<_> = (0..4).map(|slot| assignment(slot, 7, 1, slot as u8)).collect();
    tasks[1].address = client(2).into();
    world.assign(&tasks);
    for run in world.runs() {
        let end = End { status: Status::Ok, result: Output::Inline(vec![1; 700]), started: 0, ended: 0 };
        world.executor.finish(world.now, run.key, end);
    }
    world.turn();
    let to: Vec<_> = world.sent.iter().take(4).map(|(to, _)| *to).collect();
    assert_eq!(to, [client(1), client(1), client(1), client(2)]);
    assert!(completes(&world).iter().all(|c| c.header.count == 1));
    let Ok(Packet::Complete(_, mut completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    assert_eq!(completions.next().unwrap().1, vec![1; 700]);
}

#[test]
fn a_result_that_is_too_long_is_a_failure_that_says_so() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, &[0; RESULT_MAX + 1]);
    let Ok(Packet::Complete(_, mut completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    let (completion, result) = completions.next().unwrap();
    assert_eq!(completion.status, Status::Failed as u8);
    assert_eq!(result, b"result of 1025 bytes: beyond 1024, pass it by reference");
}

#[test]
fn completions_are_bounded_and_the_one_sent_most_often_goes_first() {
    let mut config = ExecutorConfig::new(42, 1, vec![switch(1)], 3, 0);
    config.completions = 2;
    let mut world = World::with(config);
    world.grant(EPOCH, 7);
    for slot in 0..3 {
        let run = world.start(slot, 1, slot as u8);
        world.finish(&run, b"");
        world.pass(world.now + 50 * MS);
    }
    assert_eq!((world.executor.unacknowledged(), world.counters().given_up), (2, 1));
    world.deliver(client(1), &ack(0, AckState::Done));
    assert_eq!(world.counters().unknown_acks, 1, "the first one was given up");
}

#[test]
fn what_one_address_is_owed_shares_a_packet_and_each_keeps_its_token() {
    let mut world = World::registered(2);
    let tasks: Vec<_> =
        (0..2).map(|slot| Assignment { token: slot.into(), ..assignment(slot as u32, 7, 1, 0) }).collect();
    world.assign(&tasks);
    let end = End { status: Status::Ok, result: Output::Inline(Vec::new()), started: 0, ended: 0 };
    world.runs().iter().for_each(|run| world.executor.finish(world.now, run.key, end.clone()));
    world.turn();
    let Ok(Packet::Complete(_, completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    assert_eq!(completions.map(|(completion, _)| completion.token.get()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn t13_an_acknowledgement_with_another_token_settles_nothing() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    let mut forged = ack(0, AckState::Done);
    let token = size_of::<CompleteAck>() + 7;
    forged[token] ^= 1;
    world.deliver(client(1), &forged);
    assert_eq!((world.executor.unacknowledged(), world.counters().unknown_acks), (1, 1));
}

#[test]
fn t13_clients_get_a_name_that_is_no_secret() {
    let of = |identity, seed| ExecutorConfig::new(identity, seed, vec![switch(1)], 1, 0).public_name;
    assert_eq!(of(1, 1), of(2, 1), "not from the identity");
    assert_ne!(of(1, 1), of(1, 2));
}
