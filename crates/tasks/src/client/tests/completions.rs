//! Completions: the first one counts, and all are acknowledged.

use super::super::{LostWhy, Outcome};
use super::*;
use midflight_wire::tasks::AckState;

const DONE: u8 = AckState::Done as u8;
const FETCHING: u8 = AckState::Fetching as u8;

fn blob() -> BlobRef {
    BlobRef { id: 1.into(), length: 5_000.into(), port: 80.into(), reserved: 0.into() }
}

fn ack(name: (u32, u8), state: u8) -> Sent {
    Sent::CompleteAck { to: executor(), records: vec![(name.0, name.1, state)] }
}

#[test]
fn t9_the_first_completion_is_reported_and_all_are_acknowledged() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&[task(), task()]);
    hand.now += 7 * MS;
    hand.executor_says(&complete((sequence, 1), 1, Status::Ok, false, b"value"));
    let events = hand.events();
    let [Event::Completed { key, status: Status::Ok, attempt: 1, result, timing }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*key, result), (keys[1], &Outcome::Inline(b"value".to_vec())));
    assert_eq!(timing.completed - timing.submitted, 7 * MS);
    assert_eq!((timing.waited_us, timing.held_us, timing.ran_ns), (11, 12, 13));
    assert_eq!(hand.sent(), [ack((sequence, 1), DONE)]);

    hand.executor_says(&complete((sequence, 1), 1, Status::Ok, false, b"value"));
    hand.executor_says(&complete((sequence.wrapping_add(9), 3), 1, Status::Ok, false, b"unknown"));
    hand.executor_says(&complete((sequence, 200), 1, Status::Ok, false, b"unknown"));
    assert_eq!(hand.events(), []);
    let [Sent::CompleteAck { records, .. }] = &hand.sent()[..] else { panic!("one COMPLETE_ACK") };
    assert_eq!(records.len(), 3);
    assert_eq!(hand.client.counters().completions_ignored, 3);
    assert_eq!(hand.client.open(), 1);
}

#[test]
fn t9_a_part_that_is_given_back_ends_nothing() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&[task()]);
    let name = (sequence, 0);
    let (key, part) = (keys[0], b"rest".to_vec());
    for attempt in [1, 1, 2] {
        hand.executor_says(&complete(name, attempt, Status::Part, false, &part));
        assert_eq!(
            hand.events(),
            [Event::Part { key, attempt, part: Outcome::Inline(part.clone()) }],
            "each time, of any attempt"
        );
        assert_eq!(hand.sent(), [ack(name, AckState::Part as u8)], "not as a completion: its executor keeps that");
    }
    hand.executor_says(&complete(name, 2, Status::Part, true, blob().as_bytes()));
    let part = Outcome::ByReference { executor: executor(), blob: blob() };
    assert_eq!(hand.events(), [Event::Part { key, attempt: 2, part }]);
    assert_eq!(hand.sent(), [ack(name, AckState::Part as u8)]);
    let part = b"rest".to_vec();
    assert_eq!(hand.client.open(), 1);
    hand.executor_says(&complete(name, 2, Status::Ok, false, b"value"));
    assert!(matches!(hand.events()[..], [Event::Completed { .. }]));
    assert_eq!(hand.sent(), [ack(name, DONE)]);
    hand.executor_says(&complete(name, 2, Status::Part, false, &part));
    assert_eq!(hand.events(), [], "it is too late");
    assert_eq!(hand.sent(), [ack(name, AckState::Part as u8)]);
}

#[test]
fn t8_a_completion_before_the_answer_counts_and_the_submit_is_repeated_for_the_others() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.submit(&[task(), task()]);
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    assert_eq!(hand.events().len(), 1);
    let sent = hand.pass(150 * MS);
    assert!(
        sent.iter().any(|s| matches!(s, Sent::Submit { sequence: s, tasks, .. } if *s == sequence && tasks.len() == 2))
    );
    hand.executor_says(&complete((sequence, 1), 1, Status::Ok, false, b""));
    assert_eq!(hand.events().len(), 1);
    let sent = hand.pass(3_000 * MS);
    assert!(!sent.iter().any(|s| matches!(s, Sent::Submit { .. })), "nothing hangs on its answer any more");
    assert_eq!(hand.client.poll_timeout(), None, "an idle client is silent");
}

/// Token and sequence of the next SUBMIT, as an executor would get them.
fn token_on_the_wire(hand: &mut Hand) -> (Token, u32) {
    let mut buffer = Vec::new();
    assert!(hand.client.poll_transmit(hand.now, &mut buffer).is_some());
    let Ok(Packet::Submit(fixed, ..)) = parse(&buffer) else { panic!("{buffer:02x?}") };
    (Token::new(fixed.token.get()), fixed.header.sequence.get())
}

