//! What the client submits, when, and when it repeats.

use super::super::{Argument, ConfigError, LostWhy, SubmitError};
use super::*;
use crate::place::Preference;
use midflight_wire::tasks::Submit;

#[test]
fn tasks_submitted_together_leave_together_by_job_in_order() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &vec![task(); 40]).unwrap();
    hand.client.submit(hand.now, 2, &vec![task(); 5]).unwrap();
    let packets: Vec<_> = hand
        .sent()
        .into_iter()
        .map(|sent| match sent {
            Sent::Submit { to, jid, tasks, .. } => (to, jid, tasks.iter().map(|t| t.tid.get()).collect::<Vec<_>>()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [(1, (0..32)), (1, (32..40)), (2, (40..45))];
    assert_eq!(packets, expected.map(|(jid, tids)| (switch_a(), jid, tids.collect())));
}

#[test]
fn t19_tasks_that_prefer_another_place_leave_in_another_packet() {
    let mut hand = Hand::settled();
    let prefer = |place, patience_ms| Task { prefer: Some(Preference { place, patience_ms }), ..task() };
    let tasks = [prefer(7, 50), prefer(7, 50), prefer(7, 20), task(), prefer(8, 50), prefer(7, 50)];
    hand.client.submit(hand.now, 1, &tasks).unwrap();
    let packets: Vec<_> = hand
        .sent()
        .into_iter()
        .map(|sent| match sent {
            Sent::Submit { prefers, tasks, .. } => (prefers, tasks.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(packets, [(Some((7, 50)), 2), (Some((7, 20)), 1), (None, 1), (Some((8, 50)), 1), (Some((7, 50)), 1)]);
}

#[test]
fn t8_an_unanswered_submit_is_sent_again_unchanged_until_it_is_answered() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap();
    let first = hand.sent();
    assert_eq!(first.len(), 1);
    let again: Vec<_> = hand.pass(700 * MS).into_iter().filter(|s| matches!(s, Sent::Submit { .. })).collect();
    assert!(again.len() > 3, "{again:?}");
    assert!(again.iter().all(|sent| *sent == first[0]));
    let Sent::Submit { sequence, .. } = first[0] else { panic!() };
    hand.switch_says(&submit_ack(EPOCH, sequence, 3, 7, Reason::None));
    hand.switch_says(&submit_ack(EPOCH, sequence, 3, 7, Reason::None));
    assert_eq!(hand.client.counters().unexpected_answers, 1, "a repeated answer is ignored");
    assert!(!hand.pass_with_open_tasks(3_000 * MS).iter().any(|s| matches!(s, Sent::Submit { .. })));
}

#[test]
fn t15_a_submit_that_gets_no_answer_while_the_switch_answers_others_is_named() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap();
    assert_eq!(hand.sent().len(), 1);
    hand.pass(900 * MS);
    let answers_from = hand.now;
    while hand.client.unanswered_length().is_none() {
        hand.pass_with_open_tasks(100 * MS);
        assert!(hand.now < answers_from + 15_000 * MS);
    }
    assert!(hand.now > answers_from + 8_000 * MS, "repeats before the switch answered anything do not count");
    assert_eq!(hand.client.unanswered_length(), Some(size_of::<Submit>() + 3 * size_of::<TaskInfo>()));
}

#[test]
fn t7_exactly_the_returned_tasks_are_submitted_again_after_a_wait_and_before_others() {
    let mut hand = Hand::settled();
    let (sequence, _) = hand.submit(&vec![task(); 8]);
    hand.switch_says(&submit_ack(EPOCH, sequence, 8, 0b0001_1111, Reason::Full));
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    assert_eq!(hand.sent(), [], "the switch is full");
    assert_eq!(hand.client.counters().full, 3);
    let sent = hand.pass(MS);
    let tids: Vec<Vec<u32>> = sent
        .iter()
        .map(|sent| match sent {
            Sent::Submit { sequence: new, tasks, .. } => {
                assert_ne!(*new, sequence);
                tasks.iter().map(|t| t.tid.get()).collect()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tids, [vec![5, 6, 7], vec![8]]);
}

#[test]
fn t7_t14_a_switch_without_room_for_the_client_or_its_share_is_asked_again_later_and_ever_later() {
    for reason in [Reason::ClientsFull, Reason::Share] {
        let mut hand = Hand::settled();
        let (mut sequence, _) = hand.submit(&[task()]);
        for wait in [1, 2, 4, 8, 16, 32, 64] {
            hand.switch_says(&submit_ack(EPOCH, sequence, 1, 0, reason));
            let (start, mut sent) = (hand.now, hand.sent());
            while sent.is_empty() {
                sent = hand.pass(MS / 4);
            }
            let waited = hand.now - start;
            assert!((wait * MS / 2..=wait * MS + MS / 4).contains(&waited), "{reason:?}: {waited} ns");
            let [Sent::Submit { sequence: again, .. }] = sent[..] else { panic!("{reason:?}: {sent:?}") };
            sequence = again;
        }
        let returned = (hand.client.counters().full, hand.client.counters().over_share);
        assert_eq!(returned, if reason == Reason::Share { (0, 7) } else { (7, 0) });
        assert_eq!(hand.client.open(), 1, "it waits");
    }
}

#[test]
fn t8_too_old_is_submitted_at_once_under_a_new_sequence() {
    let mut hand = Hand::settled();
    let (sequence, keys) = hand.submit(&[task()]);
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 0, Reason::TooOld));
    let [(new, _)] = hand.submits()[..] else { panic!("one SUBMIT") };
    assert_ne!(new, sequence);
    hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b"old"));
    assert!(
        matches!(&hand.events()[..], [Event::Completed { key, .. }] if *key == keys[0]),
        "a completion under the old name counts"
    );
}

/// An attacker used far later sequences in the client's name.
#[test]
fn t16_a_client_whose_sequences_are_all_too_old_gets_ahead_of_what_the_switch_has_seen() {
    for ahead in [64_u32, 1 << 20, (1 << 30) - 1, 1 << 30, (1 << 31) - 1] {
        let mut hand = Hand::settled();
        let keys = hand.client.submit(hand.now, 1, &vec![task(); 32 * 8]).unwrap();
        let mut submits = hand.submits();
        let highest = submits[0].0.wrapping_add(ahead);
        let mut packets = 0;
        while let Some((sequence, _)) = submits.pop() {
            packets += 1;
            assert!(packets < 40, "{ahead} ahead");
            if highest.wrapping_sub(sequence) as i32 >= 64 {
                hand.switch_says(&submit_ack(EPOCH, sequence, 32, 0, Reason::TooOld));
            } else {
                hand.switch_says(&submit_ack(EPOCH, sequence, 32, u32::MAX, Reason::None));
            }
            submits.extend(hand.submits());
        }
        assert_eq!(hand.client.counters().full, 0);
        hand.client.cancel(hand.now, &[TaskKey(keys.start)]);
        assert!(matches!(hand.sent()[..], [Sent::Cancel { .. }]), "{ahead} ahead: all are taken");
    }
}

#[test]
fn t16_a_cancel_that_is_too_old_is_sent_again_far_ahead() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&vec![task(); 2]);
    hand.client.cancel(hand.now, &keys[..1]);
    let [Sent::Cancel { sequence, .. }] = hand.sent()[..] else { panic!("a CANCEL") };
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    let [(in_flight, _)] = hand.submits()[..] else { panic!("a SUBMIT") };
    let mut too_old = cancel_ack(EPOCH, sequence, 0, &[]);
    too_old[36] = Reason::TooOld as u8;
    hand.switch_says(&too_old);
    assert_eq!(hand.sent(), [], "a sequence far ahead of one in flight would push it out of the window");
    assert!(hand.client.poll_timeout().is_some_and(|due| due > hand.now));
    hand.switch_says(&submit_ack(EPOCH, in_flight, 1, 1, Reason::None));
    let [Sent::Cancel { sequence: again, names, .. }] = &hand.sent()[..] else { panic!("a CANCEL") };
    assert!(again.wrapping_sub(sequence) > 1 << 29);
    assert_eq!(names[..], [(first, 0)]);
}

