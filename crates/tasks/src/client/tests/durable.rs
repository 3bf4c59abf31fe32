//! A durable client: what it delays until its driver has saved, and what its next process does.

use super::super::{LostWhy, Outcome, Resumption, Saved, SavedCounters, SavedState};
use super::*;
use crate::place::Preference;
use std::collections::BTreeMap;

#[derive(Default)]
struct Disk {
    tasks: BTreeMap<u64, Saved>,
    saved_counters: Option<SavedCounters>,
    switch: Option<(SocketAddr, u32)>,
}

impl Disk {
    /// Saves what the client requests; returns the other events.
    fn save(&mut self, hand: &mut Hand) -> Vec<Event> {
        let mut others = Vec::new();
        for event in hand.events() {
            match event {
                Event::Save(tasks) => self.tasks.extend(tasks.into_iter().map(|saved| (saved.key.0, saved))),
                Event::SwitchChanged { switch, epoch, .. } => self.switch = Some((switch, epoch)),
                other => others.push(other),
            }
        }
        self.saved_counters = Some(hand.client.saved_counters());
        hand.client.saved();
        others
    }

    fn next(&self, hand: &Hand) -> Hand {
        let mut config = ClientConfig::new(IDENTITY, 4, vec![switch_a(), switch_b()]);
        config.secret = SECRET;
        let tasks = self.tasks.values().cloned().collect();
        let left = Resumption { saved_counters: self.saved_counters.unwrap(), switch: self.switch, tasks };
        let now = hand.now + 10_000 * MS;
        Hand { client: Client::resume(config, now, left).unwrap(), now }
    }
}

fn durable() -> (Hand, Disk) {
    let mut hand = Hand::new(|config| config.durable = true);
    let [Sent::Probe { sequence, .. }] = hand.sent()[..] else { panic!("the client begins with a probe") };
    hand.switch_says(&probe_ack(EPOCH, sequence, 0, 0));
    let mut disk = Disk::default();
    disk.save(&mut hand);
    (hand, disk)
}

fn send(hand: &mut Hand, disk: &mut Disk, tasks: &[Task]) -> Sent {
    hand.client.submit(hand.now, 1, tasks).unwrap();
    assert_eq!(hand.sent(), [], "nothing leaves before it is saved");
    disk.save(hand);
    let mut sent = hand.sent();
    assert_eq!(sent.len(), 1);
    sent.remove(0)
}

/// Answers the first PROBE of a process; `open` is the bitmap of the switch's tasks.
fn greet(hand: &mut Hand, epoch: u32, open: u32) {
    for sent in hand.sent() {
        let Sent::Probe { sequence, names, .. } = sent else { panic!("{sent:?} before the switch has said its epoch") };
        hand.switch_says(&probe_ack(epoch, sequence, names.len(), open));
    }
}

fn pass(hand: &mut Hand, epoch: u32, open: u32, time: Nanos) -> Vec<Sent> {
    let end = hand.now + time;
    let mut all = Vec::new();
    while hand.now < end {
        for sent in hand.pass(MS) {
            if let Sent::Probe { sequence, names, .. } = &sent {
                hand.switch_says(&probe_ack(epoch, *sequence, names.len(), open));
            }
            all.push(sent);
        }
    }
    all
}

#[test]
fn a_submit_leaves_once_its_names_are_saved_and_then_counts_as_sent_once() {
    let (mut hand, mut disk) = durable();
    hand.client.submit(hand.now, 1, &[task()]).unwrap();
    assert_eq!(hand.sent(), []);
    assert!(pass(&mut hand, EPOCH, u32::MAX, 3_000 * MS).iter().all(|sent| matches!(sent, Sent::Probe { .. })));
    disk.save(&mut hand);
    let [Sent::Submit { sequence, .. }] = hand.sent()[..] else { panic!("the SUBMIT") };
    assert_eq!(hand.client.counters().retransmitted, 0);
    let saved = &disk.tasks[&0];
    assert_eq!((saved.names[0].submission, saved.names[0].index, saved.names[0].of), (sequence, 0, 1));
    assert_eq!(saved.state, SavedState::Sent);
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
    disk.save(&mut hand);
    assert_eq!(disk.tasks[&0].state, SavedState::Open);
}

