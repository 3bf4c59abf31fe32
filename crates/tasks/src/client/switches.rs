//! The list of switches: the current one and its epoch.

use midflight_endpoint::Nanos;
use midflight_endpoint::config::is_same_address;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Earlier epochs remembered per switch, to recognise late responses.
const PAST_EPOCHS_MAX: usize = 8;

pub(super) struct Switch {
    pub(super) address: SocketAddr,
    /// Its last cookie; 0 before the first.
    pub(super) cookie: u64,
    /// Its last known epoch; 0 before the first.
    epoch: u32,
    past_epochs: [u32; PAST_EPOCHS_MAX],
}

/// Interval at which a client that failed over probes its preferred switches.
const FAILBACK_EVERY: Nanos = 1_000_000_000;

#[derive(Clone, Copy)]
struct FailbackProbe {
    switch: usize,
    sequence: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochMeaning {
    /// The epoch that has the client's tasks.
    Present,
    /// A late response of an earlier switch; or that switch has returned.
    Past,
    /// Another switch, without the client's tasks.
    New,
}

/// What a new cookie lets the client send again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resend {
    Question,
    InFlight,
}

pub(super) struct Switches {
    list: Vec<Switch>,
    asked: usize,
    holder: Option<(usize, u32)>,
    pub(super) heard: Nanos,
    answered: Option<Nanos>,
    /// The same, or when the next response was first expected.
    expected: Nanos,
    /// PROBEs then name no tasks, and the client submits overdue tasks again.
    pub(super) keeps_no_record: bool,
    /// Whether it takes appended arguments; `None` until it answers a PROBE.
    pub(super) appends: Option<bool>,
    other_versions: BTreeSet<(usize, u8)>,
    /// Earliest time at which a new cookie may repeat all packets.
    resend_from: [Nanos; 2],
    /// Time of the next PROBE to a preferred switch; below, the last one.
    failback_at: Nanos,
    failback_probe: Option<FailbackProbe>,
}

impl Switches {
    pub(super) fn new(addresses: &[SocketAddr], now: Nanos) -> Self {
        let list = addresses
            .iter()
            .map(|&address| Switch { address, cookie: 0, epoch: 0, past_epochs: [0; PAST_EPOCHS_MAX] })
            .collect();
        Self {
            list,
            asked: 0,
            holder: None,
            heard: now,
            answered: None,
            expected: now,
            keeps_no_record: false,
            appends: None,
            other_versions: BTreeSet::new(),
            resend_from: [now; 2],
            failback_at: now,
            failback_probe: None,
        }
    }

    pub(super) fn resume(&mut self, address: SocketAddr, epoch: u32) {
        if let Some(switch) = self.list.iter().position(|switch| is_same_address(switch.address, address)) {
            (self.asked, self.holder) = (switch, Some((switch, epoch)));
            self.list[switch].epoch = epoch;
        }
    }

    pub(super) fn hear(&mut self, now: Nanos) {
        (self.heard, self.answered, self.expected) = (now, Some(now), now);
    }

    /// A response is expected from now on; none was before.
    pub(super) fn expect(&mut self, now: Nanos) {
        (self.heard, self.expected) = (now, now);
    }

    /// When a switch last answered, and since when a response has been expected.
    pub(super) fn contact(&self) -> (Option<Nanos>, Nanos) {
        (self.answered, self.expected)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.list[self.asked].address
    }

    pub(super) fn is_present(&self, from: SocketAddr) -> bool {
        is_same_address(self.address(), from)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.holder.is_some_and(|(switch, _)| switch == self.asked)
    }

    pub(super) fn epoch(&self) -> u32 {
        self.list[self.asked].epoch
    }

    pub(super) fn cookie(&self) -> u64 {
        self.list[self.asked].cookie
    }

    /// Returns whether the cookie is new.
    pub(super) fn keep_cookie(&mut self, cookie: u64) -> bool {
        std::mem::replace(&mut self.list[self.asked].cookie, cookie) != cookie
    }

    /// Limits repeats to one per retransmission timeout, so that a flood of COOKIEs is not amplified.
    pub(super) fn may_resend(&mut self, what: Resend, now: Nanos, timeout: Nanos) -> bool {
        let from = &mut self.resend_from[what as usize];
        let may = now >= *from;
        if may {
            *from = now + timeout;
        }
        may
    }

    pub(super) fn judge(&self, epoch: u32) -> EpochMeaning {
        if self.holder == Some((self.asked, epoch)) {
            EpochMeaning::Present
        } else if self.list[self.asked].past_epochs.contains(&epoch) {
            EpochMeaning::Past
        } else {
            EpochMeaning::New
        }
    }

    /// The current switch in this epoch now has the client's tasks. Returns whether another one had them.
    pub(super) fn settle(&mut self, epoch: u32) -> bool {
        let switch = &mut self.list[self.asked];
        if switch.epoch != 0 && switch.epoch != epoch {
            let returns = switch.past_epochs.iter().position(|&past| past == epoch);
            let place = returns.unwrap_or(PAST_EPOCHS_MAX - 1);
            switch.past_epochs[..=place].rotate_right(1);
            switch.past_epochs[0] = switch.epoch;
        }
        switch.epoch = epoch;
        self.keeps_no_record = false;
        self.appends = None;
        self.holder.replace((self.asked, epoch)).is_some()
    }

