//! Invalid responses.

use super::*;

#[test]
fn t11_garbage_and_truncation_change_nothing_and_are_counted() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.submit(&vec![task(); 2]);
    let packets = [
        submit_ack(EPOCH, sequence, 2, 3, Reason::None),
        complete((sequence, 0), 1, Status::Ok, false, b"abc"),
        probe_ack(EPOCH, 1, 0, 0),
    ];
    let mut count = 0;
    for packet in &packets {
        for length in 0..packet.len() {
            hand.switch_says(&packet[..length]);
            count += 1;
        }
    }
    assert_eq!(hand.client.counters().malformed, count);
    assert_eq!((hand.events(), hand.sent()), (vec![], vec![]));
    assert_eq!(hand.client.open(), 2);
}

#[test]
fn t11_operations_that_are_not_for_clients_are_counted() {
    let mut hand = Hand::settled();
    hand.switch_says(&counting(&midflight_wire::tasks::Probe::new(0, 1), 0));
    assert_eq!(hand.client.counters().not_for_client, 1);
    assert_eq!((hand.events(), hand.sent()), (vec![], vec![]));
}

#[test]
fn t11_answers_count_only_from_the_present_switch_to_this_client_in_an_epoch() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.submit(&[task()]);
    let good = submit_ack(EPOCH, sequence, 1, 1, Reason::None);
    hand.client.handle(hand.now, executor(), &good);
    let mut foreign = good.clone();
    foreign[24] ^= 1;
    hand.switch_says(&foreign);
    hand.switch_says(&submit_ack(0, sequence, 1, 1, Reason::None));
    hand.switch_says(&submit_ack(EPOCH + 1, sequence.wrapping_add(1), 1, 1, Reason::None));
    hand.switch_says(&cancel_ack(EPOCH, sequence, 1, &[]));
    hand.switch_says(&probe_ack(EPOCH + 1, 123, 0, 0));
    let counters = hand.client.counters();
    assert_eq!(
        (counters.foreign_address, counters.foreign_identity, counters.bad_answers, counters.unexpected_answers),
        (1, 1, 1, 3)
    );
    assert_eq!(hand.events(), [], "what answers nothing does not change the epoch either");
    hand.switch_says(&good);
    assert_eq!(hand.client.counters().unexpected_answers, 3, "the good one counts");
    assert!(!hand.pass_with_open_tasks(500 * MS).iter().any(|s| matches!(s, Sent::Submit { .. })));
}

#[test]
fn t11_answers_that_contradict_their_packet_are_counted_and_another_is_awaited() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.submit(&vec![task(); 2]);
    hand.switch_says(&submit_ack(EPOCH, sequence, 3, 7, Reason::None));
    let mut both = submit_ack(EPOCH, sequence, 2, 3, Reason::None);
    both[39] = 3;
    hand.switch_says(&both);
    let mut unknown_reason = submit_ack(EPOCH, sequence, 2, 3, Reason::None);
    unknown_reason[40] = 99;
    hand.switch_says(&unknown_reason);
    assert_eq!(hand.client.counters().bad_answers, 3);
    hand.switch_says(&submit_ack(EPOCH, sequence, 2, 3, Reason::None));
    hand.client.cancel(hand.now, &keys);
    let [Sent::Cancel { sequence, .. }] = hand.sent()[..] else { panic!("one CANCEL") };
    hand.switch_says(&cancel_ack(EPOCH, sequence, 0b100, &[]));
    hand.switch_says(&cancel_ack(EPOCH, sequence, 0, &[2]));
    assert_eq!(hand.client.counters().bad_answers, 5);
    assert_eq!(hand.events(), []);
    hand.switch_says(&cancel_ack(EPOCH, sequence, 3, &[]));
    assert_eq!(hand.events().len(), 2);
}

#[test]
fn t11_a_switch_of_another_version_is_reported_once_for_each_version_and_never_answered() {
    let mut hand = Hand::settled();
    hand.open(&[task()]);
    let says = |version| [0x4D, 0x46, version, 0, 0, 0, 0, 0];
    let mut old = probe_ack(EPOCH, 1, 0, 0);
    old[2] = 1;
    let reported = |version| Event::OtherVersion { switch: switch_a(), version };
    for _ in 0..2 {
        hand.switch_says(&says(1));
        hand.switch_says(&old);
        hand.switch_says(&says(255));
    }
    assert_eq!(hand.events(), [reported(1), reported(255)]);
    hand.client.handle(hand.now, switch_b(), &says(1));
    assert_eq!(hand.events(), [Event::OtherVersion { switch: switch_b(), version: 1 }], "each switch for itself");
    hand.executor_says(&says(midflight_wire::VERSION + 1));
    assert_eq!((hand.client.counters().other_version, hand.client.counters().malformed), (8, 0));
    hand.switch_says(&says(midflight_wire::VERSION));
    assert_eq!(hand.client.counters().unexpected_answers, 1, "that is ours");
    assert_eq!((hand.events(), hand.sent()), (vec![], vec![]));
    assert!(hand.pass(1_050 * MS).iter().any(|sent| matches!(sent, Sent::Probe { to, .. } if *to == switch_b())));
}

/// Retransmission must end even if the client attributes the responses to an earlier epoch.
#[test]
fn t16_a_client_with_nothing_but_a_cancel_in_flight_asks_its_switch() {
    let mut hand = Hand::new(|config| config.switches.truncate(1));
    hand.sent();
    hand.switch_says(&probe_ack(EPOCH, 1, 0, 0));
    let (submission, _) = hand.open_in(EPOCH + 1, &[Task { timeout: Some(50 * MS), attempts: 1, ..task() }]);
    let (mut cancels, mut silence) = (0, 0);
    for _ in 0..20 {
        silence += 1;
        for sent in hand.pass(100 * MS) {
            silence = 0;
            match sent {
                Sent::Cancel { sequence, names, .. } => {
                    assert_eq!((names, hand.client.open()), (vec![(submission, 0)], 0));
                    hand.switch_says(&cancel_ack(EPOCH, sequence, 0, &[]));
                    cancels += 1;
                }
                Sent::Probe { sequence, names, .. } => hand.switch_says(&probe_ack(EPOCH, sequence, names.len(), 0)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(cancels > 0 && silence > 15, "{cancels} CANCELs, nothing for {silence} tenths of a second");
    assert_eq!((hand.client.switch().1, hand.client.poll_timeout()), (EPOCH, None));
}

#[test]
fn an_idle_client_that_found_its_switch_wants_no_time() {
    let mut hand = Hand::settled();
    assert_eq!(hand.client.poll_timeout().filter(|_| hand.pass(5_000 * MS).is_empty()), None);
    let (sequence, _) = hand.open(&[task()]);
    assert!(hand.client.poll_timeout().is_some());
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    hand.sent();
    assert_eq!(hand.client.poll_timeout(), None);
}

#[test]
fn a_client_without_answer_goes_round_the_switches() {
    let mut hand = Hand::new(|_| {});
    let mut sent = hand.sent();
    sent.extend(hand.pass(2_100 * MS));
    let asked = |switch| sent.iter().filter(|s| matches!(s, Sent::Probe { to, .. } if *to == switch)).count();
    assert!(asked(switch_a()) >= 5 && asked(switch_b()) >= 4, "{} and {}", asked(switch_a()), asked(switch_b()));
    assert_eq!(hand.client.counters().failovers, 2);
}