#[test]
fn a_result_is_done_for_its_executor_once_it_is_saved() {
    let (mut hand, mut disk) = durable();
    let Sent::Submit { sequence, .. } = send(&mut hand, &mut disk, &[task()]) else { panic!() };
    let states = |hand: &mut Hand| match &hand.sent()[..] {
        [Sent::CompleteAck { records, .. }] => records.iter().map(|record| record.2).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    for _ in 0..2 {
        hand.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b"hello"));
        assert_eq!(hand.sent(), [], "an executor takes any answer to a result in the packet as the last one");
    }
    let [Event::Completed { key, result: Outcome::Inline(value), .. }] = &hand.events()[..] else { panic!("once") };
    assert_eq!(value, b"hello");
    hand.client.fetched(hand.now, *key, true);
    assert_eq!(states(&mut hand), [midflight_wire::tasks::AckState::Done as u8]);
    assert_eq!(hand.client.open(), 0);
}

#[test]
fn t8_t19_the_next_process_sends_an_unanswered_submit_again_as_it_was() {
    let (mut hand, mut disk) = durable();
    let prefer = Some(Preference { place: 7, patience_ms: 50 });
    let first = send(&mut hand, &mut disk, &vec![Task { prefer, ..task() }; 3]);
    let Sent::Submit { sequence, prefers: Some((7, 50)), .. } = first else { panic!("{first:?}") };
    let mut next = disk.next(&hand);
    greet(&mut next, EPOCH, 0);
    assert_eq!(next.sent(), [first]);
    next.client.submit(next.now, 1, &[task()]).unwrap();
    assert_eq!(next.sent(), [], "new work waits for the answer");
    next.switch_says(&submit_ack(EPOCH, sequence, 3, 7, Reason::None));
    assert_eq!(next.sent(), [], "not saved yet");
    disk.save(&mut next);
    let [Sent::Submit { sequence: new, tasks, .. }] = &next.sent()[..] else { panic!("the new task") };
    assert_eq!(tasks[0].tid.get(), 3, "keys go on");
    assert!(new.wrapping_sub(sequence) > 1 << 19, "past all that the first process may have used");
}

#[test]
fn what_the_switch_still_has_goes_on_and_its_completion_counts_once() {
    let (mut hand, mut disk) = durable();
    let Sent::Submit { sequence, .. } = send(&mut hand, &mut disk, &[task()]) else { panic!() };
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
    disk.save(&mut hand);
    let mut next = disk.next(&hand);
    greet(&mut next, EPOCH, u32::MAX);
    let sent = pass(&mut next, EPOCH, u32::MAX, 3_000 * MS);
    assert!(!sent.iter().any(|sent| matches!(sent, Sent::Submit { .. })), "what runs is not run twice");
    next.executor_says(&complete((sequence, 0), 1, Status::Ok, false, b"late"));
    assert!(next.events().iter().any(|event| matches!(event, Event::Completed { key: TaskKey(0), .. })));
}

#[test]
fn what_the_switch_no_longer_has_may_have_run_and_counts_as_failed() {
    for (retry_failed, epoch) in [(false, EPOCH), (true, EPOCH), (false, EPOCH + 1), (true, EPOCH + 1)] {
        let (mut hand, mut disk) = durable();
        let one = Task { attempts: 2, retry_failed, ..task() };
        let Sent::Submit { sequence, .. } = send(&mut hand, &mut disk, &[one]) else { panic!() };
        hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
        disk.save(&mut hand);
        let mut next = disk.next(&hand);
        greet(&mut next, epoch, 0);
        let mut sent = pass(&mut next, epoch, 0, 2_000 * MS);
        let events = disk.save(&mut next);
        sent.extend(next.sent());
        let lost = events.iter().any(|event| matches!(event, Event::Lost { why: LostWhy::Forgotten, .. }));
        let submitted = sent.iter().any(|sent| matches!(sent, Sent::Submit { .. }));
        assert_eq!((lost, submitted), (!retry_failed, retry_failed), "epoch {epoch}");
    }
}

