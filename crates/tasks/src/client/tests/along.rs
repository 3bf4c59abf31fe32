//! An argument is sent along to the executor that probably gets its task.

use super::*;

const ARGUMENT: &[u8] = b"an argument of thirty-one bytes";

fn packed() -> BlobRef {
    BlobRef { id: 7.into(), length: (ARGUMENT.len() as u32).into(), port: 80.into(), at: 3.into() }
}

fn other_executor() -> SocketAddr {
    address("10.0.1.2:9")
}

/// A task alone ends at this executor; where its argument was sent along before.
fn run(hand: &mut Hand, at: SocketAddr) -> Option<SocketAddr> {
    let key = hand.client.submit(hand.now, 1, &[Task::new(1, super::Argument::ByReference(packed()))]).unwrap().start;
    hand.client.send_along(TaskKey(key), packed(), ARGUMENT);
    let sent = hand.sent();
    let (sequence, along) = match &sent[..] {
        [Sent::Argument { to, blob, bytes }, Sent::Submit { sequence, .. }] => {
            assert_eq!((blob, &bytes[..ARGUMENT.len()], bytes.len()), (&packed(), ARGUMENT, 32), "padded");
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
    assert_eq!(hand.client.counters().arguments_along, 5);
}

#[test]
fn after_wrong_guesses_ever_more_tasks_go_without() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    // Two executors take turns, so each guess is wrong.
    let mut along = Vec::new();
    for turn in 0..300 {
        let at = if turn % 2 == 0 { other_executor() } else { executor() };
        if run(&mut hand, at).is_some() {
            along.push(turn);
        }
    }
    let rests: Vec<u32> = along.windows(2).map(|pair| pair[1] - pair[0] - 1).collect();
    assert_eq!(rests, [1, 3, 7, 15, 31, 63, 63, 63]);
    // One right guess, and the next task's argument goes along again.
    while run(&mut hand, executor()).is_none() {}
    assert_eq!(run(&mut hand, executor()), Some(executor()));
}

#[test]
fn what_is_not_alone_not_in_a_pack_or_longer_than_a_packet_stays_here() {
    let mut hand = Hand::settled();
    run(&mut hand, executor());
    let mut along = |blob: BlobRef, argument: &[u8]| {
        let key = hand.client.submit(hand.now, 1, &[task()]).unwrap().start;
        hand.client.send_along(TaskKey(key), blob, argument);
        hand.sent().iter().any(|sent| matches!(sent, Sent::Argument { .. }))
    };
    assert!(!along(BlobRef { at: 0.into(), ..packed() }, ARGUMENT));
    assert!(!along(packed(), &[1; 1025]));
    assert!(along(packed(), &[1; 1024]));
    assert!(along(packed(), ARGUMENT), "the fourth that is open");
    assert!(!along(packed(), ARGUMENT), "the fifth");
}
