//! A switch that keeps no record of tasks: it cannot say what it has, and knows half of our identity.

use super::*;
use midflight_wire::{AckState, BlobRef};
use zerocopy::IntoBytes;

const WHOLE: u64 = 0xC11E_0000_0000_0001;
const HALF: u64 = 1;
/// `ClientConfig::timeout`, unless told otherwise.
const TIMEOUT: Nanos = 10_000 * MS;

fn settled() -> Hand {
    Hand::settled_at(Known::NoRecord, |_| {})
}

/// Time passes, and the switch answers every probe with bits that mean nothing. The SUBMITs that were sent, and when.
fn pass(hand: &mut Hand, time: Nanos) -> Vec<(Nanos, u32)> {
    let mut submits = Vec::new();
    let end = hand.now + time;
    while hand.now < end {
        for sent in hand.pass(MS) {
            match sent {
                Sent::Probe { sequence, names, .. } => {
                    assert_eq!(names, [], "there is nothing to ask for");
                    hand.switch_says(&probe_ack_of(Known::NoRecord, EPOCH, sequence, 0, u32::MAX));
                }
                Sent::Submit { sequence, .. } => {
                    submits.push((hand.now, sequence));
                    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
                }
                _ => {}
            }
        }
    }
    submits
}

/// A COMPLETE under this identity.
fn complete_for(client: u64, name: (u32, u8), by_reference: bool, result: &[u8]) -> Vec<u8> {
    let mut datagram = complete(name, 1, Status::Ok, by_reference, result);
    datagram[16..24].copy_from_slice(&client.to_be_bytes());
    datagram
}

/// The identities and states of the COMPLETE_ACKs that are sent now.
fn acks(hand: &mut Hand) -> Vec<(u64, u8)> {
    let mut buffer = Vec::new();
    let mut acks = Vec::new();
    while hand.client.poll_transmit(hand.now, &mut buffer).is_some() {
        let Ok(Packet::CompleteAck(fixed, records)) = parse(&buffer) else { panic!("{buffer:02x?}") };
        acks.extend(records.iter().map(|record| (fixed.client.get(), record.state)));
    }
    acks
}

#[test]
fn t10_a_task_without_a_completion_is_submitted_again_after_its_time_and_twice_that() {
    let mut hand = settled();
    let start = hand.now;
    let (first, keys) = hand.open(&[task()]);
    let submits = pass(&mut hand, 71_000 * MS);
    let times: Vec<_> = submits.iter().map(|(at, _)| (at - start + TIMEOUT / 20) / TIMEOUT).collect();
    assert_eq!(times, [1, 3, 7], "after 10 s, 20 s more, 40 s more");
    assert_eq!((hand.client.counters().gone, hand.client.counters().resubmitted), (3, 0));
    assert!(pass(&mut hand, 78_000 * MS).is_empty());
    // The first one was only slow: it is the result, and there is one.
    hand.executor_says(&complete((first, 0), 1, Status::Ok, false, b""));
    hand.executor_says(&complete((submits[0].1, 0), 2, Status::Ok, false, b""));
    let ends: Vec<_> = hand.events().into_iter().filter(|event| matches!(event, Event::Completed { .. })).collect();
    assert!(matches!(ends[..], [Event::Completed { key, attempt: 1, .. }] if key == keys[0]), "{ends:?}");
    assert_eq!(pass(&mut hand, 200_000 * MS), [], "nothing is open");
    assert_eq!(hand.client.poll_timeout(), None);
}

#[test]
fn t9_each_task_has_its_own_time_from_when_it_was_taken() {
    let mut hand = Hand::settled_at(Known::NoRecord, |config| config.timeout = 700 * MS);
    let (first, _) = hand.open(&[task()]);
    assert_eq!(pass(&mut hand, 300 * MS), []);
    let start = hand.now;
    let (second, _) = hand.submit(&[task()]);
    hand.now += 50 * MS;
    hand.switch_says(&submit_ack(EPOCH, second, 1, 1, Reason::None));
    hand.executor_says(&complete((first, 0), 1, Status::Ok, false, b""));
    assert_eq!(pass(&mut hand, 699 * MS), []);
    let submits = pass(&mut hand, 2 * MS);
    assert!(matches!(submits[..], [(at, _)] if at == start + 750 * MS), "{submits:?}");
}

#[test]
fn t9_a_switch_with_records_is_asked_for_tasks_again() {
    let mut hand = settled();
    let (first, _) = hand.open(&[task()]);
    assert_eq!(pass(&mut hand, 500 * MS), []);
    let Some(Sent::Probe { sequence, .. }) = hand.pass(101 * MS).pop() else { panic!("a probe") };
    // Another one runs there now; the first switch's tasks are submitted to it, and asked for.
    hand.switch_says(&probe_ack(EPOCH + 1, sequence, 0, 0));
    let [(again, _)] = hand.submits()[..] else { panic!("one SUBMIT") };
    assert_ne!(again, first);
    hand.switch_says(&submit_ack(EPOCH + 1, again, 1, 1, Reason::None));
    let named = |sent: &Sent| matches!(sent, Sent::Probe { names, .. } if names[..] == [(again, 0)]);
    assert!(hand.pass(201 * MS).iter().any(named));
    assert_eq!((hand.client.counters().resubmitted, hand.client.counters().gone), (1, 0));
}

#[test]
fn a_task_that_is_not_wanted_any_more_is_not_submitted_again() {
    let mut hand = settled();
    let (_, keys) = hand.open(&[task()]);
    hand.events();
    hand.client.cancel(hand.now, &keys);
    let [Sent::Cancel { .. }] = hand.sent()[..] else { panic!("a CANCEL") };
    pass(&mut hand, TIMEOUT + MS);
    assert_eq!(hand.events(), [Event::Cancelled { key: keys[0] }], "nobody has answered that it may run");
    assert_eq!(hand.client.open(), 0);
}

#[test]
fn t9_a_completion_under_the_lower_half_of_the_identity_is_ours_and_is_acknowledged_under_it() {
    let mut hand = Hand::new(|config| config.identity = WHOLE);
    let keys = hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap();
    let mut buffer = Vec::new();
    let mut sequence = None;
    while hand.client.poll_transmit(hand.now, &mut buffer).is_some() {
        if let Ok(Packet::Submit(fixed, _)) = parse(&buffer) {
            assert_eq!(fixed.client.get(), WHOLE);
            sequence = Some(fixed.header.sequence.get());
        }
    }
    let sequence = sequence.expect("a SUBMIT");
    for foreign in [0, 2, WHOLE ^ 1 << 63, WHOLE ^ 1, WHOLE & !0xFFFF_FFFF] {
        hand.executor_says(&complete_for(foreign, (sequence, 0), false, b""));
    }
    assert_eq!((hand.client.counters().foreign_identity, acks(&mut hand)), (5, vec![]));

    hand.executor_says(&complete_for(HALF, (sequence, 0), false, b""));
    hand.executor_says(&complete_for(WHOLE, (sequence, 1), false, b""));
    let blob = BlobRef { id: 1.into(), length: 9.into(), port: 9.into(), reserved: 0.into() };
    hand.executor_says(&complete_for(HALF, (sequence, 2), true, blob.as_bytes()));
    let (done, fetching) = (AckState::Done as u8, AckState::Fetching as u8);
    assert_eq!(acks(&mut hand), [(HALF, done), (HALF, fetching), (WHOLE, done)]);
    hand.client.fetched(hand.now, TaskKey(keys.start + 2), true);
    assert_eq!((acks(&mut hand), hand.client.open()), (vec![(HALF, done)], 0));
}