    /// Moves on from a silent switch. If there is only one, forgets its earlier epochs, which may wrongly include the current one
    /// after a late response. Returns whether the switch changed.
    pub(super) fn go_on(&mut self, now: Nanos) -> bool {
        self.use_switch((self.asked + 1) % self.list.len(), now);
        self.list.len() > 1
    }

    fn use_switch(&mut self, switch: usize, now: Nanos) {
        self.asked = switch;
        self.list[switch].past_epochs = [0; PAST_EPOCHS_MAX];
        self.heard = now;
        self.resend_from = [now; 2];
        self.failback_at = now + FAILBACK_EVERY;
        self.failback_probe = None;
    }

    /// Handles a version packet: returns its switch if the report is new.
    pub(super) fn answers_with(&mut self, from: SocketAddr, version: u8) -> Option<SocketAddr> {
        let switch = self.list.iter().position(|switch| is_same_address(switch.address, from))?;
        self.other_versions.insert((switch, version)).then(|| self.list[switch].address)
    }

    /// When to probe a switch before the current in the list. Executors do so too; otherwise parties might never meet at one
    /// switch again.
    pub(super) fn failback_due(&self) -> Option<Nanos> {
        (self.asked > 0).then_some(self.failback_at)
    }

    /// The preferred switches take turns.
    pub(super) fn failback_probe(&mut self, now: Nanos, count: impl FnOnce() -> u32) -> Option<(&Switch, u32)> {
        self.failback_due().filter(|&due| due <= now)?;
        self.failback_at = now + FAILBACK_EVERY;
        let switch = self.failback_probe.map_or(0, |last| (last.switch + 1) % self.asked);
        let sequence = count();
        self.failback_probe = Some(FailbackProbe { switch, sequence });
        Some((&self.list[switch], sequence))
    }

    /// If this answers the failback probe, makes that switch current and returns true.
    pub(super) fn found(&mut self, from: SocketAddr, sequence: u32, now: Nanos) -> bool {
        let is_it = |probe: &FailbackProbe| {
            probe.sequence == sequence && is_same_address(self.list[probe.switch].address, from)
        };
        let better = self.failback_probe.filter(is_it);
        if let Some(probe) = better {
            self.use_switch(probe.switch, now);
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
    fn t9_late_answers_of_a_past_epoch_differ_from_a_new_one() {
        let mut s = two();
        assert_eq!(s.judge(5), EpochMeaning::New);
        assert!(!s.settle(5));
        assert_eq!(s.judge(5), EpochMeaning::Present);
        assert_eq!(s.judge(6), EpochMeaning::New);
        assert!(s.settle(6));
        assert_eq!(s.judge(5), EpochMeaning::Past);
    }

    #[test]
    fn t9_epochs_that_return_push_no_other_out_of_the_past() {
        let mut s = two();
        s.settle(4);
        for _ in 0..PAST_EPOCHS_MAX {
            s.settle(5);
            s.settle(6);
        }
        assert_eq!(
            [4, 5, 6, 7].map(|epoch| s.judge(epoch)),
            [EpochMeaning::Past, EpochMeaning::Past, EpochMeaning::Present, EpochMeaning::New]
        );
    }

    #[test]
    fn t9_returning_to_the_holder_of_the_tasks_is_no_change() {
        let mut s = two();
        s.settle(5);
        assert!(s.go_on(1));
        assert!(!s.is_settled());
        assert_eq!(s.judge(5), EpochMeaning::New, "an epoch is one switch's");
        assert!(s.go_on(2));
        assert_eq!(s.judge(5), EpochMeaning::Present);
    }

    #[test]
    fn t9_a_switch_misjudged_as_past_is_found_again_after_silence() {
        let mut s = Switches::new(&["[::1]:1".parse().unwrap()], 0);
        s.settle(5);
        s.settle(4);
        assert_eq!(s.judge(5), EpochMeaning::Past);
        assert!(!s.go_on(9));
        assert_eq!(s.judge(5), EpochMeaning::New);
        assert_eq!(s.heard, 9);
    }

    #[test]
    fn t9_a_better_switch_is_probed_and_used_when_it_answers() {
        let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        let mut s = two();
        s.settle(5);
        assert_eq!((s.failback_due(), s.found(a, 1, 0)), (None, false), "it is the best");
        assert!(s.go_on(10));
        s.settle(7);
        assert!(!s.found(a, 1, 11), "nobody has asked it");
        assert!(s.failback_probe(11, || panic!("not yet")).is_none());
        assert_eq!(s.failback_due(), Some(10 + FAILBACK_EVERY));
        assert_eq!(
            s.failback_probe(10 + FAILBACK_EVERY, || 9).map(|(switch, sequence)| (switch.address, sequence)),
            Some((a, 9))
        );
        assert!(!s.found(b, 9, 12 + FAILBACK_EVERY) && !s.found(a, 8, 12 + FAILBACK_EVERY));
        assert!(s.found(a, 9, 12 + FAILBACK_EVERY));
        assert_eq!((s.address(), s.is_settled()), (a, false));
        assert_eq!(s.judge(5), EpochMeaning::New, "what it had is with the other one since");
    }

    #[test]
    fn an_ipv4_switch_is_recognised_in_its_mapped_form() {
        let s = two();
        assert!(s.is_present("[::ffff:10.0.0.1]:1".parse().unwrap()));
        assert!(!s.is_present("10.0.0.2:1".parse().unwrap()));
    }
}
