//! The list of switches: which one is in use, and its epoch.

use super::same_host_and_port;
use midflight_endpoint::Nanos;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// How many earlier epochs of a switch are remembered. Late answers from them say nothing about the current switch.
const PAST_MAX: usize = 8;

/// A switch of the list.
pub(super) struct Switch {
    pub(super) address: SocketAddr,
    /// The last cookie that it gave us; 0 before the first.
    pub(super) cookie: u64,
    /// Its last known epoch; 0 before the first.
    epoch: u32,
    past: [u32; PAST_MAX],
}

/// How often a client that had to leave a preferred switch probes whether it answers again.
const FAILBACK_EVERY: Nanos = 1_000_000_000;

/// A PROBE to a preferred switch, and its sequence.
#[derive(Clone, Copy)]
struct FailbackProbe {
    switch: usize,
    sequence: u32,
}

/// What an answer's epoch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochMeaning {
    /// The epoch that holds our tasks.
    Present,
    /// A late answer of a switch that is gone; or that switch has returned.
    Past,
    /// Another switch, which has none of our tasks.
    New,
}

/// What to send again with another cookie.
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
    /// When the current switch last answered, or came into use.
    pub(super) heard: Nanos,
    /// When any switch last answered.
    answered: Option<Nanos>,
    /// The same, or when an answer was first expected after that.
    expected: Nanos,
    /// Whether it keeps no record of tasks. Then PROBEs name no tasks, and tasks that take too long are submitted again.
    pub(super) keeps_no_record: bool,
    /// Other versions that switches of the list have answered with.
    other_versions: BTreeSet<(usize, u8)>,
    /// From this time on another cookie may cause all packets to be sent again.
    resend_from: [Nanos; 2],
    /// When the next preferred switch is probed, and which was probed last.
    failback_at: Nanos,
    failback_probe: Option<FailbackProbe>,
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
            answered: None,
            expected: now,
            keeps_no_record: false,
            other_versions: BTreeSet::new(),
            resend_from: [now; 2],
            failback_at: now,
            failback_probe: None,
        }
    }

    /// An earlier process of this client has left its tasks at this switch, in this epoch.
    pub(super) fn resume(&mut self, address: SocketAddr, epoch: u32) {
        if let Some(switch) = self.list.iter().position(|switch| same_host_and_port(switch.address, address)) {
            (self.asked, self.holder) = (switch, Some((switch, epoch)));
            self.list[switch].epoch = epoch;
        }
    }

    /// The current switch has answered.
    pub(super) fn hear(&mut self, now: Nanos) {
        (self.heard, self.answered, self.expected) = (now, Some(now), now);
    }

    /// An answer is expected from now on, and none was before.
    pub(super) fn expect(&mut self, now: Nanos) {
        (self.heard, self.expected) = (now, now);
    }

    /// When a switch last answered, and since when an answer has been expected if one is.
    pub(super) fn contact(&self) -> (Option<Nanos>, Nanos) {
        (self.answered, self.expected)
    }

    /// Where to send.
    pub(super) fn address(&self) -> SocketAddr {
        self.list[self.asked].address
    }

    pub(super) fn is_present(&self, from: SocketAddr) -> bool {
        same_host_and_port(self.address(), from)
    }

    /// Whether the current switch is known to hold our tasks.
    pub(super) fn is_settled(&self) -> bool {
        self.holder.is_some_and(|(switch, _)| switch == self.asked)
    }

    /// The last known epoch of the current switch; 0 before the first.
    pub(super) fn epoch(&self) -> u32 {
        self.list[self.asked].epoch
    }

    /// The cookie for the current switch.
    pub(super) fn cookie(&self) -> u64 {
        self.list[self.asked].cookie
    }

    /// Sets the cookie for the current switch. Returns whether it differs from the one before.
    pub(super) fn keep_cookie(&mut self, cookie: u64) -> bool {
        std::mem::replace(&mut self.list[self.asked].cookie, cookie) != cookie
    }

    /// Whether to send all packets again because of another cookie: at most once per retransmission timeout, so that a
    /// flood of COOKIE packets causes no larger flood.
    pub(super) fn may_resend(&mut self, what: Again, now: Nanos, timeout: Nanos) -> bool {
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
        } else if self.list[self.asked].past.contains(&epoch) {
            EpochMeaning::Past
        } else {
            EpochMeaning::New
        }
    }

    /// From now on our tasks are at the current switch, in this epoch. Returns whether there was another switch before.
    pub(super) fn settle(&mut self, epoch: u32) -> bool {
        let switch = &mut self.list[self.asked];
        if switch.epoch != 0 && switch.epoch != epoch {
            // Replaces the epoch that returns, or else the oldest.
            let returns = switch.past.iter().position(|&past| past == epoch);
            let place = returns.unwrap_or(PAST_MAX - 1);
            switch.past[..=place].rotate_right(1);
            switch.past[0] = switch.epoch;
        }
        switch.epoch = epoch;
        self.keeps_no_record = false;
        self.holder.replace((self.asked, epoch)).is_some()
    }

    /// The switch is silent: uses the next one. If there is only one, forgets its earlier epochs, because a late answer may
    /// have made us take its current epoch for an earlier one. Returns whether the switch is another.
    pub(super) fn go_on(&mut self, now: Nanos) -> bool {
        self.use_switch((self.asked + 1) % self.list.len(), now);
        self.list.len() > 1
    }

    fn use_switch(&mut self, switch: usize, now: Nanos) {
        self.asked = switch;
        self.list[switch].past = [0; PAST_MAX];
        self.heard = now;
        self.resend_from = [now; 2];
        self.failback_at = now + FAILBACK_EVERY;
        self.failback_probe = None;
    }

    /// For a packet of another version: the switch of the list that sent it, if this is news.
    pub(super) fn answers_with(&mut self, from: SocketAddr, version: u8) -> Option<SocketAddr> {
        let switch = self.list.iter().position(|switch| same_host_and_port(switch.address, from))?;
        self.other_versions.insert((switch, version)).then(|| self.list[switch].address)
    }

    /// When to probe a preferred switch, one before the current in the list. Executors do the same: otherwise those at
    /// different switches of the list might never meet again.
    pub(super) fn failback_due(&self) -> Option<Nanos> {
        (self.asked > 0).then_some(self.failback_at)
    }

    /// The preferred switch to probe now, with the sequence that `count` gives. The others follow later in turn.
    pub(super) fn failback_probe(&mut self, now: Nanos, count: impl FnOnce() -> u32) -> Option<(&Switch, u32)> {
        self.failback_due().filter(|&due| due <= now)?;
        self.failback_at = now + FAILBACK_EVERY;
        let switch = self.failback_probe.map_or(0, |last| (last.switch + 1) % self.asked);
        let sequence = count();
        self.failback_probe = Some(FailbackProbe { switch, sequence });
        Some((&self.list[switch], sequence))
    }

    /// If this answers the PROBE to a preferred switch, that switch is the current one from now on. Returns whether it was.
    pub(super) fn found(&mut self, from: SocketAddr, sequence: u32, now: Nanos) -> bool {
        let is_it = |probe: &FailbackProbe| {
            probe.sequence == sequence && same_host_and_port(self.list[probe.switch].address, from)
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
        for _ in 0..PAST_MAX {
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
