//! Our ranking, like C3's but for few selectors that see much of the traffic. `docs/internals/cache-selectors.md` explains its
//! constants.

use super::c3::unknown;
use super::decay::float;
use super::pick::least_score;
use super::servers::{Seen, Servers, kept_in_servers};
use super::{Candidates, Choice, Learned, Selector, Server, Status};
use midflight_endpoint::{MS, Nanos};

/// Weight of the newest service time in a server's average. C3's 0.9 is nearly the last request alone, but service times vary by as much
/// as their mean.
const NEWEST_SERVICE: f64 = 0.2;
/// Weight of the newest service time in the average of all servers.
const NEWEST_OF_ALL: f64 = 0.01;
/// Weight of the newest reported queue.
const NEWEST_QUEUE: f64 = 0.9;
/// Age at which a server's difference from the average of all counts half.
const HALF_AGE: f64 = (50 * MS) as f64;
/// Requests that do not yet form a queue: about as many as a server serves concurrently.
const AT_ONCE: f64 = 4.0;

/// Chooses the candidate with the least s̄·(4 + N)². N = outstanding·√n + q̄·(1 − 1/n) estimates the requests there, with n selectors; a
/// single selector knows them all. s̄ averages service times, and with age tends to the average of all servers.
///
/// Compared to C3: s̄ averages several requests, not nearly one. The square lets a server of three times the speed have a queue 1.7 times
/// as long, instead of 1.4. Own requests do not count again as a reported queue.
#[derive(Clone, Debug)]
pub struct Quadratic {
    servers: Servers<Estimate>,
    /// √n, and 1 − 1/n.
    own_weight: f64,
    queue_weight: f64,
    /// Mean service time of all servers in nanoseconds; 0: none has answered.
    service: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    service: f64,
    at: Nanos,
    queue: f64,
    /// Whether the server has ever reported.
    reports: bool,
}

impl Quadratic {
    /// For `servers` servers that `selectors` selectors share.
    #[must_use]
    pub fn new(servers: u16, selectors: u32) -> Self {
        let mut new = Self { servers: Servers::new(servers), own_weight: 1.0, queue_weight: 0.0, service: 0.0 };
        new.set_selectors(selectors);
        new
    }

    fn score(&self, now: Nanos, server: Server) -> f64 {
        let Seen { outstanding, known, .. } = self.servers.see(now, server);
        let Some(estimate) = known else { return unknown(outstanding) };
        let age = float(now.saturating_sub(estimate.at));
        let service = self.service + (estimate.service - self.service) * HALF_AGE / (HALF_AGE + age);
        let there = AT_ONCE + f64::from(outstanding) * self.own_weight + estimate.queue * self.queue_weight;
        service * there * there
    }
}

impl Selector for Quadratic {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = least_score(candidates, random, |server| self.score(now, server));
        self.servers.sent(server);
        Choice::Send(server)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        let Some(answer) = self.servers.answered(now, server, took, status) else { return };
        let own = answer.own;
        if answer.is_first {
            *own = Estimate::default();
        }
        let service = match answer.status {
            Some(status) => {
                own.reports = true;
                own.queue += NEWEST_QUEUE * (f64::from(status.queue) - own.queue);
                status.service()
            }
            // A rejected report has no value. If a server never reports, the response time replaces it.
            None if own.reports => return,
            None => answer.took,
        };
        own.at = now;
        learn(&mut own.service, service, NEWEST_SERVICE);
        learn(&mut self.service, service, NEWEST_OF_ALL);
    }

    fn set_selectors(&mut self, selectors: u32) {
        let selectors = f64::from(selectors.max(1));
        (self.own_weight, self.queue_weight) = (selectors.sqrt(), 1.0 - 1.0 / selectors);
    }

    fn learned(&self, now: Nanos, server: Server) -> Option<Learned> {
        let estimate = self.servers.see(now, server).known?;
        let reported = |value: f64| estimate.reports.then_some(value);
        let (service, queue) = (reported(estimate.service), reported(estimate.queue));
        Some(Learned { response: None, service, queue, score: Some(self.score(now, server)) })
    }

    kept_in_servers!();
}