#[test]
fn t9_an_unanswered_submit_does_not_go_to_another_switch_than_the_one_that_may_have_run_it() {
    let (mut hand, mut disk) = durable();
    send(&mut hand, &mut disk, &[Task { attempts: 1, ..task() }]);
    let mut next = disk.next(&hand);
    greet(&mut next, EPOCH + 1, 0);
    let sent = pass(&mut next, EPOCH + 1, 0, 2_000 * MS);
    assert!(!sent.iter().any(|sent| matches!(sent, Sent::Submit { .. })), "{sent:?}");
    assert!(next.events().iter().any(|event| matches!(event, Event::Lost { why: LostWhy::Forgotten, .. })));
}

#[test]
fn a_submit_of_which_a_task_has_ended_was_accepted_and_is_asked_for() {
    let (mut hand, mut disk) = durable();
    let Sent::Submit { sequence, .. } = send(&mut hand, &mut disk, &vec![task(); 2]) else { panic!() };
    hand.executor_says(&complete((sequence, 1), 1, Status::Ok, false, b""));
    disk.save(&mut hand);
    disk.tasks.remove(&1);
    let mut next = disk.next(&hand);
    greet(&mut next, EPOCH, u32::MAX);
    let sent = pass(&mut next, EPOCH, u32::MAX, 500 * MS);
    let asks = |sent: &Sent| matches!(sent, Sent::Probe { names, .. } if *names == [(sequence, 0)]);
    assert!(sent.iter().any(asks), "{sent:?}");
    assert!(!sent.iter().any(|sent| matches!(sent, Sent::Submit { .. })));
}

#[test]
fn what_was_not_taken_is_submitted_by_the_next_process() {
    let (mut hand, mut disk) = durable();
    let Sent::Submit { sequence, .. } = send(&mut hand, &mut disk, &[task()]) else { panic!() };
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 0, Reason::Full));
    disk.save(&mut hand);
    assert_eq!(disk.tasks[&0].state, SavedState::Waiting);
    let mut next = disk.next(&hand);
    greet(&mut next, EPOCH, 0);
    next.sent();
    disk.save(&mut next);
    assert_eq!(next.submits().len(), 1);
}

#[test]
fn an_abandoned_attempt_of_the_first_process_did_not_run_and_is_repeated_once_that_is_saved() {
    let (mut hand, mut disk) = durable();
    let Sent::Submit { sequence, .. } = send(&mut hand, &mut disk, &[Task { attempts: 1, ..task() }]) else { panic!() };
    hand.switch_says(&submit_ack(EPOCH, sequence, 1, 1, Reason::None));
    disk.save(&mut hand);
    let mut next = disk.next(&hand);
    greet(&mut next, EPOCH, u32::MAX);
    next.sent();
    let abandoned = complete((sequence, 0), 1, Status::Abandoned, false, b"");
    next.executor_says(&abandoned);
    assert_eq!(next.sent(), [], "its executor repeats it until it is saved that another attempt follows");
    disk.save(&mut next);
    assert_ne!(disk.tasks[&0].state, SavedState::Open);
    next.executor_says(&abandoned);
    let sent = next.sent();
    assert!(sent.iter().any(|sent| matches!(sent, Sent::Submit { .. })), "{sent:?}");
    assert!(sent.iter().any(|sent| matches!(sent, Sent::CompleteAck { .. })), "{sent:?}");
}
