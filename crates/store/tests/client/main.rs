//! The client against scripted switches and replicas.

#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "../common/mod.rs"]
mod common;
mod direct;
mod hand;

use common::packets::Asked;
use hand::{Hand, SET, get, incr, put, switch};
use midflight_endpoint::{Endpoint, MS, SECOND};
use midflight_store::client::{Answer, Client, ClientConfig, Event, Operation, Reached, StoreError, SubmitError};
use midflight_wire::Version;
use midflight_wire::store::{FLAG_UNSERVED, Status, key_hash};
use zerocopy::{FromZeros, IntoBytes};

#[test]
fn a_read_carries_set_key_and_hash_and_its_answer_ends_it() {
    let mut hand = Hand::new(1, |_| {});
    let key = hand.submit(get("{a}b"));
    let (to, read) = hand.one();
    assert_eq!((to, read.request.set.get(), read.request.hash.get()), (switch(1), SET, key_hash(b"a")));
    assert_eq!((&read.key[..], read.sequence(), read.request.flags), (&b"{a}b"[..], 0, 0));
    hand.says(1, &read.answer(Status::Done, b"x"));
    let changed = Event::SwitchChanged { switch: switch(1) };
    let done = Event::Done { key, outcome: Ok(Answer::Value(b"x".to_vec())) };
    assert_eq!(hand.events(), [done, changed]);
    assert_eq!((hand.client.open(), hand.client.poll_timeout()), (0, None), "it wants nothing any more");
}

#[test]
fn r3_a_lane_opens_an_id_and_sends_one_write_at_a_time_under_numbers_that_count_up() {
    let mut hand = Hand::new(1, |config| config.lanes = 1);
    hand.submit(put("a"));
    hand.submit(Operation::Cas { key: b"b".to_vec(), expected: b"old".to_vec(), new: b"new!".to_vec() });
    hand.submit(Operation::Delete { key: b"c".to_vec() });
    let (_, opening) = hand.one();
    assert!(opening.is_opening() && opening.key.is_empty() && opening.name().0 == 0);
    hand.says(1, &opening.answer(Status::Done, &50_u64.to_be_bytes()));
    let (_, first) = hand.one();
    assert_eq!((first.name(), &first.arguments[..]), ((50, 1), &b"value"[..]));
    hand.says(1, &first.answer(Status::Done, b""));
    assert_eq!(hand.outcome(), Ok(Answer::Done));
    let (_, second) = hand.one();
    assert_eq!((second.name(), &second.arguments[..]), ((50, 2), &b"oldnew!"[..]));
    assert_eq!(second.write.unwrap().expected_length.get(), 3);
    let repeats = hand.pass(60 * MS);
    assert!(
        !repeats.is_empty() && repeats.iter().all(|(.., again)| again.name() == (50, 2)),
        "repeats have its number"
    );
    hand.says(1, &second.answer(Status::Conflict, b"other"));
    assert_eq!(hand.outcome(), Ok(Answer::Conflict { present: b"other".to_vec() }));
    let (_, third) = hand.one();
    assert_eq!((third.name(), &third.arguments[..]), ((50, 3), &b""[..]));
    hand.says(1, &third.answer(Status::NotFound, b""));
    assert_eq!(hand.outcome(), Ok(Answer::Existed(false)));
    assert_eq!(hand.counters().ids_opened, 1);
}

#[test]
fn r3_writes_of_several_lanes_go_out_together_and_ids_differ_in_key_group() {
    let mut hand = Hand::new(1, |config| config.lanes = 4);
    (0..10).for_each(|_| _ = hand.submit(incr("n")));
    let openings = hand.sent();
    assert_eq!(openings.len(), 4);
    let mut hashes: Vec<_> = openings.iter().map(|(_, asked)| asked.request.hash.get()).collect();
    hashes.dedup();
    assert_eq!(hashes.len(), 4);
    for (id, (_, opening)) in (50_u64..).zip(&openings) {
        hand.says(1, &opening.answer(Status::Done, &id.to_be_bytes()));
    }
    let names: Vec<_> = hand.sent().iter().map(|(_, asked)| asked.name()).collect();
    assert_eq!(names, [(50, 1), (51, 1), (52, 1), (53, 1)]);
}

