//! The list of switches: which one is in use. At most one is active (R4), so the client looks for the one that serves.

use super::{Counters, Reached};
use midflight_endpoint::{Backoff, MS, Nanos};
use rand_pcg::Pcg32;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Timeouts in a row without any answer after which a client leaves the switch that served it.
const SILENCES: u32 = 2;
/// A client that no switch has served for so long, though one has refused it, says so in its requests. Longer than switches that are
/// looked for in vain for a moment, as packets were lost; much shorter than the 300 ms of R5.
const UNSERVED_AFTER: Nanos = 60 * MS;

struct Switch {
    address: SocketAddr,
    /// The last cookie that it gave us; 0 before the first.
    cookie: u64,
    /// Whether its last reply of a replica has said that READs may ask for direct ones.
    offers_direct: bool,
}

pub(super) struct Switches {
    list: Vec<Switch>,
    current: usize,
    /// The one that served last.
    serving: Option<usize>,
    /// When the current one last answered.
    heard_at: Option<Nanos>,
    /// Timeouts in a row of the current one, and when the last was counted: what was sent before that does not count again.
    silences: u32,
    silence_from: Nanos,
    /// A bit for each switch that has said in this round that it does not serve the set.
    refusing: u32,
    /// When the first switch refused us since one has served us.
    refused_since: Option<Nanos>,
    /// What the last answer said, and when it came.
    last: Option<(Nanos, Reached)>,
    /// When the last round ended in which all said so, and the wait that follows.
    round_ended: Option<Nanos>,
    backoff: Backoff,
    /// Other versions that switches have answered with.
    other_versions: BTreeSet<(usize, u8)>,
}

impl Switches {
    pub(super) fn new(addresses: &[SocketAddr], backoff: Backoff) -> Self {
        Self {
            list: addresses.iter().map(|&address| Switch { address, cookie: 0, offers_direct: false }).collect(),
            current: 0,
            serving: None,
            heard_at: None,
            silences: 0,
            silence_from: 0,
            refusing: 0,
            refused_since: None,
            last: None,
            round_ended: None,
            backoff,
            other_versions: BTreeSet::new(),
        }
    }

    /// Where to send: the switch's place, address and cookie.
    pub(super) fn current(&self) -> (usize, SocketAddr, u64) {
        let switch = &self.list[self.current];
        (self.current, switch.address, switch.cookie)
    }

    /// The place of the switch with this address.
    pub(super) fn find(&self, from: SocketAddr) -> Option<usize> {
        self.list.iter().position(|switch| same_host_and_port(switch.address, from))
    }

    pub(super) fn keep_cookie(&mut self, switch: usize, cookie: u64) {
        self.list[switch].cookie = cookie;
    }

    /// What the switch's last reply of a replica says of direct replies.
    pub(super) fn keep_offer(&mut self, switch: usize, offers_direct: bool) {
        self.list[switch].offers_direct = offers_direct;
    }

    /// Whether READs through the current switch may ask for direct replies.
    pub(super) fn offers_direct(&self) -> bool {
        self.list[self.current].offers_direct
    }

    /// When requests may be sent that have not been sent before.
    pub(super) fn held_until(&self) -> Nanos {
        self.backoff.until()
    }

    /// Whether no switch has served us for a while, though one has refused us: the leader should know.
    pub(super) fn is_unserved(&self, now: Nanos) -> bool {
        self.refused_since.is_some_and(|since| now >= since + UNSERVED_AFTER)
    }

    /// What answers since then have shown.
    pub(super) fn reached_since(&self, since: Nanos) -> Reached {
        self.last.filter(|(at, _)| *at > since).map_or(Reached::Nobody, |(_, reached)| reached)
    }

    /// The switch has answered.
    pub(super) fn heard(&mut self, switch: usize, now: Nanos, says: fn(SocketAddr) -> Reached) {
        self.last = Some((now, says(self.list[switch].address)));
        if switch == self.current {
            self.heard_at = Some(now);
            self.silences = 0;
        }
    }

    /// The switch has brought an answer of a replica. Returns its address if another one, or none, did so before.
    pub(super) fn served(&mut self, switch: usize) -> Option<SocketAddr> {
        self.refused_since = None;
        if switch != self.current {
            return None; // a late answer
        }
        self.refusing = 0;
        self.backoff.reset();
        let is_news = self.serving.replace(switch) != Some(switch);
        is_news.then(|| self.list[switch].address)
    }

    /// The switch does not serve the set, it says of a request that was sent at `sent_at`. Returns when to send that again.
    pub(super) fn refused(
        &mut self,
        switch: usize,
        sent_at: Nanos,
        now: Nanos,
        rng: &mut Pcg32,
        counters: &mut Counters,
    ) -> Nanos {
        self.refused_since.get_or_insert(now);
        if self.round_ended.is_some_and(|ended| sent_at <= ended) {
            return self.backoff.until();
        }
        self.refusing |= 1 << switch;
        if self.refusing.count_ones() as usize == self.list.len() {
            self.refusing = 0;
            self.round_ended = Some(now);
            self.backoff.full(now, sent_at, rng);
        }
        if switch == self.current {
            self.go_on(counters);
        }
        self.backoff.until()
    }

