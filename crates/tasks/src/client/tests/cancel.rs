//! Cancellation of unsent, sent, accepted, running and unknown tasks.

use super::CancelledHow::{Stopped, TakenOut, Vanished};
use super::*;

fn cancelled(key: TaskKey, how: CancelledHow) -> Event {
    Event::Cancelled { key, how }
}

/// Sequence and names of the only CANCEL sent, possibly repeated.
fn the_cancel(sent: &[Sent]) -> (u32, Vec<(u32, u8)>) {
    let cancels = sent.iter().filter_map(|sent| match sent {
        Sent::Cancel { sequence, names, .. } => Some((*sequence, names.clone())),
        _ => None,
    });
    let mut cancels: Vec<_> = cancels.collect();
    cancels.dedup();
    let [cancel] = &cancels[..] else { panic!("one CANCEL: {sent:?}") };
    cancel.clone()
}

fn stops(sent: &[Sent]) -> Vec<Vec<(u32, u8)>> {
    let named = |sent: &Sent| match sent {
        Sent::Stop { to, names } => {
            assert_eq!(*to, executor());
            Some(names.clone())
        }
        _ => None,
    };
    sent.iter().filter_map(named).collect()
}

/// A running task after `cancel` and its STOP: client, SUBMIT sequence, key.
fn running() -> (Hand, u32, TaskKey) {
    let mut hand = Hand::settled();
    let (submission, keys) = hand.open(&[task()]);
    hand.client.cancel(hand.now, &keys);
    let (cancel, _) = the_cancel(&hand.sent());
    hand.switch_says(&cancel_ack(EPOCH, cancel, 0, &[0]));
    assert_eq!(stops(&hand.sent()), [[(submission, 0)]]);
    (hand, submission, keys[0])
}

#[test]
fn unsent_tasks_are_cancelled_at_once_and_never_sent() {
    let mut hand = Hand::settled();
    let keys = hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap();
    hand.client.cancel(hand.now, &[TaskKey(keys.start + 1)]);
    assert_eq!(hand.events(), [cancelled(TaskKey(1), TakenOut)]);
    let [(_, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(tasks.iter().map(|t| t.tid.get()).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn taken_tasks_are_cancelled_by_the_switch_which_says_which() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&vec![task(); 3]);
    hand.client.cancel_queued(hand.now, &[keys[0], keys[2], keys[0], TaskKey(1_000)]);
    let (cancel, names) = the_cancel(&hand.sent());
    assert_eq!((cancel, &names[..]), (sequence.wrapping_add(1), &[(sequence, 0), (sequence, 2)][..]));
    hand.switch_says(&cancel_ack(EPOCH, cancel, 0b01, &[1]));
    hand.switch_says(&cancel_ack(EPOCH, cancel, 0b01, &[1]));
    assert_eq!(hand.events(), [cancelled(keys[0], TakenOut), Event::NotCancelled { key: keys[2] }]);
    assert_eq!(stops(&hand.pass_with_open_tasks(2_000 * MS)), [[]; 0], "what runs goes on");
    hand.executor_says(&complete((sequence, 2), 1, Status::Ok, false, b""));
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, .. }] if key == keys[2]), "its result still comes");
    assert_eq!(hand.client.open(), 1);
}

#[test]
fn t17_what_runs_is_stopped_by_its_executor() {
    let (mut hand, submission, key) = running();
    assert!(hand.client.is_stopping());
    hand.executor_says(&complete((submission, 0), 1, Status::Cancelled, false, b""));
    assert_eq!(hand.events(), [cancelled(key, Stopped)]);
    assert!(matches!(&hand.sent()[..], [Sent::CompleteAck { .. }]));
    assert!(!hand.client.is_stopping());
    assert_eq!((stops(&hand.pass(2_000 * MS)), hand.client.poll_timeout()), (vec![], None));
    hand.executor_says(&complete((submission, 0), 1, Status::Cancelled, false, b""));
    assert_eq!(hand.events(), [], "a repeat is acknowledged only");
}

