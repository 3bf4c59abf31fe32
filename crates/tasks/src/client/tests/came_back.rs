//! A client was suspended or used another switch, and returns to a switch that requires cookies.

use super::switch::{FakeSwitch, Queued};
use super::*;

/// A client and a switch without loss between them, and executors that finish at once.
struct Pair {
    hand: Hand,
    switch: FakeSwitch,
    /// Number of the switch's responses, by operation.
    answers: [usize; 19],
}

impl Pair {
    fn new() -> Self {
        let hand = Hand::new(|config| config.switches.truncate(1));
        Self { hand, switch: strict(7), answers: [0; 19] }
    }

    /// Lets time pass while executors take and complete `executors` tasks per millisecond.
    fn run(&mut self, time: Nanos, executors: usize) {
        let end = self.hand.now + time;
        while self.hand.now < end {
            let mut sent = self.hand.sent();
            sent.extend(self.hand.pass(MS));
            for packet in sent {
                self.deliver(&packet);
            }
            for Queued { name, token, attempt } in self.switch.assign(executors.min(self.switch.queued())) {
                self.switch.done(name);
                self.hand.executor_says(&complete_with(Token::new(token), name, attempt, Status::Ok, false, b""));
            }
        }
    }

    fn deliver(&mut self, packet: &Sent) {
        if matches!(packet, Sent::CompleteAck { .. }) {
            return;
        }
        if let Some(answer) = self.switch.hear(self.hand.now, address("10.0.9.9:99"), packet) {
            self.answers[usize::from(answer[3])] += 1;
            self.hand.switch_says(&answer);
        }
    }

    fn cookies(&self) -> usize {
        self.answers[Operation::Cookie as usize]
    }
}

fn strict(epoch: u32) -> FakeSwitch {
    let mut switch = FakeSwitch::new(epoch);
    (switch.cookies, switch.client_idle, switch.capacity) = (true, 60_000 * MS, 10_000);
    switch
}

#[test]
fn t14_t16_a_client_that_stood_still_for_minutes_gets_all_its_tasks_done() {
    let mut pair = Pair::new();
    let tasks = 5_000;
    pair.run(10 * MS, 0);
    pair.hand.client.submit(pair.hand.now, 1, &vec![task(); tasks]).unwrap();
    pair.run(500 * MS, 1);
    let before = pair.hand.client.open();
    assert!(before < tasks && pair.switch.queued() == before, "{before} are open and queued");
    // The last packets before it stops are lost.
    pair.hand.client.submit(pair.hand.now, 1, &vec![task(); 64]).unwrap();
    assert_eq!(pair.hand.submits().len(), 2);
    pair.hand.now += 300_000 * MS;
    pair.hand.client.handle_timeout(pair.hand.now);
    let cookies = pair.cookies();
    pair.run(2 * MS, 0);
    assert_eq!(pair.switch.queued(), 64, "those whose SUBMITs it sends again, under their old sequences");
    assert!(pair.cookies() > cookies, "for a client that it has forgotten");
    pair.run(3_000 * MS, 10);
    assert_eq!(pair.hand.client.open(), 0);
    let counters = pair.hand.client.counters();
    assert_eq!((counters.completed, counters.gone), (tasks as u64 + 64, before as u64));
    assert_eq!((counters.lost, counters.resubmitted, counters.too_old), (0, 0, 0));
}

#[test]
fn t13_t16_a_client_that_was_elsewhere_is_asked_for_a_cookie_and_taken() {
    let mut pair = Pair::new();
    pair.run(10 * MS, 0);
    pair.hand.client.submit(pair.hand.now, 1, &[task()]).unwrap();
    pair.run(50 * MS, 1);
    let mut elsewhere = strict(8);
    std::mem::swap(&mut pair.switch, &mut elsewhere);
    for _ in 0..70 {
        pair.hand.client.submit(pair.hand.now, 1, &[task()]).unwrap();
        pair.run(5 * MS, 1);
    }
    assert_eq!((pair.hand.client.open(), pair.hand.client.switch().1), (0, 8));
    std::mem::swap(&mut pair.switch, &mut elsewhere);
    pair.hand.client.submit(pair.hand.now, 1, &[task()]).unwrap();
    let [submit] = &pair.hand.sent()[..] else { panic!("one SUBMIT") };
    let cookies = pair.cookies();
    pair.deliver(submit);
    assert_eq!(
        (pair.cookies(), pair.switch.queued()),
        (cookies + 1, 0),
        "a sequence so far ahead may be an attacker's"
    );
    let [again] = &pair.hand.sent()[..] else { panic!("the SUBMIT again, at once") };
    let sequence = |sent: &Sent| if let Sent::Submit { sequence, .. } = sent { *sequence } else { panic!("{sent:?}") };
    assert_eq!(sequence(submit), sequence(again));
    pair.deliver(again);
    assert_eq!(pair.switch.queued(), 1);
    pair.run(300 * MS, 0);
    assert_eq!(pair.hand.client.switch().1, 7);
    pair.run(10 * MS, 2);
    assert_eq!(pair.hand.client.open(), 0);
}
