//! HCL, the hot–cold lexicographic rule of Prequal: Wydrowski, Kleinberg, Rumble, Archer, "Load is not what you should balance:
//! Introducing Prequal", NSDI 2024, section 4.

use super::pick::{either_number, least_score};
use super::servers::{Answer, Seen, Servers, kept_in_servers};
use super::{Candidates, Choice, Learned, Selector, Server, Status};
use midflight_endpoint::{Nanos, SECOND};

/// Of what was in flight at servers lately, this share is not more than the threshold: Prequal's Q_RIF = 2^(−1/4).
const QUANTILE: f64 = 0.84;

/// So many of the last reports make the distribution. Ours: Prequal's client estimates it from the probes that it has seen lately.
const REPORTS: usize = 128;

/// Longer queues are told from each other no more. Ours.
const LONGEST: usize = 255;

/// Estimates of a server end when it has not answered for this long. Prequal's pool forgets a probe after as long.
const LIFETIME: Nanos = SECOND;

/// Weight of the newest response time. Ours: a server of Prequal answers probes with the median of its recent ones.
const NEWEST: f64 = 0.5;

/// A candidate is hot if more requests are in flight there than the 0.84 quantile of what was lately in flight at any server. Among those
/// that are cold the one with the lowest latency is chosen; if all are hot, the one with fewest requests in flight.
///
/// Prequal learns both from probes; here they ride on responses: in flight are the reported queue and this selector's own
/// requests under way, and the latency is an average of response times. A server without statistics is cold and fast until it has a
/// request under way, then cold and slow.
#[derive(Clone, Debug)]
pub struct HotCold {
    servers: Servers<Report>,
    recent: Recent,
}

#[derive(Clone, Copy, Debug, Default)]
struct Report {
    queue: u16,
    /// Nanoseconds.
    latency: f64,
}

/// Added to the requests in flight of a hot server: more than any latency. A float of this size still tells them from each other.
const HOT: f64 = (1_u64 << 52) as f64;

/// Stands for the latency of a server that has requests and no statistics: more than any other.
const UNKNOWN: f64 = (1_u64 << 51) as f64;

impl HotCold {
    /// For so many servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::with_lifetime(servers, LIFETIME), recent: Recent::default() }
    }

    /// Lower is better: cold before hot, then by its own measure.
    fn rank(&self, now: Nanos, server: Server) -> f64 {
        let Seen { outstanding, known, own } = self.servers.see(now, server);
        let Report { queue, latency } = own.copied().unwrap_or_default();
        let is_known = known.is_some();
        // Without a branch: statistics end soon, so nobody can foresee whether there are some.
        let queue = queue & u16::from(is_known).wrapping_neg();
        let unknown = either_number(outstanding == 0, 0.0, UNKNOWN);
        let latency = either_number(is_known, latency, unknown);
        let in_flight = u32::from(queue).saturating_add(outstanding);
        either_number(in_flight > self.recent.threshold, HOT + f64::from(in_flight), latency)
    }
}

impl Selector for HotCold {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = least_score(candidates, random, |server| self.rank(now, server));
        self.servers.sent(server);
        Choice::Send(server)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        let Some(answer) = self.servers.answered(now, server, took, status) else { return };
        let Answer { own, took, status, outstanding, is_first } = answer;
        own.latency = if is_first { took } else { NEWEST * took + (1.0 - NEWEST) * own.latency };
        match status {
            Some(status) => own.queue = status.queue,
            None if is_first => own.queue = 0,
            None => {}
        }
        self.recent.add(u32::from(own.queue).saturating_add(outstanding));
    }

    fn learned(&self, now: Nanos, server: Server) -> Option<Learned> {
        let Report { queue, latency } = *self.servers.see(now, server).known?;
        let (queue, score) = (Some(queue.into()), Some(self.rank(now, server)));
        Some(Learned { response: Some(latency), service: None, queue, score })
    }

    kept_in_servers!();
}

/// The last [`REPORTS`] numbers of requests in flight, and their quantile.
#[derive(Clone, Debug)]
struct Recent {
    reports: [u8; REPORTS],
    /// Of the oldest, which the next one replaces.
    next: usize,
    len: usize,
    /// How many reports have each value.
    counts: [u8; LONGEST + 1],
    /// The quantile; while nothing is reported, nothing is hot.
    threshold: u32,
    /// Reports that are not above it.
    not_above: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self { reports: [0; REPORTS], next: 0, len: 0, counts: [0; LONGEST + 1], threshold: u32::MAX, not_above: 0 }
    }
}