#[test]
fn r5_repeats_keep_the_request_id_count_up_and_come_at_least_every_25_ms() {
    let mut hand = Hand::settled();
    hand.submit(get("a"));
    let (_, first) = hand.one();
    let repeats = hand.pass(200 * MS);
    let gaps: Vec<_> = repeats.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps.iter().all(|gap| *gap <= 25 * MS) && repeats[0].0 <= 5 * MS, "{gaps:?}");
    for (sequence, (_, _, again)) in (1..).zip(&repeats) {
        assert_eq!((again.request.request, again.sequence()), (first.request.request, sequence));
    }
    hand.says(1, &first.answer(Status::Done, b"late but good"));
    assert!(hand.outcome().is_ok(), "an answer to any transmission counts");
    hand.says(1, &first.answer(Status::Done, b"a copy"));
    assert_eq!((hand.events().len(), hand.counters().unexpected_answers), (0, 1));
}

#[test]
fn the_round_trip_is_measured_although_packets_repeat() {
    let mut hand = Hand::new(1, |_| {});
    hand.submit(get("a"));
    let (_, first) = hand.one();
    hand.pass(90 * MS);
    hand.says(1, &first.answer(Status::NotFound, b""));
    assert_eq!(hand.client.round_trips(), [Some(90 * MS), None]);
}

#[test]
fn r7_forged_answers_are_dropped_and_counted() {
    let mut hand = Hand::new(1, |_| {});
    hand.submit(get("a"));
    let (_, read) = hand.one();
    let good = read.answer(Status::Done, b"forged");
    hand.client.handle(hand.now, switch(9), &good);
    assert_eq!(hand.counters().foreign_address, 1);
    let change = |change: fn(&mut Asked)| {
        let mut other = read.clone();
        change(&mut other);
        other.answer(Status::Done, b"forged")
    };
    hand.says(1, &change(|asked| asked.request.request = (asked.request.request.get() + 1).into()));
    let mut as_write = read.clone();
    as_write.write = Some(midflight_wire::store::Write::new_zeroed());
    hand.says(1, &as_write.answer(Status::Done, b"forged"));
    assert_eq!(hand.counters().unexpected_answers, 2);
    hand.says(1, &change(|asked| asked.request.set = 4.into()));
    hand.says(1, &change(|asked| asked.request.header.sequence = 1.into()));
    hand.says(1, &change(|asked| asked.key = b"b".to_vec()));
    hand.says(1, &read.answer(Status::Conflict, b""));
    hand.says(1, &read.answer(Status::UnknownClient, b""));
    hand.says(1, &read.answer(Status::Behind, b""));
    assert_eq!(hand.counters().bad_answers, 6);
    hand.says(1, &good[..50]);
    assert_eq!(hand.counters().malformed, 1);
    hand.says(1, &{
        let mut request = read.request;
        request.key_length = 0.into();
        request.as_bytes().to_vec()
    });
    assert_eq!(hand.counters().not_for_client, 1);
    assert_eq!(hand.events(), []);
    hand.says(1, &good);
    assert!(hand.outcome().is_ok());
}

#[test]
fn r5_an_inactive_switch_is_left_at_once_and_the_next_one_serves() {
    let mut hand = Hand::new(3, |_| {});
    hand.submit(get("a"));
    hand.submit(get("b"));
    let [(to, a), (_, b)] = &hand.sent()[..] else { panic!("two reads") };
    assert_eq!(*to, switch(1));
    hand.says(1, &a.refuse(Status::Inactive));
    hand.says(1, &b.refuse(Status::Inactive));
    let again = hand.sent();
    assert!(again.len() == 2 && again.iter().all(|(to, _)| *to == switch(2)), "{again:?}");
    hand.says(2, &again[0].1.refuse(Status::UnknownSet));
    let (to, third) = hand.one();
    assert_eq!(to, switch(3));
    hand.says(3, &third.answer(Status::NotFound, b""));
    assert!(hand.events().contains(&Event::SwitchChanged { switch: switch(3) }));
    hand.submit(get("c"));
    assert_eq!(hand.one().0, switch(3), "it stays there");
    let counters = hand.counters();
    assert_eq!((counters.inactive, counters.unknown_set, counters.failovers), (2, 1, 2));
}