/// States in the next COMPLETE_ACK, after checking its proofs.
fn acks(hand: &mut Hand, tokens: &[Token]) -> Vec<u8> {
    let mut buffer = Vec::new();
    assert!(hand.client.poll_transmit(hand.now, &mut buffer).is_some());
    let Ok(Packet::CompleteAck(_, records)) = parse(&buffer) else { panic!("{buffer:02x?}") };
    assert_eq!(records.len(), tokens.len());
    let proofs = records.iter().zip(tokens).map(|(record, token)| token.acknowledgement_proof(record));
    assert!(proofs.eq(records.iter().map(|record| record.proof.get())), "proven by the token that its executor has");
    records.iter().map(|record| record.state).collect()
}

fn half(token: Token) -> Token {
    Token::new(token.number() & 0xFFFF_FFFF)
}

#[test]
fn t13_completion_without_the_token_is_refused() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    let (token, sequence) = token_on_the_wire(&mut hand);
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    let (of_the_next, _) = token_on_the_wire(&mut hand);
    let number = token.number();
    let foreign = [0, number ^ 1, number ^ 1 << 63, number >> 32, number << 32, IDENTITY].map(Token::new);
    let foreign = [&foreign[..], &[half(token), of_the_next]].concat();
    for &foreign in &foreign {
        hand.executor_says(&complete_with(foreign, (sequence, 0), 1, Status::Ok, false, b""));
    }
    assert_eq!((hand.events(), hand.sent()), (vec![], vec![]), "neither taken nor acknowledged");
    assert_eq!(hand.client.counters().unproven, foreign.len() as u64);
    hand.executor_says(&complete_with(token, (sequence, 0), 1, Status::Ok, false, b""));
    assert_eq!((hand.events().len(), acks(&mut hand, &[token])), (1, vec![DONE]));
}

/// A process with the port of an ended client gets a COMPLETE for it; then the client returns. The process cannot change any
/// field of it.
#[test]
fn t13_of_a_completion_nothing_can_be_changed() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.open(&[task(), task()]);
    let seen = complete((sequence, 0), 1, Status::Ok, false, b"value");
    let header = size_of::<midflight_wire::Header>();
    for byte in header..seen.len() - 3 {
        let mut forged = seen.clone();
        forged[byte] ^= 1;
        hand.executor_says(&forged);
    }
    assert_eq!((hand.events(), hand.sent(), hand.client.open()), (vec![], vec![], 2));
    let c = hand.client.counters();
    assert!(c.unproven > 40, "{c:?}");
    assert_eq!(
        c.unproven + c.malformed,
        (seen.len() - 3 - header) as u64,
        "what is no packet any more is counted, too"
    );
    hand.executor_says(&seen);
    assert_eq!(hand.events().len(), 1, "the packet itself is the executor's");
    hand.executor_says(&seen);
    assert_eq!((hand.events(), hand.client.open()), (vec![], 1), "a repeat is harmless");
}

/// Nor can a process at the port of an ended executor turn the client's packets into the proof of a completion.
#[test]
fn t13_a_stop_or_an_acknowledgement_proves_no_completion() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.open(&[task(), task()]);
    let stop = token(sequence).run_name(sequence, 0).proof;
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b""));
    let mut buffer = Vec::new();
    assert!(hand.client.poll_transmit(hand.now, &mut buffer).is_some());
    let Ok(Packet::CompleteAck(_, [acknowledged])) = parse(&buffer) else { panic!("{buffer:02x?}") };
    for proof in [stop, acknowledged.proof] {
        for index in 0..2 {
            for token in [Token::new(proof.get()), half(Token::new(proof.get()))] {
                hand.executor_says(&complete_with(token, (sequence, index), 1, Status::Ok, false, b"forged"));
            }
            let mut forged = complete((sequence, index), 1, Status::Ok, false, b"forged");
            let at = size_of::<Complete>();
            forged[at..at + 8].copy_from_slice(proof.as_bytes());
            hand.executor_says(&forged);
        }
    }
    assert_eq!((hand.client.counters().unproven, hand.client.open()), (12, 1));
}

/// With the id an attacker could serve other bytes and send the completion itself.
#[test]
fn t13_a_result_by_reference_does_not_show_its_id() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.open(&[task()]);
    let sent = complete((sequence, 0), 1, Status::Ok, true, blob().as_bytes());
    let (shown, rest) = sent.last_chunk::<16>().unwrap().split_at(8);
    assert_ne!(shown, blob().id.as_bytes());
    assert_eq!(rest, &blob().as_bytes()[8..]);
    hand.executor_says(&sent);
    let expected = Outcome::ByReference { executor: executor(), blob: blob() };
    assert!(matches!(&hand.events()[..], [Event::Completed { result, .. }] if *result == expected));
}

