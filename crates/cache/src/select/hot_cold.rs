//! HCL, Prequal's hot–cold lexicographic rule: Wydrowski, Kleinberg, Rumble, Archer, "Load is not what you should balance: Introducing
//! Prequal", NSDI 2024, section 4.

use super::pick::{either_number, least_score};
use super::servers::{Answer, Seen, Servers, kept_in_servers};
use super::{Candidates, Choice, Learned, Selector, Server, Status};
use midflight_endpoint::{Nanos, SECOND};

/// Quantile of recent requests in flight that is the hot threshold: Prequal's Q_RIF = 2^(−1/4).
const QUANTILE: f64 = 0.84;

/// Recent reports that form the distribution. Ours; Prequal's client uses its recent probes.
const REPORTS: usize = 128;

/// Longer queues count as this one. Ours.
const LONGEST: usize = 255;

/// Lifetime of a server's estimates; the same as of probes in Prequal's pool.
const LIFETIME: Nanos = SECOND;

/// Weight of the newest response time. Ours; Prequal's servers report the median of recent ones.
const NEWEST: f64 = 0.5;

/// A candidate is hot if more requests are in flight there than the 0.84 quantile of recent reports of all servers. Chooses the cold
/// candidate with the lowest latency; if all are hot, the one with the fewest requests in flight.
///
/// Responses replace Prequal's probes: requests in flight are the reported queue plus this selector's outstanding requests, and latency
/// averages response times. A server without estimates is cold and fast until it has an outstanding request, then cold and slow.
#[derive(Clone, Debug)]
pub struct HotCold {
    servers: Servers<Report>,
    recent: Recent,
}

#[derive(Clone, Copy, Debug, Default)]
struct Report {
    queue: u16,
    latency: f64,
}

/// Added to a hot server's requests in flight. Exceeds any latency, and a float of this size still distinguishes integers.
const HOT: f64 = (1_u64 << 52) as f64;

/// Latency of a server without estimates that has requests. Exceeds any other.
const UNKNOWN: f64 = (1_u64 << 51) as f64;

impl HotCold {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::with_lifetime(servers, LIFETIME), recent: Recent::default() }
    }

    /// Lower is better: cold before hot, then by latency or by requests in flight.
    fn rank(&self, now: Nanos, server: Server) -> f64 {
        let Seen { outstanding, known, own } = self.servers.see(now, server);
        let Report { queue, latency } = own.copied().unwrap_or_default();
        let is_known = known.is_some();
        // Branch-free: estimates expire soon, so the condition is unpredictable.
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

/// The last [`REPORTS`] reports of requests in flight, and their quantile.
#[derive(Clone, Debug)]
struct Recent {
    reports: [u8; REPORTS],
    next: usize,
    len: usize,
    counts: [u8; LONGEST + 1],
    /// The quantile. Without reports nothing is hot.
    threshold: u32,
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

    /// One report moves the quantile by few values, usually none.
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
        // Many more reports of 3: the threshold is 3. Server 0 is hot with 9; of 5 and 4 ms, 4 wins.
        (2..50).for_each(|i| answer(&mut hcl, 2, 4 * MS, 3, i));
        assert_eq!(hcl.recent.threshold, 3);
        assert_eq!(hcl.choose(0, &candidates, 0), Choice::Send(Server(2)));
        // Now 4 are in flight at server 2: hot. Server 1 goes from 2 to 4: hot too. All are hot: 9, 4, 4; random bits decide.
        let chosen: Vec<Choice> = (0..3).map(|_| hcl.choose(0, &candidates, u64::MAX)).collect();
        assert_eq!(chosen, [1, 1, 2].map(|server| Choice::Send(Server(server))));
    }

    #[test]
    fn a_server_without_statistics_is_tried_once() {
        let mut hcl = HotCold::new(2);
        let candidates = Candidates::new(&[Server(0), Server(1)]).unwrap();
        (0..9).for_each(|i| answer(&mut hcl, 0, MS, 5, i + 1));
        let chosen: Vec<Choice> = (0..4).map(|_| hcl.choose(0, &candidates, 0)).collect();
        // Server 0 has 5 in flight, the threshold; one more makes it hot, and server 1 is cold, though slow.
        assert_eq!(chosen, [1, 0, 1, 1].map(|server| Choice::Send(Server(server))));
    }
}
