//! The set's switches. At most one is active (R4), so the client searches for the one that serves.

use super::{Counters, Reached};
use midflight_endpoint::config::is_same_address;
use midflight_endpoint::{Backoff, MS, Nanos};
use rand_pcg::Pcg32;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Consecutive timeouts after which a client leaves the switch that served it.
const SILENCES: u32 = 2;
/// If no switch has served a client this long, though one has refused it, its requests say so. Longer than a search that fails by packet
/// loss, and much shorter than the 300 ms of R5.
const UNSERVED_AFTER: Nanos = 60 * MS;

struct Switch {
    address: SocketAddr,
    cookie: u64,
    offers_direct: bool,
}

pub(super) struct Switches {
    list: Vec<Switch>,
    current: usize,
    serving: Option<usize>,
    /// When the current one last answered.
    heard_at: Option<Nanos>,
    /// Consecutive timeouts of the current one, and when the last was counted. Earlier transmissions do not count again.
    silences: u32,
    silence_from: Nanos,
    /// A bit for each switch that refused in this round because it does not serve the set.
    refusing: u32,
    /// The first refusal since a switch last served.
    refused_since: Option<Nanos>,
    last: Option<(Nanos, Reached)>,
    /// End of the last round in which all refused, and the wait after it.
    round_ended: Option<Nanos>,
    backoff: Backoff,
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

    /// Index, address and cookie of the switch in use.
    pub(super) fn current(&self) -> (usize, SocketAddr, u64) {
        let switch = &self.list[self.current];
        (self.current, switch.address, switch.cookie)
    }

    pub(super) fn find(&self, from: SocketAddr) -> Option<usize> {
        self.list.iter().position(|switch| is_same_address(switch.address, from))
    }

    pub(super) fn keep_cookie(&mut self, switch: usize, cookie: u64) {
        self.list[switch].cookie = cookie;
    }

    pub(super) fn keep_offer(&mut self, switch: usize, offers_direct: bool) {
        self.list[switch].offers_direct = offers_direct;
    }

    pub(super) fn offers_direct(&self) -> bool {
        self.list[self.current].offers_direct
    }

    pub(super) fn held_until(&self) -> Nanos {
        self.backoff.until()
    }

    /// Whether no switch has served us for a while, though one has refused us. The leader should know.
    pub(super) fn is_unserved(&self, now: Nanos) -> bool {
        self.refused_since.is_some_and(|since| now >= since + UNSERVED_AFTER)
    }

    pub(super) fn reached_since(&self, since: Nanos) -> Reached {
        self.last.filter(|(at, _)| *at > since).map_or(Reached::Nobody, |(_, reached)| reached)
    }

    pub(super) fn heard(&mut self, switch: usize, now: Nanos, says: fn(SocketAddr) -> Reached) {
        self.last = Some((now, says(self.list[switch].address)));
        if switch == self.current {
            self.heard_at = Some(now);
            self.silences = 0;
        }
    }

    /// The switch forwarded a replica's answer. Returns its address unless it already served before.
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

    /// The switch refused a request sent at `sent_at`, as it does not serve the set. Returns when to repeat the request.
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

    /// A request sent at `sent_at` timed out. The client leaves a silent switch, sooner if it has not served since the last change.
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

    pub(super) fn heard_garbage(&mut self, from: SocketAddr, now: Nanos) {
        if let Some(switch) = self.find(from) {
            self.last = Some((now, Reached::Garbage(self.list[switch].address)));
        }
    }

    pub(super) fn answers_with(&mut self, from: SocketAddr, version: u8) -> Option<SocketAddr> {
        let switch = self.find(from)?;
        self.other_versions.insert((switch, version)).then(|| self.list[switch].address)
    }
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
