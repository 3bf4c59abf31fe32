//! Arguments that travel behind the records of a SUBMIT.

use super::*;
use midflight_wire::tasks::{BY_REFERENCE, SUBMIT_MAX};
use std::sync::Arc;

fn with_argument(length: usize) -> Task {
    Task::new(1, Argument::Appended(Arc::new((0..length).map(|at| at as u8).collect())))
}

/// Of each SUBMIT that the client sends now: its length, and of each task the argument.
fn submitted(hand: &mut Hand) -> Vec<(usize, Vec<Option<Vec<u8>>>)> {
    let (mut buffer, mut all) = (Vec::new(), Vec::new());
    while hand.client.poll_transmit(hand.now, &mut buffer).is_some() {
        if let Ok(Packet::Submit(_, tasks, mut appendix, _)) = parse(&buffer) {
            let arguments = tasks.iter().map(|task| appendix.next(task).map(<[u8]>::to_vec));
            all.push((buffer.len(), arguments.collect()));
        }
    }
    all
}

#[test]
fn t15_as_many_tasks_as_fit_with_their_arguments_share_a_submit() {
    let mut hand = Hand::settled();
    let tasks = [200, 200, 200, 200, 200, 200, 480, 0, 17, 480].map(|length| match length {
        0 => task(),
        length => with_argument(length),
    });
    hand.client.submit(hand.now, 1, &tasks).unwrap();
    let sent = submitted(&mut hand);
    let counts: Vec<usize> = sent.iter().map(|(_, tasks)| tasks.len()).collect();
    assert_eq!(counts, [5, 4, 1]);
    assert!(sent.iter().all(|(bytes, _)| *bytes <= midflight_wire::PACKET_MAX), "{sent:?}");
    let arguments: Vec<_> = sent.into_iter().flat_map(|(_, tasks)| tasks).collect();
    let expected = tasks.map(|task| match task.argument {
        Argument::Appended(bytes) => Some(bytes.to_vec()),
        _ => None,
    });
    assert_eq!(arguments, expected);
}

#[test]
fn a_task_that_is_submitted_again_has_its_argument() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &[with_argument(300)]).unwrap();
    let [Sent::Submit { sequence, .. }] = hand.sent()[..] else { panic!("one SUBMIT") };
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 0, Reason::Full));
    let again = std::iter::repeat_with(|| {
        hand.now = hand.client.poll_timeout().unwrap();
        hand.client.handle_timeout(hand.now);
        submitted(&mut hand)
    });
    let again: Vec<_> = again.take(20).flatten().collect();
    assert_eq!(again[0].1[0].as_ref().map(Vec::len), Some(300));
}

#[test]
fn only_lengths_between_inline_and_by_reference_are_appended() {
    let mut hand = Hand::settled();
    for length in [0, 16, 481] {
        let refused = hand.client.submit(hand.now, 1, &[with_argument(length)]).unwrap_err();
        assert_eq!(refused, super::super::SubmitError::CannotAppend { index: 0, length });
    }
    assert!(hand.client.submit(hand.now, 1, &[with_argument(17), with_argument(480)]).is_ok());
    // It could not serve the same bytes after a restart.
    let mut durable = Hand::new(|config| config.durable = true);
    let refused = durable.client.submit(durable.now, 1, &[with_argument(17)]).unwrap_err();
    assert_eq!(refused, super::super::SubmitError::CannotAppend { index: 0, length: 17 });
}

/// A pipeline has no room for them, and says nothing to a SUBMIT that has one.
#[test]
fn at_a_switch_without_records_the_driver_serves_the_argument() {
    let mut hand = Hand::settled_at(Known::NoRecord, |_| {});
    let keys = hand.client.submit(hand.now, 1, &[with_argument(100), with_argument(200)]).unwrap();
    assert_eq!(hand.submits(), []);
    let events = hand.events();
    let [Event::NeedsReference { key, argument }, Event::NeedsReference { key: other, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((key.0, argument.len(), other.0), (keys.start, 100, keys.start + 1));
    let blob = BlobRef { id: 9.into(), length: 100.into(), port: 80.into(), reserved: 0.into() };
    let (key, other) = (*key, *other);
    hand.client.refer(hand.now, key, Some(blob));
    hand.client.refer(hand.now, other, None);
    assert_eq!(hand.submits(), [], "it waits for room");
    hand.now = hand.client.poll_timeout().unwrap();
    hand.client.handle_timeout(hand.now);
    let [(_, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(
        (tasks.len(), tasks[0].argument_length, &tasks[0].argument),
        (1, BY_REFERENCE, blob.as_bytes().try_into().unwrap())
    );
    assert!(matches!(hand.events()[..], [Event::NeedsReference { key, .. }] if key == other), "again");
    assert_eq!(hand.client.open(), 2);
}

/// As many as a SUBMIT can have: otherwise all arguments would need room at once, before the first is sent.
#[test]
fn at_a_switch_without_records_the_driver_is_asked_for_32_arguments_at_a_time() {
    let mut hand = Hand::settled_at(Known::NoRecord, |_| {});
    hand.client.submit(hand.now, 1, &vec![with_argument(100); 3 * SUBMIT_MAX]).unwrap();
    assert_eq!(hand.submits(), []);
    assert_eq!(hand.events().len(), SUBMIT_MAX);
}

/// The tasks that hold the driver's memory may be among the others.
#[test]
fn arguments_without_room_hold_back_no_other_task_for_long() {
    let mut hand = Hand::settled_at(Known::NoRecord, |_| {});
    hand.client.submit(hand.now, 1, &vec![with_argument(100); 12]).unwrap();
    assert_eq!(hand.submits(), []);
    let refused = hand.events();
    assert_eq!(refused.len(), 12);
    for (event, at) in refused.into_iter().zip(hand.now..) {
        let Event::NeedsReference { key, .. } = event else { panic!("{event:?}") };
        hand.client.refer(at, key, None);
    }
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    let due = hand.client.poll_timeout().unwrap();
    assert!(due <= hand.now + 10 * MS, "{due}");
    hand.now = due;
    hand.client.handle_timeout(due);
    let [(_, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(tasks.len(), 1);
}

/// The client asks the switch first, and does not spin.
#[test]
fn before_a_switch_has_answered_nothing_is_appended() {
    let mut hand = Hand::new(|_| {});
    hand.client.submit(hand.now, 1, &[with_argument(100)]).unwrap();
    let [Sent::Probe { sequence, .. }] = hand.sent()[..] else { panic!("a PROBE") };
    assert!(hand.client.poll_timeout().is_some_and(|due| due > hand.now));
    hand.switch_says(&probe_ack(EPOCH, sequence, 0, 0));
    assert_eq!(submitted(&mut hand).len(), 1);
}

/// It failed over from a switch that took the argument.
#[test]
fn t16_what_is_in_flight_to_a_switch_that_takes_none_is_taken_back() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &[with_argument(100), task()]).unwrap();
    assert_eq!(submitted(&mut hand).len(), 1);
    let sent = hand.pass(200 * MS);
    let asked = sent.iter().rev().find_map(|sent| match sent {
        Sent::Probe { sequence, .. } => Some(*sequence),
        _ => None,
    });
    hand.switch_says(&probe_ack_of(Known::NoRecord, EPOCH + 1, asked.expect("a PROBE"), 0, 0));
    let sent = submitted(&mut hand);
    assert!(sent.iter().flat_map(|(_, tasks)| tasks).all(Option::is_none), "{sent:?}");
    let events = hand.events();
    assert!(events.iter().any(|event| matches!(event, Event::NeedsReference { .. })), "{events:?}");
}
