//! Which responses to probes count.

use super::*;

pub(super) fn probes(sent: &[Sent]) -> Vec<(SocketAddr, u32)> {
    let of_probe = |sent: &Sent| match sent {
        Sent::Probe { to, sequence, .. } => Some((*to, *sequence)),
        _ => None,
    };
    sent.iter().filter_map(of_probe).collect()
}

/// Otherwise a copy of a PROBE could pass for the next one and keep a dead client's record alive.
#[test]
fn t13_each_probe_has_a_sequence_of_its_own_whichever_switch_it_goes_to() {
    let mut hand = Hand::new(|_| {});
    let mut sent = probes(&hand.sent());
    sent.extend(probes(&hand.pass(1_100 * MS)));
    let Some(&(to, sequence)) = sent.last() else { panic!("probes") };
    assert_eq!(to, switch_b(), "the first one is silent");
    hand.client.handle(hand.now, switch_b(), &probe_ack(EPOCH, sequence, 0, 0));
    hand.submit(&[task()]);
    sent.extend(probes(&hand.pass(2_500 * MS)));
    let probed = sent.iter().skip_while(|(to, _)| *to == switch_a()).filter(|(to, _)| *to == switch_a()).count();
    assert!(probed > 0, "the first one is probed: {sent:?}");
    let sequences: Vec<u32> = sent.iter().map(|(_, sequence)| *sequence).collect();
    assert_eq!(sequences, (1..=sent.len() as u32).collect::<Vec<_>>());
}

#[test]
fn t9_an_answer_to_any_repeat_of_the_question_at_hand_counts_and_to_no_other() {
    let mut hand = Hand::settled();
    let (submission, _) = hand.open(&vec![task(); 2]);
    let sent = hand.pass(350 * MS);
    let [(_, first), (_, second), (_, third)] = probes(&sent)[..] else { panic!("{sent:?}") };
    let asks =
        |sent: &&Sent| matches!(sent, Sent::Probe { names, .. } if names[..] == [(submission, 0), (submission, 1)]);
    assert_eq!(sent.iter().filter(asks).count(), 3, "the same question");
    for other in [0, first - 1, third + 1] {
        hand.switch_says(&probe_ack(EPOCH, other, 2, 0));
    }
    assert_eq!(hand.client.counters().unexpected_answers, 3);
    hand.switch_says(&probe_ack(EPOCH, second, 2, 0b01));
    hand.switch_says(&probe_ack(EPOCH, third, 2, 0b00));
    assert_eq!(hand.client.counters().unexpected_answers, 4, "one answer is enough");
    let again: Vec<u32> = hand
        .pass_with_open_tasks(501 * MS)
        .iter()
        .filter_map(|sent| match sent {
            Sent::Submit { tasks, .. } => Some(tasks.iter().map(|task| task.tid.get())),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(again, [1], "the second task was gone, says the answer that counted");
}

/// Karn's rule does not apply, because a response identifies its repeat.
#[test]
fn an_answer_to_the_last_repeat_is_a_round_trip() {
    let mut hand = Hand::settled();
    hand.open(&[task()]);
    let before = hand.client.round_trip();
    let sent = hand.pass(250 * MS);
    let [_, (_, last)] = probes(&sent)[..] else { panic!("{sent:?}") };
    hand.switch_says(&probe_ack(EPOCH, last, 1, 1));
    assert_eq!(before, Some(0));
    assert_eq!(hand.client.round_trip(), Some(50 * MS / 8));
}

/// The client must not take 100 ms per 32 of thousands of dropped tasks.
#[test]
fn t16_a_switch_that_has_none_of_32_tasks_is_asked_for_the_next_at_once() {
    let mut hand = Hand::settled();
    for _ in 0..10 {
        hand.open(&vec![task(); 32]);
    }
    hand.pass(99 * MS);
    let mut asked = 0;
    for _ in 0..11 {
        for sent in hand.pass(MS) {
            let Sent::Probe { sequence, names, .. } = sent else { continue };
            asked += names.len();
            hand.switch_says(&probe_ack_of(Known::No, EPOCH, sequence, names.len(), 0));
        }
    }
    assert_eq!(asked, 320);
    let again = hand.pass(500 * MS).into_iter().map(|sent| match sent {
        Sent::Submit { tasks, .. } => tasks.len(),
        _ => 0,
    });
    assert!(again.sum::<usize>() >= 32 * 8, "a window of them");
}

#[test]
fn t13_a_better_switch_is_turned_to_only_for_an_answer_to_the_question_it_was_asked() {
    let (mut hand, probed, asked) = Hand::that_left_a();
    for late in [0, 1, asked, probed - 1, probed + 1] {
        hand.switch_says(&probe_ack(EPOCH, late, 0, 0));
    }
    assert_eq!(hand.client.switch().0, switch_b());
    hand.switch_says(&probe_ack(EPOCH, probed, 0, 0));
    assert_eq!(hand.client.switch().0, switch_a());
}

#[test]
fn silence_counts_from_the_last_answer_or_the_first_question_whichever_switch_is_asked() {
    let mut hand = Hand::settled();
    let settled = hand.now;
    hand.pass(10_000 * MS);
    assert_eq!((hand.client.answered(), hand.client.unanswered_since()), (Some(settled), None), "nobody was asked");
    let asked = hand.now;
    let (submission, _) = hand.submit(&[task()]);
    assert_eq!(hand.client.unanswered_since(), Some(asked));
    hand.pass(2_500 * MS);
    assert_eq!(hand.client.unanswered_since(), Some(asked), "also after another switch was asked");
    while hand.client.switch().0 != switch_a() {
        hand.pass(100 * MS);
    }
    hand.switch_says(&submit_ack(EPOCH, submission, 1, 1, Reason::None));
    let now = hand.now;
    assert_eq!((hand.client.answered(), hand.client.unanswered_since()), (Some(now), Some(now)));
}

#[test]
fn an_idle_client_can_be_made_to_ask_until_a_switch_answers() {
    let mut hand = Hand::settled();
    hand.pass(10_000 * MS);
    hand.client.ask_switch(hand.now);
    let sent = probes(&hand.pass(0));
    let [(_, sequence)] = sent[..] else { panic!("one question at once: {sent:?}") };
    assert_eq!(hand.client.unanswered_since(), Some(hand.now));
    hand.client.ask_switch(hand.now);
    assert_eq!(probes(&hand.pass(0)), [], "it is asked already");
    hand.switch_says(&probe_ack(EPOCH, sequence, 0, 0));
    assert_eq!((hand.client.answered(), hand.client.unanswered_since()), (Some(hand.now), None));
    assert_eq!(hand.client.poll_timeout(), None, "it is idle again");
}