#[test]
fn t8_no_more_than_the_window_is_in_flight() {
    let mut hand = Hand::settled();
    hand.client.submit(hand.now, 1, &vec![task(); 32 * 100]).unwrap();
    let mut outstanding: Vec<u32> = hand.submits().into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(outstanding.len(), 8, "the first window");
    let oldest = outstanding[0];
    let mut most = 8;
    // The switch answers all but the oldest.
    while outstanding.len() > 1 {
        let sequence = outstanding.pop().unwrap();
        hand.switch_says(&submit_ack(EPOCH, sequence, 32, u32::MAX, Reason::None));
        let new: Vec<u32> = hand.submits().into_iter().map(|(sequence, _)| sequence).collect();
        assert!(new.iter().all(|sequence| sequence.wrapping_sub(oldest) < 48));
        outstanding.extend(new);
        most = most.max(outstanding.len());
    }
    assert!((9..=32).contains(&most), "{most} were in flight");
}

#[test]
fn attempts_that_take_too_long_are_cancelled_and_repeated_then_lost() {
    let mut hand = Hand::settled();
    let slow = Task { timeout: Some(50 * MS), attempts: 2, ..task() };
    let (first, keys) = hand.open(&[slow]);
    let sent = hand.pass_with_open_tasks(50 * MS);
    assert!(sent.iter().any(|s| matches!(s, Sent::Cancel { names, .. } if names[..] == [(first, 0)])), "{sent:?}");
    let [Sent::Submit { sequence: second, tasks, .. }] =
        &sent.iter().filter(|s| matches!(s, Sent::Submit { .. })).collect::<Vec<_>>()[..]
    else {
        panic!("{sent:?}")
    };
    assert_eq!(tasks[0].attempt, 1);
    // The second attempt times out before its SUBMIT is answered; the client cancels it afterwards.
    hand.pass_with_open_tasks(50 * MS);
    assert_eq!(hand.events(), [Event::Lost { key: keys[0], why: LostWhy::TimedOut }]);
    hand.switch_says(&submit_ack(EPOCH, *second, 1, 1, Reason::None));
    assert!(hand.sent().iter().any(|s| matches!(s, Sent::Cancel { names, .. } if names[..] == [(*second, 0)])));
    hand.executor_says(&complete((*second, 0), 2, Status::Ok, false, b""));
    assert_eq!(hand.events(), [], "a late completion is dropped");
    assert!(matches!(&hand.sent()[..], [Sent::CompleteAck { .. }]), "but acknowledged");
    assert_eq!(hand.client.open(), 0);
}

