//! Answers that do not count.

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
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Probe, 0, 1);
    Builder::new(&mut datagram, &midflight_wire::Probe { header, client: IDENTITY.into() });
    hand.switch_says(&datagram);
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
    foreign[16] ^= 1;
    hand.switch_says(&foreign);
    hand.switch_says(&submit_ack(0, sequence, 1, 1, Reason::None));
    hand.switch_says(&submit_ack(EPOCH + 1, sequence.wrapping_add(1), 1, 1, Reason::None));
    hand.switch_says(&cancel_ack(EPOCH, sequence, 1, 1));
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
    both[31] = 3;
    hand.switch_says(&both);
    let mut unknown_reason = submit_ack(EPOCH, sequence, 2, 3, Reason::None);
    unknown_reason[32] = 99;
    hand.switch_says(&unknown_reason);
    assert_eq!(hand.client.counters().bad_answers, 3);
    hand.switch_says(&submit_ack(EPOCH, sequence, 2, 3, Reason::None));
    hand.client.cancel(hand.now, &keys);
    let [Sent::Cancel { sequence, .. }] = hand.sent()[..] else { panic!("one CANCEL") };
    hand.switch_says(&cancel_ack(EPOCH, sequence, 1, 1));
    assert_eq!(hand.client.counters().bad_answers, 4);
    assert_eq!(hand.events(), []);
    hand.switch_says(&cancel_ack(EPOCH, sequence, 2, 3));
    assert_eq!(hand.events().len(), 2);
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
