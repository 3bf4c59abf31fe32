//! R6, R7: replies directly from replicas.

use super::common::packets::Asked;
use super::hand::{Hand, SET, get, put, switch};
use midflight_endpoint::{Endpoint, MS, SECOND};
use midflight_store::client::{Answer, ClientConfig};
use midflight_wire::store::Status;
use std::net::SocketAddr;

fn replica() -> SocketAddr {
    "10.0.7.7:4321".parse().unwrap()
}

/// The client has a cookie and was served, so the switch has offered direct replies.
fn known(switches: u8) -> Hand {
    let mut hand = Hand::new(switches, |_: &mut ClientConfig| {});
    hand.submit(get("k"));
    let (_, first) = hand.one();
    assert!(!first.asks_direct(), "nobody has offered it");
    hand.says(1, &first.want_cookie(9));
    let (_, again) = hand.one();
    assert!(!again.asks_direct(), "it is a repeat");
    hand.now += MS;
    hand.says(1, &again.answer_with_offer(Status::Done, b"v"));
    hand.events();
    hand
}

fn read(hand: &mut Hand) -> Asked {
    hand.submit(get("k"));
    hand.one().1
}

fn replies(hand: &mut Hand, datagram: &[u8]) {
    hand.client.handle(hand.now, replica(), datagram);
}

/// Direct replies have come.
fn trusting(switches: u8) -> Hand {
    let mut hand = known(switches);
    let read = read(&mut hand);
    replies(&mut hand, &read.direct(Status::NotFound, b""));
    hand.events();
    hand
}

#[test]
fn r6_one_read_asks_and_when_its_reply_has_come_from_a_replica_all_do() {
    let mut hand = known(1);
    let first = read(&mut hand);
    assert!(first.asks_direct() && !read(&mut hand).asks_direct(), "one at a time");
    replies(&mut hand, &first.direct(Status::Done, b"v"));
    assert_eq!(hand.outcome(), Ok(Answer::Value(b"v".to_vec())));
    assert_eq!(hand.counters().direct_answers, 1);
    assert!(read(&mut hand).asks_direct() && read(&mut hand).asks_direct());
    hand.submit(put("k"));
    assert!(!hand.one().1.asks_direct(), "an opening and writes do not");
}

#[test]
fn r6_a_read_whose_reply_is_lost_is_answered_by_its_repeat_and_direct_return_waits() {
    let mut hand = known(1);
    for wait in [10, 20] {
        assert!(read(&mut hand).asks_direct());
        let repeats = hand.pass(10 * MS);
        let (_, _, repeat) = repeats.last().expect("it was sent again");
        assert!(repeats.iter().all(|(_, _, repeat)| !repeat.asks_direct()), "repeats must come through the switch");
        hand.says(1, &repeat.answer_with_offer(Status::Done, b"v"));
        assert_eq!(hand.outcome(), Ok(Answer::Value(b"v".to_vec())));
        assert!(!read(&mut hand).asks_direct());
        hand.pass(wait * SECOND);
        hand.events();
    }
    assert_eq!((hand.counters().direct_answers, hand.counters().direct_lost), (0, 2));
}

#[test]
fn r6_three_losses_in_a_row_end_it_and_fewer_do_not() {
    let mut hand = trusting(1);
    let lose = |hand: &mut Hand| {
        assert!(read(hand).asks_direct());
        let repeat = hand.pass(10 * MS).pop().expect("it was sent again").2;
        hand.says(1, &repeat.answer_with_offer(Status::Done, b"v"));
        hand.events();
    };
    (0..2).for_each(|_| lose(&mut hand));
    let answered = read(&mut hand);
    replies(&mut hand, &answered.direct(Status::Done, b"v"));
    (0..3).for_each(|_| lose(&mut hand));
    assert!(!read(&mut hand).asks_direct());
    assert_eq!(hand.counters().direct_lost, 5);
}

#[test]
fn r6_a_reply_through_the_switch_shows_that_it_works_no_less() {
    let mut hand = trusting(1);
    for _ in 0..5 {
        let probe = read(&mut hand);
        hand.says(1, &probe.answer_with_offer(Status::Done, b"v"));
    }
    assert!(read(&mut hand).asks_direct());
    assert_eq!(hand.counters().direct_lost, 0);
}