#[test]
fn r5_while_no_switch_is_active_the_client_asks_each_of_them_at_least_every_50_ms() {
    let mut hand = Hand::new(2, |_| {});
    hand.submit(get("a"));
    let mut times = Vec::new();
    let begin = hand.now;
    let mut sent = hand.sent();
    loop {
        for (to, asked) in std::mem::take(&mut sent) {
            times.push((hand.now - begin, to));
            let from = if to == switch(1) { 1 } else { 2 };
            hand.says(from, &asked.refuse(Status::Inactive));
        }
        sent = hand.sent();
        if sent.is_empty() && hand.now >= begin + 2 * SECOND {
            break;
        }
        if sent.is_empty() {
            hand.now = hand.client.poll_timeout().expect("it goes on");
            hand.client.handle_timeout(hand.now);
            sent = hand.sent();
        }
    }
    for last in [1, 2] {
        let at: Vec<_> = times.iter().filter(|(_, to)| *to == switch(last)).map(|(at, _)| *at).collect();
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= 50 * MS), "{at:?}");
        assert!(at.len() < 120, "{} packets in two seconds", at.len());
    }
    hand.submit(get("b"));
    assert!(hand.sent().is_empty(), "new operations wait, too");
    assert!(hand.pass(50 * MS).iter().any(|(.., asked)| asked.key == b"b"));
}

#[test]
fn r5_a_switch_that_dies_is_left_after_two_timeouts_and_silent_ones_after_one() {
    let mut hand = Hand::new(2, |_| {});
    hand.submit(get("a"));
    let (_, read) = hand.one();
    hand.now += MS;
    hand.says(1, &read.answer(Status::NotFound, b""));
    hand.submit(get("b"));
    hand.sent();
    let sent = hand.pass(100 * MS);
    let to: Vec<_> = sent.iter().map(|(_, to, _)| *to).collect();
    assert_eq!(to[..3], [switch(1), switch(2), switch(1)]);
    let (at, ..) = sent.iter().find(|(_, to, _)| *to == switch(2)).unwrap();
    assert!(*at <= 20 * MS, "{at}");
}

#[test]
fn r5_a_switch_that_answers_others_is_not_left() {
    let mut hand = Hand::new(2, |config| config.rto_initial = 20 * MS);
    hand.submit(get("silent"));
    let (_, first) = hand.one();
    hand.says(1, &first.answer(Status::NotFound, b""));
    hand.submit(get("silent"));
    hand.sent();
    for _ in 0..100 {
        hand.submit(get("b"));
        for (to, asked) in hand.sent() {
            assert_eq!(to, switch(1));
            if asked.key == b"b" {
                hand.says(1, &asked.answer(Status::NotFound, b""));
            }
        }
        hand.pass(MS);
    }
}

#[test]
fn the_cookie_is_repeated_at_once_and_everything_later_carries_it() {
    let mut hand = Hand::new(1, |_| {});
    hand.submit(get("a"));
    let (_, first) = hand.one();
    assert_eq!(first.cookie(), 0);
    hand.says(1, &first.want_cookie(0xC00C));
    let (_, again) = hand.one();
    assert_eq!((again.cookie(), again.sequence(), again.request.request), (0xC00C, 1, first.request.request));
    hand.says(1, &first.want_cookie(0xBAD));
    assert_eq!(hand.counters().old_answers, 1, "of what has been sent again since");
    hand.submit(get("b"));
    assert_eq!(hand.one().1.cookie(), 0xC00C);
}

#[test]
fn r7_a_flood_of_ever_new_cookies_makes_the_client_send_little() {
    let mut hand = Hand::settled();
    hand.submit(get("a"));
    let mut latest = hand.one().1;
    let mut sent = 0;
    for cookie in 1..=1_000 {
        hand.says(1, &latest.want_cookie(cookie));
        for (_, asked) in hand.sent() {
            sent += 1;
            latest = asked;
        }
        for (.., asked) in hand.pass(MS / 10) {
            sent += 1;
            latest = asked;
        }
    }
    assert!(sent <= 50, "{sent} packets in 100 ms");
}