#[test]
fn t17_a_task_that_has_just_ended_keeps_its_result() {
    let (mut hand, submission, key) = running();
    hand.executor_says(&complete((submission, 0), 1, Status::Ok, false, b"value"));
    assert!(matches!(hand.events()[..], [Event::Completed { key: k, .. }] if k == key));
    assert!(!hand.client.is_stopping());
}

/// STOP was lost or overtook ASSIGN: the client asks the switch again, which names the executor.
#[test]
fn t17_a_lost_stop_is_followed_by_another_in_growing_intervals() {
    let (mut hand, submission, key) = running();
    let (mut told, mut waits, mut before) = (1, Vec::new(), hand.now);
    while told < 12 {
        for sent in hand.pass_with_open_tasks(MS) {
            if let Sent::Cancel { sequence, names, .. } = sent {
                assert_eq!(names, [(submission, 0)]);
                hand.switch_says(&cancel_ack(EPOCH, sequence, 0, &[0]));
                waits.push((hand.now - before) / MS);
                before = hand.now;
                told += stops(&hand.sent()).len();
            }
        }
    }
    assert!(waits.is_sorted() && waits[0] <= 210 && *waits.last().unwrap() <= 501, "{waits:?}");
    hand.executor_says(&complete((submission, 0), 1, Status::Cancelled, false, b""));
    assert_eq!(hand.events(), [cancelled(key, Stopped)]);
}

#[test]
fn t17_a_task_whose_executor_died_vanishes_when_its_lease_has_run_out() {
    let (mut hand, _, key) = running();
    let mut sent = hand.pass_with_open_tasks(210 * MS);
    let (cancel, _) = the_cancel(&sent);
    hand.switch_says(&cancel_ack(EPOCH, cancel, 0, &[]));
    sent = hand.pass_with_open_tasks(400 * MS);
    assert_eq!(hand.events(), [], "its completion may be on its way");
    assert!(!stops(&sent).is_empty(), "an executor that lives, and lost its lease, is told again");
    sent = hand.pass_with_open_tasks(101 * MS);
    assert_eq!(hand.events(), [cancelled(key, Vanished)]);
    sent.extend(hand.pass(10_000 * MS));
    assert!(stops(&sent).len() <= 8 && !sent.iter().any(|s| matches!(s, Sent::Submit { .. } | Sent::Cancel { .. })));
    assert!(!hand.client.is_stopping());
}

#[test]
fn t17_after_a_change_of_the_switch_the_executor_that_was_named_is_told_eight_times_more() {
    let (mut hand, submission, key) = running();
    let Some(Sent::Probe { sequence, .. }) = hand.pass(110 * MS).into_iter().find(|s| matches!(s, Sent::Probe { .. }))
    else {
        panic!("a PROBE")
    };
    hand.switch_says(&probe_ack(EPOCH + 1, sequence, 1, 0));
    assert_eq!(hand.events()[0], cancelled(key, Vanished), "no switch has it, and none gets it");
    let sent = hand.pass(10_000 * MS);
    assert_eq!(stops(&sent), vec![[(submission, 0)]; 8]);
    assert!(!sent.iter().any(|s| matches!(s, Sent::Submit { .. } | Sent::Cancel { .. })));
    assert!(!hand.client.is_stopping());
}

#[test]
fn what_was_to_go_on_can_still_be_stopped_and_never_runs_again() {
    let mut hand = Hand::settled();
    let (submission, keys) = hand.open(&vec![task(); 2]);
    hand.client.cancel_queued(hand.now, &keys);
    let (first, _) = the_cancel(&hand.sent());
    hand.switch_says(&cancel_ack(EPOCH, first, 0, &[0, 1]));
    assert_eq!(hand.events().len(), 2, "both go on");
    hand.client.cancel(hand.now, &keys[..1]);
    let (second, names) = the_cancel(&hand.sent());
    assert_eq!(names, [(submission, 0)]);
    hand.switch_says(&cancel_ack(EPOCH, second, 0, &[0]));
    assert_eq!(stops(&hand.sent()).len(), 1);
    hand.executor_says(&complete((submission, 0), 1, Status::Cancelled, false, b""));
    assert_eq!(hand.events(), [cancelled(keys[0], Stopped)]);
    // The executor of the other one dies.
    for _ in 0..20 {
        for sent in hand.pass(100 * MS) {
            match sent {
                Sent::Probe { sequence, names, .. } => hand.switch_says(&probe_ack(EPOCH, sequence, names.len(), 0)),
                Sent::Submit { .. } => panic!("it was cancelled"),
                _ => {}
            }
        }
    }
    assert_eq!(hand.events(), [cancelled(keys[1], Vanished)]);
}