#[test]
fn a_result_of_an_attempt_that_timed_out_counts_while_the_task_is_open() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&[Task { timeout: Some(50 * MS), attempts: 9, retry_failed: true, ..task() }]);
    hand.pass_with_open_tasks(50 * MS);
    hand.executor_says(&complete((first, 0), 1, Status::Failed, false, b"late failure"));
    assert_eq!(hand.events(), [], "the second attempt is under way");
    hand.executor_says(&complete((first, 0), 1, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, attempt: 1, .. }] if key == keys[0]));
}

#[test]
fn more_than_max_open_tasks_are_refused_whole() {
    let mut hand = Hand::new(|config| config.max_open = 10);
    hand.client.submit(hand.now, 1, &vec![task(); 8]).unwrap();
    let refused = hand.client.submit(hand.now, 1, &vec![task(); 3]).unwrap_err();
    assert_eq!(refused, SubmitError::TooManyOpen { open: 8, asked: 3, max_open: 10 });
    assert_eq!(hand.client.open(), 8);
    assert_eq!(hand.client.submit(hand.now, 1, &vec![task(); 2]), Ok(8..10));
}

#[test]
fn t11_tasks_that_no_switch_would_take_are_refused() {
    let mut hand = Hand::settled();
    let mut submit = |bad: Task| hand.client.submit(hand.now, 1, &[task(), bad]).unwrap_err();
    assert_eq!(submit(Task { priority: 0, ..task() }), SubmitError::BadPriority { index: 1, priority: 0 });
    assert_eq!(submit(Task { priority: 9, ..task() }), SubmitError::BadPriority { index: 1, priority: 9 });
    let argument = Argument::Inline { bytes: [0; 16], length: 17 };
    assert_eq!(submit(Task { argument, ..task() }), SubmitError::ArgumentTooLong { index: 1, length: 17 });
    assert_eq!(hand.client.open(), 0);
}