#[test]
fn r5_a_switch_that_never_takes_its_cookie_is_left() {
    let mut hand = Hand::new(2, |_| {});
    hand.submit(get("a"));
    let mut latest = hand.sent();
    for cookie in 1..200 {
        for (to, asked) in std::mem::take(&mut latest) {
            if to == switch(2) {
                assert_eq!(asked.cookie(), 0, "no cookie of another's");
                return;
            }
            hand.says(1, &asked.want_cookie(cookie));
        }
        latest = hand.sent();
        latest.extend(hand.pass(MS).into_iter().map(|(_, to, asked)| (to, asked)));
    }
    panic!("it stays at a switch that takes nothing");
}

#[test]
fn r5_after_not_leader_and_busy_it_pauses_and_after_reordered_it_does_not() {
    let mut hand = Hand::settled();
    hand.submit(put("a"));
    let (_, mut write) = hand.one();
    hand.says(1, &write.answer(Status::Reordered, b""));
    write = hand.one().1;
    assert_eq!(write.name(), (50, 2), "the same number");
    let mut waits = Vec::new();
    for status in [Status::NotLeader, Status::Busy].into_iter().cycle().take(12) {
        hand.says(1, &write.answer(status, b""));
        hand.says(1, &write.answer(status, b"")); // a duplicate
        assert!(hand.sent().is_empty());
        let before = hand.now;
        hand.now = hand.client.poll_timeout().unwrap();
        hand.client.handle_timeout(hand.now);
        waits.push(hand.now - before);
        write = hand.one().1;
    }
    assert!(waits[0] <= MS && waits.iter().all(|wait| *wait <= 20 * MS) && waits[11] >= 10 * MS, "{waits:?}");
    let counters = hand.counters();
    assert_eq!((counters.reordered, counters.not_leader, counters.busy, counters.old_answers), (1, 6, 6, 12));
}

#[test]
fn r3_a_write_that_was_sent_once_and_meets_an_expired_id_runs_under_a_new_one() {
    let mut hand = Hand::settled();
    hand.submit(incr("a"));
    let (_, write) = hand.one();
    hand.says(1, &write.answer(Status::UnknownClient, b""));
    let (_, opening) = hand.one();
    assert!(opening.is_opening());
    hand.says(1, &opening.answer(Status::Done, &60_u64.to_be_bytes()));
    let (_, again) = hand.one();
    assert_eq!((again.name(), again.sequence()), ((60, 1), 1));
    hand.says(1, &write.answer(Status::UnknownClient, b""));
    assert_eq!(hand.counters().old_answers, 1, "a copy of the refusal is about the old id");
    hand.says(1, &again.answer(Status::Done, &2_i64.to_be_bytes()));
    assert_eq!(hand.outcome(), Ok(Answer::Number(2)));
}

#[test]
fn r3_a_write_that_may_have_run_under_an_expired_id_fails_and_the_lane_opens_anew() {
    let mut hand = Hand::settled();
    hand.submit(incr("a"));
    let (_, first) = hand.one();
    hand.pass(6 * MS);
    hand.says(1, &first.answer(Status::UnknownClient, b""));
    assert_eq!(hand.outcome(), Err(StoreError::UnknownClient), "it was sent twice");
    assert!(StoreError::UnknownClient.is_unknown());
    hand.submit(incr("a"));
    let (_, opening) = hand.one();
    hand.says(1, &opening.answer(Status::Done, &60_u64.to_be_bytes()));
    assert_eq!(hand.one().1.name(), (60, 1));
}

#[test]
fn r3_after_longer_than_ids_are_kept_nothing_is_known_of_a_write_that_was_sent_once() {
    let mut hand = Hand::settled();
    hand.client = {
        let mut config = ClientConfig::new(vec![switch(1)], SET, 7);
        (config.lanes, config.id_kept) = (1, 0);
        Client::new(config, hand.now).unwrap()
    };
    hand.submit(incr("a"));
    let (_, opening) = hand.one();
    hand.says(1, &opening.answer(Status::Done, &50_u64.to_be_bytes()));
    let (_, write) = hand.one();
    hand.says(1, &write.answer(Status::UnknownClient, b""));
    assert_eq!(hand.outcome(), Err(StoreError::UnknownClient));
}

