//! A switch that keeps no record of tasks.

use super::*;

/// Default of `ClientConfig::timeout`.
const TIMEOUT: Nanos = 10_000 * MS;

fn settled() -> Hand {
    Hand::settled_at(Known::NoRecord, |_| {})
}

/// The switch answers probes with meaningless bits. Returns times and sequences of the SUBMITs.
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
    // The first attempt was only slow; its result counts, once.
    hand.executor_says(&complete((first, 0), 1, Status::Ok, false, b""));
    hand.executor_says(&complete((submits[0].1, 0), 2, Status::Ok, false, b""));
    let ends: Vec<_> = hand.events().into_iter().filter(|event| matches!(event, Event::Completed { .. })).collect();
    assert!(matches!(ends[..], [Event::Completed { key, attempt: 1, .. }] if key == keys[0]), "{ends:?}");
    assert_eq!(pass(&mut hand, 200_000 * MS), [], "nothing is open");
    assert_eq!(hand.client.poll_timeout(), None);
}

#[test]
fn t9_each_tasks_timeout_begins_when_the_switch_accepts_it() {
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
    // Another switch answers. The client submits its tasks there and probes for them.
    hand.switch_says(&probe_ack(EPOCH + 1, sequence, 0, 0));
    let [(again, _)] = hand.submits()[..] else { panic!("one SUBMIT") };
    assert_ne!(again, first);
    hand.switch_says(&submit_ack(EPOCH + 1, again, 1, 1, Reason::None));
    let named = |sent: &Sent| matches!(sent, Sent::Probe { names, .. } if names[..] == [(again, 0)]);
    assert!(hand.pass(201 * MS).iter().any(named));
    assert_eq!((hand.client.counters().resubmitted, hand.client.counters().gone), (1, 0));
}

/// Otherwise the client would never probe for tasks again while the switch answers SUBMITs.
#[test]
fn t16_what_says_that_a_switch_keeps_no_record_is_asked_again() {
    let mut hand = settled();
    for _ in 0..30 {
        hand.open(&[task()]);
        for sent in hand.pass(10 * MS) {
            let Sent::Probe { sequence, names, .. } = sent else { continue };
            hand.switch_says(&probe_ack(EPOCH, sequence, names.len(), u32::MAX));
        }
    }
    let asked = hand.pass(200 * MS).iter().any(|sent| matches!(sent, Sent::Probe { names, .. } if names.len() > 9));
    assert!(asked, "it keeps a record after all");
}

#[test]
fn a_task_that_is_not_wanted_any_more_is_not_submitted_again() {
    let mut hand = settled();
    let (_, keys) = hand.open(&[task()]);
    hand.events();
    hand.client.cancel(hand.now, &keys);
    let [Sent::Cancel { .. }] = hand.sent()[..] else { panic!("a CANCEL") };
    pass(&mut hand, TIMEOUT + MS);
    assert_eq!(
        hand.events(),
        [Event::Cancelled { key: keys[0], how: CancelledHow::Vanished }],
        "nobody has answered that it may run"
    );
    assert_eq!(hand.client.open(), 0);
}