/// An entry of the asic engine has room for 32 bits.
#[test]
fn t13_a_completion_proven_by_the_lower_half_of_the_token_counts_and_is_acknowledged_so() {
    let mut hand = Hand::settled_at(Known::NoRecord, |_| {});
    let keys = hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap();
    let (token, sequence) = token_on_the_wire(&mut hand);
    let half = half(token);
    hand.executor_says(&complete_with(half, (sequence, 0), 1, Status::Ok, false, b""));
    hand.executor_says(&complete_with(token, (sequence, 1), 1, Status::Ok, false, b""));
    hand.executor_says(&complete_with(half, (sequence, 2), 1, Status::Ok, true, blob().as_bytes()));
    let expected = Outcome::ByReference { executor: executor(), blob: blob() };
    assert!(matches!(&hand.events()[2], Event::Completed { result, .. } if *result == expected));
    assert_eq!(acks(&mut hand, &[half, token, half]), [DONE, DONE, FETCHING]);
    hand.client.fetched(hand.now, TaskKey(keys.start + 2), true);
    assert_eq!((acks(&mut hand, &[half]), hand.client.open()), (vec![DONE], 0));
}

#[test]
fn failures_are_final_unless_retries_are_asked_for() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.open(&[task(), Task { retry_failed: true, attempts: 2, ..task() }]);
    hand.executor_says(&complete((sequence, 0), 1, Status::Unknown, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { status: Status::Unknown, .. }]));
    hand.executor_says(&complete((sequence, 1), 3, Status::Failed, false, b"first"));
    hand.executor_says(&complete((sequence, 1), 3, Status::Failed, false, b"first"));
    assert_eq!(hand.events(), []);
    let [(second, tasks)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(tasks[0].attempt, 3, "attempts that the switch counted are not counted back");
    hand.executor_says(&complete((*second, 0), 4, Status::Failed, false, b"last"));
    let expected = Outcome::Inline(b"last".to_vec());
    assert!(
        matches!(&hand.events()[..], [Event::Completed { status: Status::Failed, attempt: 4, result, .. }] if *result == expected)
    );
}

#[test]
fn abandoned_attempts_are_repeated_while_some_are_left() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&[Task { attempts: 2, ..task() }]);
    hand.executor_says(&complete((first, 0), 1, Status::Abandoned, false, b""));
    let [(second, _)] = hand.submits()[..] else { panic!("one SUBMIT") };
    hand.executor_says(&complete((first, 0), 1, Status::Abandoned, false, b""));
    assert_eq!(hand.events(), [], "a repeated completion is not the second attempt's");
    hand.executor_says(&complete((second, 0), 2, Status::Abandoned, false, b""));
    assert_eq!(hand.events(), [Event::Lost { key: keys[0], why: LostWhy::Abandoned }]);
}

#[test]
fn results_by_reference_are_acknowledged_when_they_are_here() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.open(&[task()]);
    let name = (sequence, 0);
    for _ in 0..2 {
        hand.executor_says(&complete(name, 1, Status::Ok, true, blob().as_bytes()));
        assert_eq!(hand.sent(), [ack(name, FETCHING)]);
    }
    let events = hand.events();
    let expected = Outcome::ByReference { executor: executor(), blob: blob() };
    assert!(matches!(&events[..], [Event::Completed { result, .. }] if *result == expected));
    hand.client.handle(hand.now, address("10.0.1.2:9"), &complete(name, 2, Status::Ok, false, b"second"));
    assert_eq!((hand.events(), hand.client.open()), (vec![], 1), "the first completion wins");
    hand.sent();
    hand.client.fetched(hand.now, keys[0], true);
    hand.client.fetched(hand.now, keys[0], true);
    assert_eq!(hand.sent(), [ack(name, DONE)]);
    assert_eq!((hand.events(), hand.client.open()), (vec![], 0));
    assert_eq!(hand.client.counters().completed, 1);
}

#[test]
fn a_fetch_that_fails_ends_the_attempt() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&[Task { attempts: 2, timeout: Some(200 * MS), ..task() }]);
    hand.executor_says(&complete((first, 0), 1, Status::Ok, true, blob().as_bytes()));
    hand.events();
    hand.pass_with_open_tasks(500 * MS);
    assert_eq!(hand.events(), [], "a fetch is not timed");
    hand.client.fetched(hand.now, keys[0], false);
    let sent = hand.sent();
    let [Sent::Submit { sequence: second, .. }, Sent::CompleteAck { records, .. }] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(records[..], [(first, 0, DONE)], "the executor need not keep it");
    hand.executor_says(&complete((*second, 0), 2, Status::Ok, true, blob().as_bytes()));
    hand.events();
    hand.client.fetched(hand.now, keys[0], false);
    assert_eq!(hand.events(), [Event::Lost { key: keys[0], why: LostWhy::FetchFailed }]);
    assert_eq!(hand.client.open(), 0);
}
