//! Speculative push of arguments.

use super::*;
use crate::blob::{argument_name, open_argument};
use midflight_endpoint::MS;

const ARGUMENT: &[u8] = b"an argument of thirty-one bytes";

fn packed() -> BlobRef {
    BlobRef { id: 7.into(), length: (ARGUMENT.len() as u32).into(), port: 80.into(), at: 3.into() }
}

fn other_executor() -> SocketAddr {
    address("10.0.1.2:9")
}

/// Returns where the argument was pushed.
fn run(hand: &mut Hand, at: SocketAddr) -> Option<SocketAddr> {
    let key = hand.client.submit(hand.now, 1, &[Task::new(1, super::Argument::ByReference(packed()))]).unwrap().start;
    hand.client.send_along(hand.now, TaskKey(key), packed(), ARGUMENT);
    let sent = hand.sent();
    let (sequence, along) = match &sent[..] {
        [Sent::Argument { to, name, tag, bytes }, Sent::Submit { sequence, .. }] => {
            let mut bytes = bytes.clone();
            assert_eq!(*name, argument_name(&packed()));
            assert!(open_argument(&packed(), tag, &mut bytes));
            assert_eq!(bytes, ARGUMENT);
            (*sequence, Some(*to))
        }
        [Sent::Submit { sequence, .. }] => (*sequence, None),
        other => panic!("{other:?}"),
    };
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
    hand.client.handle(hand.now, at, &complete((sequence, 0), 1, Status::Ok, false, b""));
    hand.events();
    hand.sent();
    along
}

#[test]
fn it_goes_to_the_executor_whose_completion_came_last_before_the_submit() {
    let mut hand = Hand::settled();
    assert_eq!(run(&mut hand, executor()), None, "no executor is known yet");
    for _ in 0..5 {
        assert_eq!(run(&mut hand, executor()), Some(executor()));
    }
    assert_eq!(hand.client.counters().arguments_sent_along, 5);
}

#[test]
fn after_wrong_guesses_ever_more_tasks_go_without() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    // Two executors alternate, so each guess is wrong.
    let mut along = Vec::new();
    for turn in 0..300 {
        let at = if turn % 2 == 0 { other_executor() } else { executor() };
        if run(&mut hand, at).is_some() {
            along.push(turn);
        }
    }
    let rests: Vec<u32> = along.windows(2).map(|pair| pair[1] - pair[0] - 1).collect();
    assert_eq!(rests, [1, 3, 7, 15, 31, 63, 63, 63]);
    // After one right guess the next argument is pushed.
    while run(&mut hand, executor()).is_none() {}
    assert_eq!(run(&mut hand, executor()), Some(executor()));
}

/// Returns the sequence of the SUBMIT, and whether the argument was pushed.
fn begin(hand: &mut Hand) -> (u32, bool) {
    let task = Task::new(1, super::Argument::ByReference(packed()));
    let key = hand.client.submit(hand.now, 1, &[task]).unwrap().start;
    hand.client.send_along(hand.now, TaskKey(key), packed(), ARGUMENT);
    let sent = hand.sent();
    let submit =
        sent.iter().find_map(|sent| if let Sent::Submit { sequence, .. } = sent { Some(*sequence) } else { None });
    let sequence = submit.expect("a SUBMIT");
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
    (sequence, sent.iter().any(|sent| matches!(sent, Sent::Argument { .. })))
}

/// Otherwise a client with always one open task would never evaluate a guess.
#[test]
fn a_wrong_guess_is_noticed_where_the_next_task_is_submitted_before_it_ends() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    let (mut open, mut along) = (begin(&mut hand).0, 0);
    for turn in 0..100 {
        let (next, went) = begin(&mut hand);
        // Each guess is based on the task two before, which ended at the other executor.
        let at = if turn / 2 % 2 == 0 { other_executor() } else { executor() };
        hand.client.handle(hand.now, at, &complete((open, 0), 1, Status::Ok, false, b""));
        (open, along) = (next, along + usize::from(went));
    }
    assert!((2..20).contains(&along), "{along} of 100 went along");
}

/// A task that runs for an hour must not block the evaluation of other guesses.
#[test]
fn a_wrong_guess_is_noticed_while_another_task_is_open_for_long() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    assert!(begin(&mut hand).1);
    let executors = [other_executor(), executor()];
    let along = (0..100).filter(|turn| run(&mut hand, executors[turn % 2]).is_some()).count();
    assert!((2..10).contains(&along), "{along} of 100 went along");
}

/// Later another process may have the port.
#[test]
fn t13_it_goes_to_an_executor_only_soon_after_its_completion_and_under_the_same_switch() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    hand.now += 100 * MS;
    assert_eq!(run(&mut hand, executor()), Some(executor()));
    hand.now += 100 * MS + 1;
    assert_eq!(run(&mut hand, executor()), None);
    assert_eq!(run(&mut hand, executor()), Some(executor()));
    hand.client.along.switch_changed();
    assert_eq!(run(&mut hand, executor()), None);
}

/// Neither the id of its pack, nor the ids of function and shared data in a Python call.
#[test]
fn t13_the_packet_has_no_id_of_a_blob() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    let id = 0x1122_3344_5566_7788u64;
    let argument = [&id.to_be_bytes()[..], &id.to_le_bytes(), b"function"].concat();
    let blob = BlobRef { id: id.into(), length: (argument.len() as u32).into(), ..packed() };
    let key = hand.client.submit(hand.now, 1, &[task()]).unwrap().start;
    hand.client.send_along(hand.now, TaskKey(key), blob, &argument);
    let mut packet = Vec::new();
    assert_eq!(hand.client.transmit(hand.now, &mut packet), Some(executor()));
    for part in id.to_be_bytes().chunks(4).chain(id.to_le_bytes().chunks(4)).chain([&b"function"[..]]) {
        assert!(packet.windows(part.len()).all(|bytes| bytes != part), "{part:?}");
    }
}

#[test]
fn what_is_not_alone_not_in_a_pack_or_longer_than_a_packet_stays_here() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    let mut along = |blob: BlobRef, argument: &[u8]| {
        let key = hand.client.submit(hand.now, 1, &[task()]).unwrap().start;
        let blob = BlobRef { length: (argument.len() as u32).into(), ..blob };
        hand.client.send_along(hand.now, TaskKey(key), blob, argument);
        hand.sent().iter().any(|sent| matches!(sent, Sent::Argument { .. }))
    };
    assert!(!along(BlobRef { at: 0.into(), ..packed() }, ARGUMENT));
    assert!(!along(packed(), &[1; 1025]));
    assert!(along(packed(), &[1; 1024]));
    assert!(along(packed(), ARGUMENT), "the fourth that is open");
    assert!(!along(packed(), ARGUMENT), "the fifth");
}