/// The attempt is stopped. The next one has another name, so a late STOP does not affect it.
#[test]
fn t17_an_attempt_that_took_too_long_is_stopped_and_its_end_does_not_count() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&[Task { timeout: Some(50 * MS), attempts: 2, ..task() }]);
    let sent = hand.pass_with_open_tasks(51 * MS);
    let (cancel, names) = the_cancel(&sent);
    assert_eq!(names, [(first, 0)]);
    hand.switch_says(&cancel_ack(EPOCH, cancel, 0, &[0]));
    assert_eq!(stops(&hand.sent()), [[(first, 0)]]);
    let second = sent.iter().find_map(|s| if let Sent::Submit { sequence, .. } = s { Some(*sequence) } else { None });
    let second = second.expect("the next attempt does not wait");
    hand.switch_says(&submit_ack(EPOCH, second, 1, 1, Reason::None));
    hand.executor_says(&complete((first, 0), 1, Status::Cancelled, false, b""));
    assert_eq!(hand.events(), []);
    hand.executor_says(&complete((second, 0), 2, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, attempt: 2, .. }] if key == keys[0]));
}

#[test]
fn t13_a_completion_that_says_cancelled_though_nobody_asked_is_no_end() {
    let mut hand = Hand::settled();
    let (submission, _) = hand.open(&[task()]);
    hand.executor_says(&complete((submission, 0), 1, Status::Cancelled, false, b""));
    assert_eq!((hand.events(), hand.client.open()), (vec![], 1));
}

#[test]
fn a_stop_names_up_to_32_tasks_of_one_executor() {
    let mut hand = Hand::settled();
    let keys: Vec<_> = [32, 8].iter().flat_map(|&count| hand.open(&vec![task(); count]).1).collect();
    hand.client.cancel(hand.now, &keys);
    for sent in hand.sent() {
        let Sent::Cancel { sequence, names, .. } = sent else { panic!("CANCELs") };
        hand.switch_says(&cancel_ack(EPOCH, sequence, 0, &(0..names.len() as u8).collect::<Vec<_>>()));
    }
    assert_eq!(stops(&hand.sent()).iter().map(Vec::len).collect::<Vec<_>>(), [32, 8]);
    assert_eq!(hand.client.counters().stops, 40);
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
    assert_eq!(hand.events(), [cancelled(keys[1], TakenOut)], "the switch did not take it");
    assert_eq!(the_cancel(&hand.sent()).1, [(sequence, 0)]);
}

#[test]
fn a_task_that_completes_while_it_is_cancelled_is_completed() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&[task()]);
    hand.client.cancel(hand.now, &keys);
    let (cancel, _) = the_cancel(&hand.sent());
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    hand.switch_says(&cancel_ack(EPOCH, cancel, 0, &[]));
    assert!(matches!(hand.events()[..], [Event::Completed { .. }]));
}

#[test]
fn t9_a_task_to_be_cancelled_is_not_given_to_a_new_switch() {
    let mut hand = Hand::settled();
    let (_, keys) = hand.open(&vec![task(); 2]);
    hand.client.cancel(hand.now, &keys[..1]);
    let (sequence, _) = the_cancel(&hand.sent());
    hand.switch_says(&cancel_ack(EPOCH + 1, sequence, 0, &[]));
    let events = hand.events();
    assert_eq!(events[0], cancelled(keys[0], Vanished));
    assert!(matches!(events[1], Event::SwitchChanged { resubmitted: 1, .. }));
    let [(_, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(tasks.len(), 1);
}
