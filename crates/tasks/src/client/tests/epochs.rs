//! Switches that die, fall silent, return, or lose their state.

use super::*;

const NEXT: u32 = EPOCH + 1;

#[test]
fn t9_tasks_of_a_dead_switch_are_submitted_again_and_what_is_in_flight_goes_on() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&vec![task(); 3]);
    hand.executor_says(&complete((first, 1), 1, Status::Ok, false, b""));
    let (in_flight, more) = hand.submit(&vec![task(); 2]);
    hand.events();
    hand.switch_says(&submit_ack(NEXT, in_flight, 2, 0b11, Reason::None));
    let events = hand.events();
    assert_eq!(events, [Event::SwitchChanged { switch: switch_a(), epoch: NEXT, resubmitted: 2 }]);
    let submits = hand.submits();
    let [(again, tasks)] = &submits[..] else { panic!("{submits:?}") };
    let attempts: Vec<_> = tasks.iter().map(|t| (t.tid.get(), t.attempt)).collect();
    assert_eq!(attempts, [(0, 1), (2, 1)], "only what has not completed, as a further attempt");

    // Late responses of the dead switch change nothing; completions under old names count.
    hand.switch_says(&submit_ack(EPOCH, *again, 2, 0b11, Reason::None));
    assert_eq!(hand.client.counters().old_epoch, 1);
    hand.executor_says(&complete((first, 0), 1, Status::Ok, false, b""));
    hand.executor_says(&complete((*again, 0), 2, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, attempt: 1, .. }] if key == keys[0]));
    let sent = hand.pass(150 * MS);
    assert!(sent.iter().any(|s| matches!(s, Sent::Submit { sequence, .. } if sequence == again)), "not answered yet");
    hand.executor_says(&complete((in_flight, 0), 1, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, .. }] if key == more[0]));
}

#[test]
fn t9_a_new_epoch_is_noticed_by_a_probe_within_100_ms() {
    let mut hand = Hand::settled();
    hand.open(&[task()]);
    let sent = hand.pass(100 * MS);
    let [Sent::Probe { sequence, names, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(names.len(), 1);
    hand.switch_says(&probe_ack(NEXT, *sequence, 1, 0));
    assert!(matches!(hand.events()[..], [Event::SwitchChanged { epoch: NEXT, resubmitted: 1, .. }]));
    assert_eq!(hand.submits().len(), 1);
}

#[test]
fn t9_a_silent_switch_is_left_for_the_next_which_gets_all_tasks() {
    let mut hand = Hand::settled();
    let (_, _) = hand.open(&vec![task(); 2]);
    let (in_flight, _) = hand.submit(&[task()]);
    let sent = hand.pass(1_050 * MS);
    let to_b = |s: &Sent| match s {
        Sent::Submit { to, .. } | Sent::Probe { to, .. } => *to == switch_b(),
        _ => false,
    };
    let [Sent::Submit { sequence, .. }, Sent::Probe { sequence: probe, .. }] =
        &sent.iter().filter(|s| to_b(s)).collect::<Vec<_>>()[..]
    else {
        panic!("{sent:?}")
    };
    assert_eq!(*sequence, in_flight);
    assert_eq!(hand.client.counters().failovers, 1);
    // The first switch answers, too late.
    hand.switch_says(&submit_ack(EPOCH, in_flight, 1, 1, Reason::None));
    assert_eq!(hand.client.counters().foreign_address, 1);
    hand.client.handle(hand.now, switch_b(), &probe_ack(900, *probe, 0, 0));
    let events = hand.events();
    assert_eq!(events[0], Event::SwitchChanged { switch: switch_b(), epoch: 900, resubmitted: 2 });
    assert_eq!(hand.client.switch(), (switch_b(), 900));
    assert_eq!(hand.sent().iter().filter(|s| to_b(s)).count(), 2, "all tasks are with the new one");
}

/// Otherwise clients that failed over and clients that did not would stay at different switches.
#[test]
fn t9_a_client_returns_to_a_better_switch_when_it_answers_again() {
    let mut hand = Hand::settled();
    hand.open(&[task()]);
    let sent = hand.pass(1_100 * MS);
    let to_b = |sent: &Sent| matches!(sent, Sent::Probe { to, .. } if *to == switch_b());
    let Some(Sent::Probe { sequence, .. }) = sent.iter().find(|sent| to_b(sent)) else { panic!("{sent:?}") };
    hand.client.handle(hand.now, switch_b(), &probe_ack(NEXT, *sequence, 0, 0));
    let [(submission, _)] = hand.submits()[..] else { panic!("one SUBMIT to the next switch") };
    hand.client.handle(hand.now, switch_b(), &submit_ack(NEXT, submission, 1, 1, Reason::None));
    hand.events();
    let mut probed = None;
    for _ in 0..20 {
        for sent in hand.pass(100 * MS) {
            match sent {
                Sent::Probe { to, sequence, names, .. } if to == switch_b() => {
                    hand.client.handle(hand.now, to, &probe_ack(NEXT, sequence, names.len(), u32::MAX));
                }
                Sent::Probe { to, sequence, names, .. } if to == switch_a() => probed = Some((sequence, names)),
                _ => {}
            }
        }
    }
    let (sequence, names) = probed.expect("the first switch is probed");
    assert!(names.is_empty(), "about nothing");
    hand.switch_says(&probe_ack(EPOCH, sequence, 0, 0));
    let sent = hand.pass(100 * MS);
    let Some(Sent::Probe { to, sequence, .. }) = sent.first() else { panic!("{sent:?}") };
    assert_eq!(*to, switch_a());
    hand.switch_says(&probe_ack(EPOCH, *sequence, 0, 0));
    let to_a = |sent: &Sent| matches!(sent, Sent::Submit { to, .. } if *to == switch_a());
    assert!(hand.sent().iter().any(to_a), "its tasks go there");
    assert_eq!(hand.client.counters().failovers, 2);
}

/// VRRP moves an address between two live switches, so another switch answers there after each move.
#[test]
fn t9_an_address_that_moves_to_another_switch_and_back_keeps_no_client_out() {
    let mut hand = Hand::new(|config| config.switches.truncate(1));
    let [Sent::Probe { sequence, .. }] = hand.sent()[..] else { panic!("a probe") };
    hand.switch_says(&probe_ack(EPOCH, sequence, 0, 0));
    let (mut submission, keys) = hand.open(&[task()]);
    hand.events();
    for round in 0..20 {
        let present = if round % 2 == 0 { NEXT } else { EPOCH };
        let sent = hand.pass(100 * MS);
        let Some(Sent::Probe { sequence, .. }) = sent.last() else { panic!("{sent:?}") };
        hand.switch_says(&probe_ack(present, *sequence, 1, 0));
        let events = hand.events();
        assert!(
            matches!(events[..], [Event::SwitchChanged { epoch, resubmitted: 1, .. }] if epoch == present),
            "within a probe's interval: {events:?}"
        );
        let [(again, _)] = hand.submits()[..] else { panic!("one SUBMIT") };
        // A late response of the other switch to a packet that both received has no effect.
        let other = EPOCH + NEXT - present;
        hand.switch_says(&submit_ack(other, again, 1, 1, Reason::None));
        assert_eq!((hand.events(), hand.client.counters().old_epoch), (vec![], round + 1));
        hand.switch_says(&submit_ack(present, again, 1, 1, Reason::None));
        submission = again;
    }
    hand.executor_says(&complete((submission, 0), 1, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, .. }] if key == keys[0]));
}