impl Recent {
    fn add(&mut self, in_flight: u32) {
        let value = in_flight.min(LONGEST as u32) as u8;
        if self.len == 0 {
            self.threshold = u32::from(value);
        } else if self.len == REPORTS {
            self.count(self.reports[self.next], false);
        }
        self.reports[self.next] = value;
        self.next = (self.next + 1) % REPORTS;
        self.len = (self.len + 1).min(REPORTS);
        self.count(value, true);
        self.follow();
    }

    fn count(&mut self, value: u8, is_new: bool) {
        let is_below = usize::from(u32::from(value) <= self.threshold);
        let count = &mut self.counts[usize::from(value)];
        if is_new {
            *count += 1;
            self.not_above += is_below;
        } else {
            *count -= 1;
            self.not_above -= is_below;
        }
    }

    /// One report moves the quantile by few values, mostly by none.
    fn follow(&mut self) {
        let wanted = (QUANTILE * self.len as f64).ceil() as usize;
        let at = |threshold: u32| threshold as usize;
        while self.not_above < wanted && at(self.threshold) < LONGEST {
            self.threshold += 1;
            self.not_above += usize::from(self.counts[at(self.threshold)]);
        }
        while self.threshold > 0 && self.not_above - usize::from(self.counts[at(self.threshold)]) >= wanted {
            self.not_above -= usize::from(self.counts[at(self.threshold)]);
            self.threshold -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;

    fn answer(hcl: &mut HotCold, server: u16, took: Nanos, queue: u16, sequence: u16) {
        hcl.servers.sent(Server(server));
        hcl.answered(0, Server(server), took, Some(Status { queue, service_us: 1_000, sequence }));
    }

    #[test]
    fn the_quantile_is_the_least_value_that_84_of_100_do_not_exceed() {
        let mut recent = Recent::default();
        let numbers: Vec<u32> = (0..1_000).map(|i| i * 7_919 % 263).collect();
        for (i, &number) in numbers.iter().enumerate() {
            recent.add(number);
            let mut last: Vec<u32> =
                numbers[(i + 1).saturating_sub(REPORTS)..=i].iter().map(|&n| n.min(LONGEST as u32)).collect();
            last.sort_unstable();
            let wanted = (QUANTILE * last.len() as f64).ceil() as usize;
            assert_eq!(recent.threshold, last[wanted - 1], "after {number}, the {i}th");
        }
    }

    #[test]
    fn the_fastest_of_the_cold_is_chosen_else_the_shortest() {
        let mut hcl = HotCold::new(3);
        let candidates = Candidates::new(&[Server(0), Server(1), Server(2)]).unwrap();
        // Queues 9, 2 and 3: 0.84 × 3 = 2.52, so three must not exceed the threshold; it is 9 and nothing is hot. 1 ms is fastest.
        answer(&mut hcl, 0, MS, 9, 1);
        answer(&mut hcl, 1, 5 * MS, 2, 1);
        answer(&mut hcl, 2, 4 * MS, 3, 1);
        assert_eq!(hcl.recent.threshold, 9);
        assert_eq!(hcl.choose(0, &candidates, 0), Choice::Send(Server(0)));
        hcl.expired(0, Server(0));
        // Many more reports of 3: the threshold is 3. Server 0 is hot with its 9; of 5 and 4 ms the 4 are chosen.
        (2..50).for_each(|i| answer(&mut hcl, 2, 4 * MS, 3, i));
        assert_eq!(hcl.recent.threshold, 3);
        assert_eq!(hcl.choose(0, &candidates, 0), Choice::Send(Server(2)));
        // Now 4 are in flight at server 2: hot. Server 1 has 2, then 3, then 4: hot as well. All are hot: 9, 4, 4; random bits decide.
        let chosen: Vec<Choice> = (0..3).map(|_| hcl.choose(0, &candidates, u64::MAX)).collect();
        assert_eq!(chosen, [1, 1, 2].map(|server| Choice::Send(Server(server))));
    }

    #[test]
    fn a_server_without_statistics_is_tried_once() {
        let mut hcl = HotCold::new(2);
        let candidates = Candidates::new(&[Server(0), Server(1)]).unwrap();
        (0..9).for_each(|i| answer(&mut hcl, 0, MS, 5, i + 1));
        let chosen: Vec<Choice> = (0..4).map(|_| hcl.choose(0, &candidates, 0)).collect();
        // Server 0 has 5 in flight, the threshold, and each choice makes it one more: at 6 it is hot, and server 1 cold, though slow.
        assert_eq!(chosen, [1, 0, 1, 1].map(|server| Choice::Send(Server(server))));
    }
}