/// The first value becomes the average.
fn learn(average: &mut f64, newest: f64, weight: f64) {
    *average += if *average == 0.0 { newest } else { weight * (newest - *average) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Server = Server(0);
    const B: Server = Server(1);

    fn answer(selector: &mut Quadratic, now: Nanos, server: Server, queue: u16, ms: u32, sequence: u16) {
        selector.servers.sent(server);
        let status = Status { queue, service_us: ms * 1_000, sequence };
        selector.answered(now, server, 9 * MS, Some(status));
    }

    fn score_ms(selector: &Quadratic, now: Nanos, server: Server) -> f64 {
        (selector.score(now, server) / MS as f64 * 1e6).round() / 1e6
    }

    #[test]
    fn alone_it_counts_its_own_requests_only() {
        let mut selector = Quadratic::new(2, 1);
        answer(&mut selector, 0, A, 7, 2, 1);
        // 2 × 4²: the queue of 7 is of its own requests. With two outstanding: 2 × 6².
        assert_eq!(score_ms(&selector, 0, A), 32.0);
        (0..2).for_each(|_| selector.servers.sent(A));
        assert_eq!(score_ms(&selector, 0, A), 72.0);
    }

    #[test]
    fn among_four_it_counts_its_own_twice_and_three_quarters_of_the_queue() {
        let mut selector = Quadratic::new(2, 4);
        answer(&mut selector, 0, A, 10, 1, 1);
        selector.servers.sent(A);
        // The queue is 0.9 × 10: 4 + 2 × 1 + 0.75 × 9 = 12.75; its square.
        assert_eq!(score_ms(&selector, 0, A), 162.5625);
        selector.set_selectors(1);
        assert_eq!(score_ms(&selector, 0, A), 25.0);
    }

    #[test]
    fn service_times_are_averaged_and_an_old_one_is_nearer_to_that_of_all() {
        let mut selector = Quadratic::new(2, 1);
        answer(&mut selector, 0, A, 0, 10, 1);
        answer(&mut selector, 0, A, 0, 5, 2);
        // 10 + 0.2 × −5 = 9; of all servers 10 + 0.01 × −5 = 9.95.
        assert_eq!(score_ms(&selector, 0, A), 9.0 * 16.0);
        assert_eq!(score_ms(&selector, 50 * MS, A), (9.95 - 0.95 / 2.0) * 16.0);
        // Without a report, the response time.
        selector.servers.sent(B);
        selector.answered(0, B, 20 * MS, None);
        assert_eq!(score_ms(&selector, 0, B), 320.0);
    }

    #[test]
    fn a_slow_server_may_have_the_shorter_queue_only() {
        let mut selector = Quadratic::new(2, 1);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut selector, 0, A, 0, 1, 1);
        answer(&mut selector, 0, B, 0, 3, 1);
        // A: 1 × (4 + N)²; B: 3 × 4² = 48, so A is chosen while (4 + N)² < 48: three times, N = 0, 1, 2.
        let chosen: Vec<Choice> = (0..4).map(|_| selector.choose(0, &candidates, 0)).collect();
        assert_eq!(chosen, [A, A, A, B].map(Choice::Send));
    }

    #[test]
    fn n8_absurd_statuses_change_no_average() {
        let mut selector = Quadratic::new(1, 2);
        answer(&mut selector, 0, A, 2, 4, 1);
        let before = score_ms(&selector, 0, A);
        for (queue, service_us) in [(u16::MAX, 4_000), (2, 0), (2, u32::MAX)] {
            selector.servers.sent(A);
            selector.answered(5, A, 10 * MS, Some(Status { queue, service_us, sequence: 2 }));
        }
        assert_eq!((score_ms(&selector, 0, A), selector.counts().statuses_invalid), (before, 3));
    }
}