#[test]
fn t9_a_lone_switch_that_was_silent_and_lives_keeps_its_tasks() {
    let mut hand = Hand::new(|config| config.switches.truncate(1));
    let [Sent::Probe { sequence, .. }] = hand.sent()[..] else { panic!("a probe") };
    hand.switch_says(&probe_ack(EPOCH, sequence, 0, 0));
    hand.open(&[task()]);
    hand.events();
    let sent = hand.pass(5_000 * MS);
    let Some(Sent::Probe { sequence, names, .. }) = sent.last() else { panic!("{sent:?}") };
    hand.switch_says(&probe_ack(EPOCH, *sequence, names.len(), 1));
    assert_eq!((hand.events(), hand.submits()), (vec![], vec![]));
    assert_eq!(hand.client.counters().failovers, 0);
}

#[test]
fn a_task_that_the_switch_lost_sight_of_is_submitted_again_after_500_ms() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&vec![task(); 2]);
    let sent = hand.pass(100 * MS);
    let [Sent::Probe { sequence, names, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(names[..], [(first, 0), (first, 1)]);
    hand.switch_says(&probe_ack(EPOCH, *sequence, 2, 0));
    hand.pass_with_open_tasks(300 * MS);
    hand.executor_says(&complete((first, 0), 1, Status::Ok, false, b""));
    assert!(
        matches!(hand.events()[..], [Event::SeenAs(_)] | [Event::Completed { .. }]),
        "its completion was under way"
    );
    assert!(!hand.pass_with_open_tasks(198 * MS).iter().any(|s| matches!(s, Sent::Submit { .. })));
    let sent = hand.pass_with_open_tasks(3 * MS);
    let Some(Sent::Submit { tasks, .. }) = sent.first() else { panic!("{sent:?}") };
    assert_eq!((tasks[0].tid.get(), tasks[0].attempt), (1, 1));
    assert_eq!(hand.client.counters().gone, 1);
    hand.executor_says(&complete((first, 1), 1, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, .. }] if key == keys[1]));
}

#[test]
fn t12_probes_go_round_32_tasks_at_a_time_the_oldest_first() {
    let mut hand = Hand::settled();
    let mut order = Vec::new();
    for _ in 0..3 {
        let (sequence, _) = hand.open(&vec![task(); 32]);
        order.extend((0..32).map(|index| (sequence, index)));
    }
    let asked = |sent: Vec<Sent>| -> Vec<(u32, u8)> {
        sent.into_iter()
            .flat_map(|s| match s {
                Sent::Probe { names, .. } => names,
                _ => vec![],
            })
            .collect()
    };
    assert_eq!(asked(hand.pass_with_open_tasks(100 * MS)), order[..32]);
    let all = asked(hand.pass_with_open_tasks(302 * MS));
    assert_eq!(all, [&order[32..], &order[..32]].concat());
}

#[test]
fn t8_a_task_answers_to_its_last_four_names() {
    let mut hand = Hand::settled();
    let (first, keys) = hand.open(&[task()]);
    let mut names = vec![first];
    for epoch in NEXT..NEXT + 4 {
        let sent = hand.pass(100 * MS);
        let Some(Sent::Probe { sequence, .. }) = sent.last() else { panic!("{sent:?}") };
        hand.switch_says(&probe_ack(epoch, *sequence, 1, 0));
        let [(sequence, _)] = hand.submits()[..] else { panic!("one SUBMIT") };
        hand.switch_says(&submit_ack(epoch, sequence, 1, 1, Reason::None));
        names.push(sequence);
    }
    hand.events();
    hand.executor_says(&complete((names[0], 0), 1, Status::Ok, false, b""));
    assert_eq!(hand.events(), [], "the fifth last is forgotten");
    hand.executor_says(&complete((names[1], 0), 2, Status::Ok, false, b""));
    assert!(matches!(hand.events()[..], [Event::Completed { key, .. }] if key == keys[0]));
}
