//! Which switch is asked, and in which epoch it lives.

use super::same_host_and_port;
use midflight_endpoint::Nanos;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Epochs of a switch that are remembered to have passed: their late answers say nothing of its successor.
const PAST_MAX: usize = 8;

/// One of the list.
pub(super) struct Switch {
    pub(super) address: SocketAddr,
    /// The last one that it gave us; 0 before the first.
    pub(super) cookie: u64,
    /// Its last known epoch; 0 before the first.
    epoch: u32,
    past: [u32; PAST_MAX],
}

/// A client that had to leave a better switch asks this often whether it answers again.
const LOOK_EVERY: Nanos = 1_000_000_000;

/// A better switch that was asked whether it answers, and the sequence of that PROBE.
#[derive(Clone, Copy)]
struct Look {
    switch: usize,
    sequence: u32,
}

/// What an answer's epoch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The one that holds our tasks.
    Present,
    /// A late answer of a switch that is gone; or it has returned.
    Past,
    /// Another switch, which holds none of our tasks.
    New,
}

/// What is sent again with another cookie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Again {
    Question,
    Flights,
}

/// The list of switches.
pub(super) struct Switches {
    list: Vec<Switch>,
    asked: usize,
    /// The switch and epoch that hold our tasks.
    holder: Option<(usize, u32)>,
    /// When the one that is asked was heard last, or began to be asked.
    pub(super) heard: Nanos,
    /// It keeps no record of tasks: it is not asked about any, and those that take too long are submitted again.
    pub(super) keeps_no_record: bool,
    /// Which of the list speak which other versions, as far as they have said.
    other_versions: BTreeSet<(usize, u8)>,
    /// From when on another cookie may cause all to be sent again.
    resend_from: [Nanos; 2],
    /// When a better one than the one that is asked is looked for, and which of them was looked for last.
    look: Nanos,
    looked_for: Option<Look>,
}

impl Switches {
    pub(super) fn new(addresses: &[SocketAddr], now: Nanos) -> Self {
        let list =
            addresses.iter().map(|&address| Switch { address, cookie: 0, epoch: 0, past: [0; PAST_MAX] }).collect();
        Self {
            list,
            asked: 0,
            holder: None,
            heard: now,
            keeps_no_record: false,
            other_versions: BTreeSet::new(),
            resend_from: [now; 2],
            look: now,
            looked_for: None,
        }
    }

    /// Where to send.
    pub(super) fn address(&self) -> SocketAddr {
        self.list[self.asked].address
    }

    pub(super) fn is_present(&self, from: SocketAddr) -> bool {
        same_host_and_port(self.address(), from)
    }

    /// Whether the switch that is asked is known to hold our tasks.
    pub(super) fn is_settled(&self) -> bool {
        self.holder.is_some_and(|(switch, _)| switch == self.asked)
    }

    /// The last known epoch of the switch that is asked; 0 before the first.
    pub(super) fn epoch(&self) -> u32 {
        self.list[self.asked].epoch
    }

    /// What the switch that is asked wants to see in our packets.
    pub(super) fn cookie(&self) -> u64 {
        self.list[self.asked].cookie
    }

    /// It wants to see this from now on. Whether it is another than before.
    pub(super) fn keep_cookie(&mut self, cookie: u64) -> bool {
        std::mem::replace(&mut self.list[self.asked].cookie, cookie) != cookie
    }

    /// Whether another cookie is reason enough to send all again: once in a retransmission timeout, so that a flood of cookies
    /// causes no larger one.
    pub(super) fn may_resend(&mut self, what: Again, now: Nanos, timeout: Nanos) -> bool {
        let from = &mut self.resend_from[what as usize];
        let may = now >= *from;
        if may {
            *from = now + timeout;
        }
        may
    }

    pub(super) fn judge(&self, epoch: u32) -> Judgement {
        if self.holder == Some((self.asked, epoch)) {
            Judgement::Present
        } else if self.list[self.asked].past.contains(&epoch) {
            Judgement::Past
        } else {
            Judgement::New
        }
    }

    /// From now on tasks are with the switch that is asked, in this epoch. Whether there was another before.
    pub(super) fn settle(&mut self, epoch: u32) -> bool {
        let switch = &mut self.list[self.asked];
        if switch.epoch != 0 && switch.epoch != epoch {
            // In the place of the one that returns, or of the oldest.
            let returns = switch.past.iter().position(|&past| past == epoch);
            let place = returns.unwrap_or(PAST_MAX - 1);
            switch.past[..=place].rotate_right(1);
            switch.past[0] = switch.epoch;
        }
        switch.epoch = epoch;
        self.keeps_no_record = false;
        self.holder.replace((self.asked, epoch)).is_some()
    }

    /// The switch is silent: ask the next one. It may be the same one, if it is alone; then what we held to be its
    /// past is forgotten, in case that a late answer has misled us. Whether it is another.
    pub(super) fn go_on(&mut self, now: Nanos) -> bool {
        self.turn_to((self.asked + 1) % self.list.len(), now);
        self.list.len() > 1
    }

