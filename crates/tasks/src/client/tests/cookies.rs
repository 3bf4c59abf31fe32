//! Switches that require a cookie.

use super::*;

fn cookie(sequence: u32, cookie: u64) -> Vec<u8> {
    cookie_for(IDENTITY, EPOCH, sequence, cookie)
}

fn with_cookies(sent: &[Sent]) -> Vec<(u32, u64)> {
    let of_packet = |sent: &Sent| match sent {
        Sent::Submit { sequence, cookie, .. }
        | Sent::Cancel { sequence, cookie, .. }
        | Sent::Probe { sequence, cookie, .. } => Some((*sequence, *cookie)),
        Sent::CompleteAck { .. } | Sent::Stop { .. } => None,
    };
    sent.iter().filter_map(of_packet).collect()
}

fn with_cookie(sent: &Sent, other: u64) -> Sent {
    let mut sent = sent.clone();
    if let Sent::Submit { cookie, .. } | Sent::Cancel { cookie, .. } | Sent::Probe { cookie, .. } = &mut sent {
        *cookie = other;
    }
    sent
}

#[test]
fn t13_what_is_unanswered_is_sent_again_at_once_with_the_cookie_and_everything_later_carries_it() {
    let mut hand = Hand::new(|_| {});
    hand.client.submit(hand.now, 1, &vec![task(); 64]).unwrap();
    let first = hand.sent();
    let [Sent::Submit { sequence, cookie: 0, .. }, Sent::Submit { cookie: 0, .. }, Sent::Probe { cookie: 0, .. }] =
        first[..]
    else {
        panic!("{first:?}")
    };
    hand.switch_says(&cookie(sequence, 0xC00C));
    let again = hand.sent();
    let mut expected: Vec<_> = first.iter().map(|sent| with_cookie(sent, 0xC00C)).collect();
    if let Some(Sent::Probe { sequence, .. }) = expected.last_mut() {
        *sequence += 1; // a repeat, which counts up
    }
    assert_eq!(again, expected, "nothing else of them has changed");
    // The other packets were refused too; the client already has the cookie.
    hand.switch_says(&cookie(sequence.wrapping_add(1), 0xC00C));
    hand.switch_says(&cookie(2, 0xC00C));
    assert_eq!(hand.sent(), []);
    assert_eq!(hand.client.counters().cookies, 3);
    hand.switch_says(&probe_ack(EPOCH, 2, 0, 0));
    hand.switch_says(&submit_ack(EPOCH, sequence, 32, u32::MAX, Reason::None));
    hand.client.cancel(hand.now, &[TaskKey(0)]);
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    let later = with_cookies(&hand.sent());
    assert!(later.len() == 2 && later.iter().all(|(_, cookie)| *cookie == 0xC00C), "CANCEL and SUBMIT: {later:x?}");
    assert!(with_cookies(&hand.pass(100 * MS)).iter().all(|(_, cookie)| *cookie == 0xC00C));
}

#[test]
fn t13_to_be_asked_for_a_cookie_is_no_loss() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &vec![task(); 32 * 20]).unwrap();
    let first = hand.submits();
    assert_eq!(first.len(), 8, "the first window");
    hand.now += 2 * MS;
    hand.switch_says(&cookie(first[0].0, 1));
    assert_eq!(hand.submits(), first);
    let timeout = hand.client.poll_timeout().expect("they await answers") - hand.now;
    assert_eq!(timeout, 5 * MS, "the smallest retransmission timeout, not twice that");
    for (sequence, _) in &first {
        hand.switch_says(&submit_ack(EPOCH, *sequence, 32, u32::MAX, Reason::None));
    }
    assert_eq!(hand.submits().len(), 9, "the window is not narrower, and eight answers have widened it by one");
}

#[test]
fn t13_cookies_count_only_from_the_present_switch_to_this_client_for_what_awaits_an_answer() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.submit(&[task()]);
    hand.client.handle(hand.now, switch_b(), &cookie(sequence, 1));
    hand.client.handle(hand.now, executor(), &cookie(sequence, 1));
    hand.switch_says(&cookie_for(IDENTITY ^ 1, EPOCH, sequence, 1));
    hand.switch_says(&cookie(sequence.wrapping_add(1), 1));
    hand.switch_says(&cookie(1, 1));
    let counters = hand.client.counters();
    assert_eq!((counters.foreign_address, counters.foreign_identity, counters.unexpected_answers), (2, 1, 2));
    assert_eq!((hand.sent(), hand.client.counters().cookies), (vec![], 0));
    hand.switch_says(&cookie(sequence, 2));
    assert_eq!(with_cookies(&hand.sent()), [(sequence, 2)]);
}