#[test]
fn arguments_are_on_the_wire_what_they_were_given_as() {
    let mut hand = Hand::settled();
    let blob = midflight_wire::tasks::BlobRef { id: 9.into(), length: 100.into(), port: 80.into(), reserved: 0.into() };
    let arguments = [Argument::inline(b"abc").unwrap(), Argument::ByReference(blob), Argument::NONE];
    let tasks: Vec<Task> = arguments.iter().map(|argument| Task { argument: argument.clone(), ..task() }).collect();
    hand.client.submit(hand.now, 1, &tasks).unwrap();
    let [(_, infos)] = &hand.submits()[..] else { panic!("one SUBMIT") };
    assert_eq!(infos.iter().map(|info| Argument::of(info, None)).collect::<Vec<_>>(), arguments);
    assert_eq!(Argument::inline(&[0; 17]), None);
}

#[test]
fn t15_the_largest_packets_pass_every_path() {
    let mut hand = Hand::settled();
    let mut buffer = Vec::new();
    let mut longest = [0; 20];
    let keys = hand.client.submit(hand.now, 1, &vec![task(); 64]).unwrap();
    for _ in 0..200 {
        while hand.client.poll_transmit(hand.now, &mut buffer).is_some() {
            let kind = &mut longest[usize::from(buffer[3])];
            *kind = buffer.len().max(*kind);
            match parse(&buffer) {
                Ok(Packet::Submit(fixed, ..)) => {
                    hand.switch_says(&submit_ack(EPOCH, fixed.header.sequence.get(), 32, u32::MAX, Reason::None));
                }
                Ok(Packet::Probe(fixed, names)) => {
                    hand.switch_says(&probe_ack(EPOCH, fixed.header.sequence.get(), names.len(), u32::MAX));
                    hand.client.cancel(hand.now, &keys.clone().map(TaskKey).collect::<Vec<_>>());
                }
                _ => {}
            }
        }
        hand.now += MS;
        hand.client.handle_timeout(hand.now);
    }
    let longest = [Operation::Submit, Operation::Probe, Operation::Cancel].map(|kind| longest[kind as usize]);
    assert_eq!(longest, [952, 296, 296], "at most 1,232");
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let new = |change: fn(&mut ClientConfig)| {
        let mut config = ClientConfig::new(1, 1, vec![switch_a()]);
        change(&mut config);
        Client::new(config, 0).map(|_| ()).unwrap_err()
    };
    assert_eq!(new(|c| c.switches.clear()), ConfigError::NoSwitch);
    assert!(matches!(new(|c| c.switches.push(address("[::ffff:10.0.0.1]:1"))), ConfigError::RepeatedSwitch(_)));
    let text = new(|c| c.window_max = 33).to_string();
    assert_eq!(text, "`window_max` is 33: set it to 1 to 32");
}