    /// A request that was sent at `sent_at` was not answered in time. A switch that answers nothing is left, sooner if it has
    /// not served us since another one was left.
    pub(super) fn unanswered(&mut self, switch: usize, sent_at: Nanos, now: Nanos, counters: &mut Counters) {
        let was_heard = self.heard_at.is_some_and(|heard| heard > sent_at);
        if switch != self.current || was_heard || sent_at < self.silence_from {
            return;
        }
        self.silences += 1;
        self.silence_from = now;
        let patience = if self.serving == Some(switch) { SILENCES } else { 1 };
        if self.silences >= patience {
            self.serving = None;
            self.refusing = 0;
            self.go_on(counters);
        }
    }

    /// Uses the next switch that does not refuse.
    fn go_on(&mut self, counters: &mut Counters) {
        let count = self.list.len();
        let others = (1..count).map(|step| (self.current + step) % count);
        let next = others.into_iter().find(|&switch| self.refusing >> switch & 1 == 0);
        if let Some(next) = next {
            counters.failovers += 1;
            self.current = next;
        }
        self.heard_at = None;
        self.silences = 0;
    }

    /// A packet that cannot be parsed has arrived.
    pub(super) fn heard_garbage(&mut self, from: SocketAddr, now: Nanos) {
        if let Some(switch) = self.find(from) {
            self.last = Some((now, Reached::Garbage(self.list[switch].address)));
        }
    }

    /// For a packet of another version: the switch that sent it, if this is news.
    pub(super) fn answers_with(&mut self, from: SocketAddr, version: u8) -> Option<SocketAddr> {
        let switch = self.find(from)?;
        self.other_versions.insert((switch, version)).then(|| self.list[switch].address)
    }
}

/// Whether two addresses are the same, where one may write IPv4 as an IPv4-mapped IPv6 address.
pub(super) fn same_host_and_port(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;
    use rand::SeedableRng;

    struct Three {
        switches: Switches,
        rng: Pcg32,
        counters: Counters,
    }

    impl Three {
        fn new() -> Self {
            let addresses = [1, 2, 3].map(|last| SocketAddr::from(([10, 0, 0, last], 7700)));
            let switches = Switches::new(&addresses, Backoff::new(MS..=50 * MS));
            Self { switches, rng: Pcg32::seed_from_u64(7), counters: Counters::default() }
        }

        fn refused(&mut self, switch: usize, sent_at: Nanos, now: Nanos) -> Nanos {
            self.switches.refused(switch, sent_at, now, &mut self.rng, &mut self.counters)
        }

        fn unanswered(&mut self, sent_at: Nanos, now: Nanos) -> usize {
            let (current, ..) = self.switches.current();
            self.switches.unanswered(current, sent_at, now, &mut self.counters);
            self.switches.current().0
        }
    }

    #[test]
    fn r5_an_inactive_switch_is_left_at_once_and_only_if_all_are_there_is_a_wait() {
        let mut three = Three::new();
        assert_eq!(three.refused(0, 10, 20), 0);
        assert_eq!(three.refused(0, 11, 21), 0, "a second request that it refused");
        assert_eq!(three.switches.current().0, 1);
        assert_eq!(three.refused(1, 20, 30), 0);
        let until = three.refused(2, 30, 40);
        assert!((40 + MS / 2..=40 + MS).contains(&until), "{until}");
        assert_eq!(three.refused(2, 31, 41), until, "of the same round");
        assert_eq!(three.switches.held_until(), until);
    }

    #[test]
    fn r5_a_switch_that_served_is_left_after_two_silences_and_others_after_one() {
        let mut three = Three::new();
        assert!(three.switches.served(0).is_some() && three.switches.served(0).is_none());
        assert_eq!(three.unanswered(0, 10), 0);
        assert_eq!(three.unanswered(5, 11), 0, "sent before the first silence was counted");
        assert_eq!(three.unanswered(10, 20), 1);
        assert_eq!(three.unanswered(20, 30), 2);
        three.switches.heard(2, 35, Reached::Serving);
        assert_eq!(three.unanswered(30, 40), 2, "it has answered another request since");
        assert_eq!(three.unanswered(40, 50), 0);
    }

    #[test]
    fn a_switch_is_recognised_in_its_mapped_form_and_its_other_version_is_told_once() {
        let mut three = Three::new();
        let mapped = "[::ffff:10.0.0.2]:7700".parse().unwrap();
        assert_eq!(three.switches.find(mapped), Some(1));
        assert!(three.switches.answers_with(mapped, 9).is_some());
        assert!(three.switches.answers_with(mapped, 9).is_none());
        assert!(three.switches.answers_with("10.0.0.2:1".parse().unwrap(), 9).is_none());
    }
}