/// A forged COOKIE of 40 bytes must not cause 48 packets.
#[test]
fn t13_a_flood_of_ever_new_cookies_makes_the_client_send_little() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &vec![task(); 32 * 8]).unwrap();
    let first = hand.submits();
    let (mut sent, mut value) = (0, 0);
    for _ in 0..1_000 {
        value += 1;
        hand.switch_says(&cookie(first[0].0, value));
        sent += hand.submits().len();
        sent += hand.pass(MS / 10).len();
    }
    assert!(sent <= 100, "{sent} packets for 1,000 cookies");
    value += 1;
    hand.switch_says(&cookie(first[0].0, value));
    let last: Vec<_> = with_cookies(&hand.pass(500 * MS));
    assert!(last.iter().all(|(_, cookie)| *cookie == value) && last.len() >= 8, "the last one is held: {last:?}");
}

#[test]
fn t16_a_switch_that_never_takes_its_cookie_is_left() {
    let mut hand = Hand::settled();
    let (submission, _) = hand.open(&[task()]);
    let mut value = 0;
    let mut sent = Vec::new();
    for _ in 0..120 {
        for packet in hand.pass(10 * MS) {
            if let Sent::Probe { to, sequence, .. } = packet
                && to == switch_a()
            {
                value += 1;
                hand.switch_says(&cookie(sequence, value));
                sent.extend(hand.sent());
            }
            sent.push(packet);
        }
    }
    assert_eq!(hand.client.switch().0, switch_b());
    let to_b: Vec<_> = sent.into_iter().filter(|s| matches!(s, Sent::Probe { to, .. } if *to == switch_b())).collect();
    let Some(Sent::Probe { sequence, cookie: 0, .. }) = to_b.last() else { panic!("no cookie of another's: {to_b:?}") };
    hand.client.handle(hand.now, switch_b(), &cookie(*sequence, 99));
    let [Sent::Probe { to, sequence, cookie: 99, .. }] = hand.sent()[..] else { panic!("a probe with it") };
    assert_eq!(to, switch_b());
    hand.client.handle(hand.now, switch_b(), &probe_ack(EPOCH + 1, sequence, 0, 0));
    let [Sent::Submit { cookie: 99, .. }] = hand.sent()[..] else { panic!("the task that A had as {submission}") };
}

#[test]
fn t16_a_cookie_of_a_better_switch_that_is_looked_for_is_a_sign_of_life() {
    let (mut hand, probed, _) = Hand::that_left_a();
    hand.switch_says(&cookie(probed - 1, 7));
    hand.switch_says(&cookie_for(IDENTITY ^ 1, EPOCH, probed, 7));
    assert_eq!((hand.client.switch().0, hand.client.counters().cookies), (switch_b(), 0));
    hand.switch_says(&cookie(probed, 7));
    assert_eq!(hand.client.switch().0, switch_a());
    let probe = hand.pass(0).into_iter().find(|sent| matches!(sent, Sent::Probe { .. }));
    assert!(matches!(probe, Some(Sent::Probe { to, cookie: 7, .. }) if to == switch_a()), "{probe:?}");
}

/// A cookie goes only to its own switch.
#[test]
fn t13_a_look_for_a_better_switch_carries_that_switchs_cookie() {
    let mut hand = Hand::new(|_| {});
    hand.sent();
    hand.switch_says(&cookie(1, 0xA));
    assert!(matches!(hand.sent()[..], [Sent::Probe { cookie: 0xA, sequence: 2, .. }]));
    hand.switch_says(&probe_ack(EPOCH, 2, 0, 0));
    hand.open(&[task()]);
    let mut probed = Vec::new();
    let mut seen = 0;
    for _ in 0..30 {
        for sent in hand.pass(100 * MS) {
            let Sent::Probe { to, sequence, cookie, .. } = sent else { continue };
            seen = sequence;
            if to == switch_b() {
                assert_eq!(cookie, 0, "A's is not for B");
                hand.client.handle(hand.now, to, &probe_ack(EPOCH + 1, sequence, 0, 0));
            } else if hand.client.switch().0 == switch_b() {
                probed.push(cookie);
            }
        }
        hand.sent();
    }
    assert!(probed.len() > 1 && probed.iter().all(|&cookie| cookie == 0xA), "{probed:?} of {seen}");
}
