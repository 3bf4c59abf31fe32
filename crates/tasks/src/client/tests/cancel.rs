//! Cancellation: unsent, sent, taken, unknown.

use super::*;

#[test]
fn unsent_tasks_are_cancelled_at_once_and_never_sent() {
    let mut hand = Hand::settled();
    let keys = hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap();
    hand.client.cancel(hand.now, &[TaskKey(keys.start + 1)]);
    assert_eq!(hand.events(), [Event::Cancelled { key: TaskKey(1) }]);
    let [(_, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(tasks.iter().map(|t| t.tid.get()).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn taken_tasks_are_cancelled_by_the_switch_which_says_which() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&vec![task(); 3]);
    hand.client.cancel(hand.now, &[keys[0], keys[2], keys[0], TaskKey(1_000)]);
    let [Sent::Cancel { sequence: cancel, names, .. }] = &hand.sent()[..] else { panic!("one CANCEL") };
    assert_eq!((*cancel, &names[..]), (sequence.wrapping_add(1), &[(sequence, 0), (sequence, 2)][..]));
    hand.switch_says(&cancel_ack(EPOCH, *cancel, 2, 0b01));
    hand.switch_says(&cancel_ack(EPOCH, *cancel, 2, 0b01));
    assert_eq!(hand.events(), [Event::Cancelled { key: keys[0] }, Event::NotCancelled { key: keys[2] }]);
    hand.executor_says(&complete((sequence, 2), 1, Status::Ok, false, b""));
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, .. }] if key == keys[2]), "its result still comes");
    assert_eq!(hand.client.open(), 1);
}

#[test]
fn t8_a_lost_cancel_is_sent_again_under_its_sequence() {
    let mut hand = Hand::settled();
    let (_, keys) = hand.open(&[task()]);
    hand.client.cancel(hand.now, &keys);
    let first = hand.sent();
    let again = hand.pass(150 * MS);
    assert!(again.iter().filter(|s| matches!(s, Sent::Cancel { .. })).all(|s| *s == first[0]));
    assert!(again.contains(&first[0]));
}

#[test]
fn a_sent_task_is_cancelled_when_its_submit_is_answered() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.submit(&vec![task(); 2]);
    hand.client.cancel(hand.now, &keys);
    assert_eq!((hand.sent(), hand.events()), (vec![], vec![]), "a CANCEL might overtake the SUBMIT");
    hand.switch_says(&submit_ack(EPOCH, sequence, 2, 0b01, Reason::Full));
    assert_eq!(hand.events(), [Event::Cancelled { key: keys[1] }], "the switch did not take it");
    assert!(matches!(&hand.sent()[..], [Sent::Cancel { names, .. }] if names[..] == [(sequence, 0)]));
}

#[test]
fn a_task_that_completes_while_it_is_cancelled_is_completed() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&[task()]);
    hand.client.cancel(hand.now, &keys);
    let [Sent::Cancel { sequence: cancel, .. }] = hand.sent()[..] else { panic!("one CANCEL") };
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    hand.switch_says(&cancel_ack(EPOCH, cancel, 1, 0));
    assert!(matches!(hand.events()[..], [Event::Completed { .. }]));
}

#[test]
fn t9_a_task_to_be_cancelled_is_not_given_to_a_new_switch() {
    let mut hand = Hand::settled();
    let (_, keys) = hand.open(&vec![task(); 2]);
    hand.client.cancel(hand.now, &keys[..1]);
    let [Sent::Cancel { sequence, .. }] = hand.sent()[..] else { panic!("one CANCEL") };
    hand.switch_says(&cancel_ack(EPOCH + 1, sequence, 1, 0));
    let events = hand.events();
    assert_eq!(events[0], Event::Cancelled { key: keys[0] });
    assert!(matches!(events[1], Event::SwitchChanged { resubmitted: 1, .. }));
    let [(_, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(tasks.len(), 1);
}