    fn turn_to(&mut self, switch: usize, now: Nanos) {
        self.asked = switch;
        self.list[switch].past = [0; PAST_MAX];
        self.heard = now;
        self.resend_from = [now; 2];
        self.look = now + LOOK_EVERY;
        self.looked_for = None;
    }

    /// Somebody speaks this version, which is not ours: the switch of the list, if it is one that has not said so before.
    pub(super) fn speaks(&mut self, from: SocketAddr, version: u8) -> Option<SocketAddr> {
        let switch = self.list.iter().position(|switch| same_host_and_port(switch.address, from))?;
        self.other_versions.insert((switch, version)).then(|| self.list[switch].address)
    }

    /// When to look for a better switch, one that stands before this in the list: executors may be there, for all turn to
    /// the best that answers, and those who left it for another may otherwise never meet again.
    pub(super) fn look_due(&self) -> Option<Nanos> {
        (self.asked > 0).then_some(self.look)
    }

    /// The better switch to ask now, by a PROBE with the sequence that `count` gives; the next one is asked later.
    pub(super) fn look(&mut self, now: Nanos, count: impl FnOnce() -> u32) -> Option<(&Switch, u32)> {
        self.look_due().filter(|&due| due <= now)?;
        self.look = now + LOOK_EVERY;
        let switch = self.looked_for.map_or(0, |last| (last.switch + 1) % self.asked);
        let sequence = count();
        self.looked_for = Some(Look { switch, sequence });
        Some((&self.list[switch], sequence))
    }

    /// A better switch that was looked for answers the PROBE that asked it: it is asked from now on. Whether this was one.
    pub(super) fn found(&mut self, from: SocketAddr, sequence: u32, now: Nanos) -> bool {
        let is_it = |look: &Look| look.sequence == sequence && same_host_and_port(self.list[look.switch].address, from);
        let better = self.looked_for.filter(is_it);
        if let Some(look) = better {
            self.turn_to(look.switch, now);
        }
        better.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Switches {
        Switches::new(&["10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap()], 0)
    }

    #[test]
    fn t9_late_answers_of_a_past_epoch_are_told_from_a_new_one() {
        let mut s = two();
        assert_eq!(s.judge(5), Judgement::New);
        assert!(!s.settle(5));
        assert_eq!(s.judge(5), Judgement::Present);
        assert_eq!(s.judge(6), Judgement::New);
        assert!(s.settle(6));
        assert_eq!(s.judge(5), Judgement::Past);
    }

    #[test]
    fn t9_epochs_that_return_push_no_other_out_of_the_past() {
        let mut s = two();
        s.settle(4);
        for _ in 0..PAST_MAX {
            s.settle(5);
            s.settle(6);
        }
        assert_eq!(
            [4, 5, 6, 7].map(|epoch| s.judge(epoch)),
            [Judgement::Past, Judgement::Past, Judgement::Present, Judgement::New]
        );
    }

    #[test]
    fn t9_returning_to_the_holder_of_the_tasks_is_no_change() {
        let mut s = two();
        s.settle(5);
        assert!(s.go_on(1));
        assert!(!s.is_settled());
        assert_eq!(s.judge(5), Judgement::New, "an epoch is one switch's");
        assert!(s.go_on(2));
        assert_eq!(s.judge(5), Judgement::Present);
    }

    #[test]
    fn t9_a_switch_misjudged_as_past_is_found_again_after_silence() {
        let mut s = Switches::new(&["[::1]:1".parse().unwrap()], 0);
        s.settle(5);
        s.settle(4);
        assert_eq!(s.judge(5), Judgement::Past);
        assert!(!s.go_on(9));
        assert_eq!(s.judge(5), Judgement::New);
        assert_eq!(s.heard, 9);
    }

    #[test]
    fn t9_a_better_switch_is_looked_for_and_turned_to_when_it_answers() {
        let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        let mut s = two();
        s.settle(5);
        assert_eq!((s.look_due(), s.found(a, 1, 0)), (None, false), "it is the best");
        assert!(s.go_on(10));
        s.settle(7);
        assert!(!s.found(a, 1, 11), "nobody has asked it");
        assert!(s.look(11, || panic!("not yet")).is_none());
        assert_eq!(s.look_due(), Some(10 + LOOK_EVERY));
        assert_eq!(s.look(10 + LOOK_EVERY, || 9).map(|(switch, sequence)| (switch.address, sequence)), Some((a, 9)));
        assert!(!s.found(b, 9, 12 + LOOK_EVERY) && !s.found(a, 8, 12 + LOOK_EVERY));
        assert!(s.found(a, 9, 12 + LOOK_EVERY));
        assert_eq!((s.address(), s.is_settled()), (a, false));
        assert_eq!(s.judge(5), Judgement::New, "what it had is with the other one since");
    }

    #[test]
    fn an_ipv4_switch_is_recognised_in_its_mapped_form() {
        let s = two();
        assert!(s.is_present("[::ffff:10.0.0.1]:1".parse().unwrap()));
        assert!(!s.is_present("10.0.0.2:1".parse().unwrap()));
    }
}