#[test]
fn r7_a_store_that_is_full_says_so_at_once() {
    let mut hand = Hand::settled();
    for write in [put("a"), incr("a"), Operation::Cas { key: b"a".into(), expected: b"".into(), new: b"b".into() }] {
        hand.submit(write);
        let write = hand.one().1;
        hand.says(1, &write.answer(Status::Full, b""));
        assert_eq!(hand.outcome(), Err(StoreError::Full));
    }
    assert!(!StoreError::Full.is_unknown());
    assert_eq!(hand.counters().bad_answers, 0);
}

#[test]
fn r7_without_room_for_a_client_id_the_write_fails_or_waits_for_a_lane_that_has_one() {
    let mut hand = Hand::new(1, |config| config.lanes = 2);
    hand.submit(put("a"));
    let (_, opening) = hand.one();
    hand.says(1, &opening.answer(Status::ClientsFull, b""));
    assert_eq!(hand.outcome(), Err(StoreError::ClientsFull));
    (0..3).for_each(|_| _ = hand.submit(put("a")));
    let [(_, one), (_, two)] = &hand.sent()[..] else { panic!("two openings") };
    hand.says(1, &one.answer(Status::Done, &50_u64.to_be_bytes()));
    hand.says(1, &two.answer(Status::ClientsFull, b""));
    for number in 1..=3 {
        let (_, write) = hand.one();
        assert_eq!(write.name(), (50, number));
        hand.says(1, &write.answer(Status::Done, b""));
        assert_eq!(hand.outcome(), Ok(Answer::Done));
    }
    assert_eq!(hand.counters().clients_full, 2);
}

#[test]
fn operations_end_in_time_and_say_whether_they_may_have_run() {
    let mut hand = Hand::new(1, |config| config.lanes = 1);
    let keys = [hand.submit(put("a")), hand.submit(get("b"))];
    hand.pass(10 * SECOND);
    let timed_out = |was_sent| Err(StoreError::TimedOut { was_sent, reached: Reached::Nobody });
    let mut events = hand.events();
    events.sort_by_key(|event| if let Event::Done { key, .. } = event { key.0 } else { 0 });
    let [a, b] = &events[..] else { panic!("{events:?}") };
    assert_eq!(*a, Event::Done { key: keys[0], outcome: timed_out(false) }, "only its opening was sent");
    assert_eq!(*b, Event::Done { key: keys[1], outcome: timed_out(true) });
    hand.pass(SECOND);
    assert_eq!((hand.client.open(), hand.client.poll_timeout()), (0, None));
    hand.submit(put("a"));
    assert!(hand.one().1.is_opening(), "the lane is free again");
}

#[test]
fn r3_a_lane_whose_write_timed_out_goes_on_with_the_next_number() {
    let mut hand = Hand::settled();
    hand.submit(put("a"));
    hand.pass(11 * SECOND);
    assert_eq!(hand.outcome(), Err(StoreError::TimedOut { was_sent: true, reached: Reached::Nobody }));
    hand.submit(put("a"));
    assert_eq!(hand.one().1.name(), (50, 3), "its late copies never run after this");
}

#[test]
fn r7_reads_under_way_and_the_queue_are_bounded() {
    let mut hand = Hand::new(1, |config| (config.reads_max, config.queued_max) = (2, 3));
    (0..3).for_each(|_| _ = hand.submit(get("a")));
    assert_eq!(hand.client.submit(hand.now, put("a")), Err(SubmitError::QueueFull(3)));
    let sent = hand.sent();
    assert_eq!(sent.len(), 2);
    hand.submit(get("b"));
    hand.submit(get("b"));
    assert!(hand.sent().is_empty());
    hand.says(1, &sent[0].1.answer(Status::NotFound, b""));
    assert_eq!(hand.one().1.key, b"a");
    hand.pass(11 * SECOND);
    assert_eq!(hand.events().len(), 1 + 4 + 1, "all have ended, and the switch was new");
    (0..3).for_each(|_| _ = hand.submit(get("a")));
}

