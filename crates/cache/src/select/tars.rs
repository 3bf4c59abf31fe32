//! After Tars: Jiang, Fang, Xie, Zhou, Wang, "Tars: Timeliness-aware Adaptive Replica Selection for Key-Value Stores", ICCCN 2017. A
//! queue report loses value with age, whereas C3 averages reports of any age.

use super::c3::{Estimate, unknown};
use super::decay::float;
use super::pick::least_score;
use super::servers::{Seen, Servers, kept_in_servers};
use super::{Candidates, Choice, Learned, Selector, Server, Status};
use midflight_endpoint::{MS, Nanos};

/// Age at which a report's difference from the long average counts half: about the time to empty a short queue of millisecond requests.
/// Ours; Tars uses arrival and service rates, which our servers do not report.
const HALF_AGE: Nanos = 20 * MS;

const HALF: f64 = HALF_AGE as f64;

/// Weight of a report in the long average of a server's queue. Ours.
const LONG: f64 = 0.05;

/// C3's Ψ with q̂ = 1 + outstanding·n + q̄ + (q − q̄) / (1 + age / `HALF_AGE`), where q is the last reported queue, and q̄ a long
/// average. A new report counts fully; an old one tends to the average.
#[derive(Clone, Debug)]
pub struct Tars {
    servers: Servers<Aged>,
    /// n.
    selectors: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Aged {
    estimate: Estimate,
    queue: f64,
    at: Nanos,
}

impl Aged {
    fn queue(&self, now: Nanos) -> f64 {
        let age = float(now.saturating_sub(self.at));
        let usual = self.estimate.queue();
        usual + (self.queue - usual) * HALF / (HALF + age)
    }
}

impl Tars {
    /// For `servers` servers that `selectors` selectors share.
    #[must_use]
    pub fn new(servers: u16, selectors: u32) -> Self {
        Self { servers: Servers::new(servers), selectors: f64::from(selectors) }
    }

    fn score(&self, now: Nanos, server: Server) -> f64 {
        let Seen { outstanding, known, .. } = self.servers.see(now, server);
        match known {
            Some(aged) => aged.estimate.score(outstanding, self.selectors, aged.queue(now)),
            None => unknown(outstanding),
        }
    }
}

impl Selector for Tars {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = least_score(candidates, random, |server| self.score(now, server));
        self.servers.sent(server);
        Choice::Send(server)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        let Some(answer) = self.servers.answered(now, server, took, status) else { return };
        if answer.is_first {
            *answer.own = Aged::default();
        }
        answer.own.estimate.learn(answer.took, answer.status, answer.is_first, LONG);
        if let Some(status) = answer.status {
            (answer.own.queue, answer.own.at) = (f64::from(status.queue), now);
        }
    }

    fn set_selectors(&mut self, selectors: u32) {
        self.selectors = f64::from(selectors);
    }

    fn learned(&self, now: Nanos, server: Server) -> Option<Learned> {
        let aged = self.servers.see(now, server).known?;
        Some(Learned { queue: Some(aged.queue(now)), ..aged.estimate.learned(self.score(now, server)) })
    }

    kept_in_servers!();
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Server = Server(0);

    fn answer(tars: &mut Tars, queue: u16, sequence: u16) {
        tars.servers.sent(A);
        tars.answered(0, A, 10 * MS, Some(Status { queue, service_us: 4_000, sequence }));
    }

    fn score_ms(tars: &Tars, now: Nanos) -> f64 {
        tars.score(now, A) / MS as f64
    }

    #[test]
    fn a_fresh_report_counts_whole_and_an_old_one_turns_into_the_usual() {
        let mut tars = Tars::new(1, 1);
        answer(&mut tars, 1, 1);
        answer(&mut tars, 9, 2);
        // q̄ = 0.05 × 9 + 0.95 × 1 = 1.4. Now: q̂ = 1 + 9 = 10, Ψ = 10 − 4 + 1,000 × 4 = 4,006.
        assert!((score_ms(&tars, 0) - 4_006.0).abs() < 1e-9);
        // At the half age: 1.4 + 7.6 / 2 = 5.2; q̂ = 6.2, cubed 238.328: Ψ = 6 + 953.312.
        assert!((score_ms(&tars, HALF_AGE) - 959.312).abs() < 1e-9);
        // Three half ages: 1.4 + 7.6 / 4 = 3.3; q̂ = 4.3, cubed 79.507: Ψ = 6 + 318.028.
        assert!((score_ms(&tars, 3 * HALF_AGE) - 324.028).abs() < 1e-9);
    }

    #[test]
    fn own_requests_count_for_all_selectors_as_in_c3() {
        let mut tars = Tars::new(1, 10);
        answer(&mut tars, 2, 1);
        tars.servers.sent(A);
        // q̂ = 1 + 10 + 2 = 13: Ψ = 6 + 2,197 × 4.
        assert!((score_ms(&tars, 0) - 8_794.0).abs() < 1e-9);
    }
}
