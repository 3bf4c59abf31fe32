//! Delivery of results to clients.

use super::*;
use midflight_wire::tasks::BlobRef;
use zerocopy::{FromBytes, IntoBytes};

fn completes(world: &World) -> Vec<Complete> {
    let packets = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Complete(complete, _)) => Some(*complete),
        _ => None,
    });
    packets.collect()
}

fn blob() -> BlobRef {
    BlobRef { id: 1.into(), length: 5000.into(), port: 4.into(), reserved: 0.into() }
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
    for _ in 0..30 {
        world.deliver(client(1), &ack(0, AckState::Fetching));
        world.pass(world.now + 250 * MS);
    }
    assert_eq!((world.executor.unacknowledged(), world.counters().given_up), (0, 1));
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
fn t13_what_one_address_is_owed_shares_a_packet_and_each_is_proven_by_its_token() {
    let mut world = World::registered(2);
    let tasks: Vec<_> =
        (0..2).map(|slot| Assignment { token: slot.into(), ..assignment(slot as u32, 7, 1, 0) }).collect();
    world.assign(&tasks);
    let end = End { status: Status::Ok, result: Output::Inline(Vec::new()), started: 0, ended: 0 };
    world.runs().iter().for_each(|run| world.executor.finish(world.now, run.key, end.clone()));
    world.turn();
    let Ok(Packet::Complete(fixed, completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    for (token, (completion, result)) in (0..2).zip(completions) {
        let proof = Token::new(token).completion_proof(fixed.executor.get(), completion, result);
        assert_eq!(completion.proof.get(), proof);
    }
    // Two clients may use equal task names; each acknowledges its own task.
    world.deliver(client(1), &ack_by(Token::new(1), 0, 2));
    assert_eq!(world.executor.unacknowledged(), 1);
    world.deliver(client(1), &ack_by(Token::new(1), 0, 2));
    assert_eq!((world.executor.unacknowledged(), world.counters().unknown_acks), (1, 1));
    world.deliver(client(1), &ack_by(Token::new(0), 0, 2));
    assert_eq!(world.executor.unacknowledged(), 0);
}

/// DONE for this task and attempt.
fn ack_by(token: Token, index: u8, attempt: u8) -> Vec<u8> {
    let state = AckState::Done as u8;
    let one = Completed { proof: 0.into(), submission: 9.into(), index, attempt, state, reserved: 0 };
    packet(&CompleteAck::new(EPOCH, 0), &[proven(token, one)])
}

/// An attacker has the port of an ended executor and sees what the client sends there.
#[test]
fn t13_an_acknowledgement_of_another_completion_settles_nothing() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    world.finish(&run, b"");
    let token = Token::new(TOKEN);
    let of_another = [ack_by(Token::new(TOKEN + 1), 0, 2), ack_by(token, 1, 2), ack_by(token, 0, 1)];
    of_another.iter().for_each(|seen| world.deliver(client(1), seen));
    let good = ack(0, AckState::Done);
    // All bytes except the reserved one.
    for byte in size_of::<CompleteAck>()..good.len() - 1 {
        let mut forged = good.clone();
        forged[byte] ^= 1;
        world.deliver(client(1), &forged);
        if let Some(seen) = of_another.first() {
            forged = seen.clone();
            forged[byte] = good[byte];
            world.deliver(client(1), &forged);
        }
    }
    assert_eq!((world.executor.unacknowledged(), world.counters().unknown_acks), (1, 3 + 2 * 15));
    world.deliver(client(1), &good);
    assert_eq!(world.executor.unacknowledged(), 0);
}

/// Neither FETCHING nor a STOP can be turned into an acknowledgement.
#[test]
fn t13_nobody_makes_done_of_fetching_or_of_a_stop() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    finish_by_reference(&mut world, &run);
    let mut forged = ack(0, AckState::Fetching);
    let state = forged.len() - 2;
    forged[state] = AckState::Done as u8;
    world.deliver(client(1), &forged);
    let proof = size_of::<CompleteAck>();
    forged[proof..proof + 8].copy_from_slice(Token::new(TOKEN).run_name(9, 0).proof.as_bytes());
    world.deliver(client(1), &forged);
    assert_eq!((world.executor.unacknowledged(), world.counters().unknown_acks), (1, 2));
}

/// A process with the port of an ended client can neither fetch the result nor serve another in its place.
#[test]
fn t13_only_the_client_learns_the_id_of_a_result() {
    let mut world = World::registered(1);
    let run = world.start(0, 1, 0);
    finish_by_reference(&mut world, &run);
    let Ok(Packet::Complete(fixed, mut completions)) = parse(&world.sent[0].1) else { panic!("COMPLETE") };
    let (completion, result) = completions.next().unwrap();
    let hidden = BlobRef::read_from_bytes(result).unwrap();
    assert_ne!(hidden.id, blob().id);
    let token = Token::new(TOKEN);
    assert_eq!(token.hide(completion.proof.get(), &hidden), blob());
    assert_eq!(completion.proof.get(), token.completion_proof(fixed.executor.get(), completion, blob().as_bytes()));
}

#[test]
fn t13_clients_get_a_name_that_is_no_secret() {
    let of = |identity, seed| ExecutorConfig::new(identity, seed, vec![switch(1)], 1, 0).public_name;
    assert_eq!(of(1, 1), of(2, 1), "not from the identity");
    assert_ne!(of(1, 1), of(1, 2));
}