#[test]
fn a_switch_of_another_version_is_told_once() {
    let mut hand = Hand::new(1, |_| {});
    let mut said = Version::new_zeroed();
    (said.magic, said.version) = (midflight_wire::MAGIC.into(), 9);
    let said = said.as_bytes().to_vec();
    (0..3).for_each(|_| hand.says(1, &said));
    hand.says(9, &said);
    assert_eq!(hand.events(), [Event::OtherVersion { switch: switch(1), version: 9 }]);
    assert_eq!(hand.counters().other_version, 4);
}

/// R7: one number reveals none of the others, so a direct reply, which may come from any address, cannot be forged.
#[test]
fn r7_the_numbers_of_requests_say_nothing_of_each_other() {
    let numbers = |seed| {
        let mut hand = Hand::new(1, |config| config.seed = seed);
        for _ in 0..1_000 {
            hand.submit(get("k"));
        }
        hand.sent().iter().map(|(_, read)| read.request.request.get()).collect::<Vec<u64>>()
    };
    let (ours, others) = (numbers(7), numbers(8));
    let all: std::collections::HashSet<u64> = ours.iter().chain(&others).copied().collect();
    assert_eq!(all.len(), 2_000, "none recurs");
    // The differences of consecutive numbers are all distinct, and half of their bits differ.
    let steps: std::collections::HashSet<u64> = ours.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
    assert_eq!(steps.len(), 999);
    let bits: u32 = ours.windows(2).map(|two| (two[0] ^ two[1]).count_ones()).sum();
    assert!((31 * 999..33 * 999).contains(&bits), "{bits}");
}

/// R5: if its switch is silent and another one is a standby, the client tells the standby after a while, until it is served.
#[test]
fn r5_a_client_that_reaches_a_standby_only_says_so() {
    let mut hand = Hand::new(2, |config| config.lanes = 1);
    hand.submit(get("a"));
    let begun = hand.now;
    let mut marked = None;
    while marked.is_none() && hand.now < begun + SECOND {
        for (_, to, asked) in hand.pass(MS) {
            let is_marked = asked.request.flags & FLAG_UNSERVED != 0;
            if to == switch(2) {
                marked = marked.or(is_marked.then_some(asked.clone()));
                hand.says(2, &asked.refuse(Status::Inactive));
            }
        }
    }
    let asked = marked.expect("it says so");
    let after = hand.now - begun;
    assert!((60 * MS..200 * MS).contains(&after), "{} ms", after / MS);
    hand.says(2, &asked.answer(Status::NotFound, b""));
    hand.events();
    hand.submit(get("a"));
    assert!(hand.sent().iter().all(|(_, asked)| asked.request.flags & FLAG_UNSERVED == 0), "it is served");
}

/// The error of an unanswered operation names what answered instead.
#[test]
fn what_answered_instead_is_told() {
    let told = |says: &dyn Fn(&mut Hand, &Asked)| {
        let mut hand = Hand::new(1, |_| {});
        hand.submit(get("a"));
        for (_, _, asked) in hand.pass(9 * SECOND) {
            says(&mut hand, &asked);
        }
        hand.pass(2 * SECOND);
        hand.outcome().unwrap_err().to_string()
    };
    assert!(told(&|_, _| ()).contains("no switch of the store answers"));
    assert!(
        told(&|hand, _| hand.says(1, b"HTTP/1.1 400 Bad Request"))
            .contains("what answers at 10.0.0.1:7700 is no switch")
    );
    let stands_by = told(&|hand, asked| hand.says(1, &asked.refuse(Status::Inactive)));
    assert!(stands_by.contains("switch 10.0.0.1:7700 answers, but has no session"), "{stands_by}");
    let unknown = told(&|hand, asked| hand.says(1, &asked.refuse(Status::UnknownSet)));
    assert!(unknown.contains("does not serve this replica set"), "{unknown}");
}