/// R5: if the switch fails, clients change to the next one. This proves nothing about the path from the replicas.
#[test]
fn r5_a_switch_that_dies_does_not_end_direct_return() {
    let mut hand = trusting(2);
    let lost: Vec<Asked> = (0..5).map(|_| read(&mut hand)).collect();
    assert!(lost.iter().all(Asked::asks_direct));
    for _ in 0..100 {
        for (_, to, repeat) in hand.pass(MS) {
            if to == switch(2) {
                hand.says(2, &repeat.answer_with_offer(Status::Done, b"v"));
            }
        }
    }
    assert_eq!((hand.client.open(), hand.client.switch()), (0, switch(2)));
    assert_eq!(hand.counters().direct_lost, 0);
    let first = read(&mut hand);
    hand.says(2, &first.want_cookie(5));
    let again = hand.one().1;
    hand.says(2, &again.answer_with_offer(Status::Done, b"v"));
    assert!(read(&mut hand).asks_direct());
}

#[test]
fn r1_the_first_answer_counts_whichever_way_it_came() {
    let mut hand = trusting(1);
    let first = read(&mut hand);
    let repeat = hand.pass(10 * MS).pop().expect("it was sent again").2;
    replies(&mut hand, &first.direct(Status::Done, b"direct"));
    hand.says(1, &repeat.answer_with_offer(Status::Done, b"later"));
    assert_eq!(hand.outcome(), Ok(Answer::Value(b"direct".to_vec())));
    replies(&mut hand, &first.direct(Status::Done, b"copy"));
    assert_eq!(hand.counters().unexpected_answers, 2);
    let refused = read(&mut hand);
    hand.says(1, &refused.refuse(Status::Busy));
    replies(&mut hand, &refused.direct(Status::Done, b"of the first sending"));
    assert_eq!((hand.counters().foreign_address, hand.client.open()), (1, 1), "it waits for what is sent again");
}

#[test]
fn r7_a_direct_reply_must_be_asked_for_and_fit() {
    let mut hand = known(1);
    let (asks, plain) = (read(&mut hand), read(&mut hand));
    assert!(asks.asks_direct() && !plain.asks_direct());
    replies(&mut hand, &plain.direct(Status::Done, b"v"));
    assert_eq!(hand.counters().foreign_address, 1, "the read did not ask");
    replies(&mut hand, &asks.answer(Status::Done, b"v"));
    assert_eq!(hand.counters().foreign_address, 2, "the reply is not marked, and from nobody");
    let mut guessed = asks.clone();
    guessed.request.request = (asks.request.request.get() + 1).into();
    replies(&mut hand, &guessed.direct(Status::Done, b"v"));
    assert_eq!(hand.counters().unexpected_answers, 1);
    let mut repeat = asks.clone();
    repeat.request.header.sequence = 1.into();
    let mut other_set = asks.clone();
    other_set.request.set = (SET + 1).into();
    let mut other_key = asks.clone();
    other_key.key = b"other".to_vec();
    for (wrong, status) in
        [(&repeat, Status::Done), (&other_set, Status::Done), (&other_key, Status::Done), (&asks, Status::NotLeader)]
    {
        replies(&mut hand, &wrong.direct(status, b"v"));
    }
    assert_eq!((hand.counters().bad_answers, hand.client.open()), (4, 2));
    replies(&mut hand, &asks.direct(Status::Done, b"v"));
    assert_eq!(hand.outcome(), Ok(Answer::Value(b"v".to_vec())));
}

/// R7: without the switch's offer, only replies from switches are accepted, and losses prove nothing.
#[test]
fn r7_a_client_asks_only_while_its_switch_offers_it() {
    let mut hand = trusting(1);
    let last = read(&mut hand);
    assert!(last.asks_direct());
    hand.says(1, &last.answer(Status::Done, b"v"));
    for _ in 0..10 {
        let plain = read(&mut hand);
        assert!(!plain.asks_direct(), "the setting has changed");
        replies(&mut hand, &plain.direct(Status::Done, b"forged"));
        let repeat = hand.pass(10 * MS).pop().expect("it was sent again").2;
        hand.says(1, &repeat.answer(Status::Done, b"v"));
    }
    assert_eq!((hand.counters().foreign_address, hand.counters().direct_lost), (10, 0));
    let offered = read(&mut hand);
    hand.says(1, &offered.answer_with_offer(Status::Done, b"v"));
    assert!(read(&mut hand).asks_direct(), "it works still");
}

/// R5: many concurrent losses count once towards the pause.
#[test]
fn r5_a_burst_of_losses_makes_one_short_pause() {
    let mut hand = trusting(1);
    let lost: Vec<Asked> = (0..50).map(|_| read(&mut hand)).collect();
    assert!(lost.iter().all(Asked::asks_direct));
    for (_, _, repeat) in hand.pass(10 * MS) {
        hand.says(1, &repeat.answer_with_offer(Status::Done, b"v"));
    }
    assert_eq!((hand.client.open(), hand.counters().direct_lost), (0, 50));
    assert!(!read(&mut hand).asks_direct());
    hand.pass(10 * SECOND);
    assert!(read(&mut hand).asks_direct());
}
