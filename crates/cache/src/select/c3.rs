//! C3: Suresh, Canini, Schmid, Feldmann, "C3: Cutting Tail Latency in Cloud Data Stores via Adaptive Replica Selection", NSDI 2015.
//! Replica ranking (section 3.1); `rate` has the rate control (section 3.2).

use super::pick::least_score;
use super::rate::Rate;
use super::servers::{Seen, Servers, kept_in_servers};
use super::{CANDIDATES_MAX, Candidates, Choice, Learned, Selector, Server, Status};
use midflight_endpoint::Nanos;

/// Weight of the newest value in all averages: `alpha` in the authors' simulator, `ALPHA` in their Cassandra.
pub(super) const NEWEST: f64 = 0.9;

/// Score of a server without estimates, per outstanding request. Above any Ψ, which stays below 10⁴⁵ even with a minute of service, a
/// million selectors and 65,536 outstanding requests.
const UNKNOWN: f64 = 1e60;

/// Chooses the candidate with the least Ψ = R̄ − s̄ + q̂³·s̄. R̄ averages the response times, s̄ the reported service times (1/µ̄), q̄
/// the reported queue. q̂ = 1 + outstanding·n + q̄ estimates the queue, assuming that all n selectors have as many requests outstanding.
/// The cube avoids long queues, also of fast servers.
///
/// A server without estimates is tried with one request, and is ranked last until that is answered or expires. (The published
/// implementations give it score 0, so it gets every request until its first response.) If a server reports no status, R̄ replaces s̄.
#[derive(Clone, Debug)]
pub struct C3 {
    servers: Servers<Estimate>,
    /// n.
    selectors: f64,
    rates: Option<Box<[Rate]>>,
}

/// Averages, in nanoseconds and requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// R̄.
    response: f64,
    /// s̄; 0: never reported.
    service: f64,
    /// q̄.
    queue: f64,
}

impl C3 {
    /// Without rate control, for `servers` servers that `selectors` selectors share.
    #[must_use]
    pub fn new(servers: u16, selectors: u32) -> Self {
        Self { servers: Servers::new(servers), selectors: f64::from(selectors), rates: None }
    }

    /// With rate control.
    #[must_use]
    pub fn with_rate_control(servers: u16, selectors: u32) -> Self {
        let rates = vec![Rate::default(); usize::from(servers)].into_boxed_slice();
        Self { rates: Some(rates), ..Self::new(servers, selectors) }
    }

    fn score(&self, now: Nanos, server: Server) -> f64 {
        let Seen { outstanding, known, .. } = self.servers.see(now, server);
        match known {
            Some(estimate) => estimate.score(outstanding, self.selectors, estimate.queue),
            None => unknown(outstanding),
        }
    }
}

pub(super) fn unknown(outstanding: u32) -> f64 {
    if outstanding == 0 { f64::NEG_INFINITY } else { UNKNOWN * f64::from(outstanding) }
}

impl Estimate {
    /// Ψ, with `queue` for q̄.
    pub(super) fn score(&self, outstanding: u32, selectors: f64, queue: f64) -> f64 {
        let expected = 1.0 + f64::from(outstanding) * selectors + queue;
        let service = if self.service > 0.0 { self.service } else { self.response };
        self.response - service + expected * expected * expected * service
    }

    pub(super) fn queue(&self) -> f64 {
        self.queue
    }

    pub(super) fn learned(&self, score: f64) -> Learned {
        let said = |value: f64| (self.service > 0.0).then_some(value);
        Learned {
            response: Some(self.response),
            service: said(self.service),
            queue: said(self.queue),
            score: Some(score),
        }
    }

    /// `queue_weight` is the weight of the newest queue.
    pub(super) fn learn(&mut self, took: f64, status: Option<Status>, is_first: bool, queue_weight: f64) {
        if is_first {
            *self = Self { response: took, ..Self::default() };
        }
        self.response = mean(self.response, took, NEWEST);
        let Some(status) = status else { return };
        let queue = f64::from(status.queue);
        if self.service == 0.0 {
            (self.service, self.queue) = (status.service(), queue);
        } else {
            self.service = mean(self.service, status.service(), NEWEST);
            self.queue = mean(self.queue, queue, queue_weight);
        }
    }
}

fn mean(old: f64, newest: f64, weight: f64) -> f64 {
    weight * newest + (1.0 - weight) * old
}

impl Selector for C3 {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let choice = match &self.rates {
            None => Choice::Send(least_score(candidates, random, |server| self.score(now, server))),
            Some(_) => self.choose_with_token(now, candidates, random),
        };
        if let Choice::Send(server) = choice {
            self.servers.sent(server);
        }
        choice
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        let Some(answer) = self.servers.answered(now, server, took, status) else { return };
        answer.own.learn(answer.took, answer.status, answer.is_first, NEWEST);
        if let Some(rate) = self.rates.as_mut().and_then(|rates| rates.get_mut(usize::from(server.0))) {
            rate.answered(now);
        }
    }

    fn set_selectors(&mut self, selectors: u32) {
        self.selectors = f64::from(selectors);
    }

    fn learned(&self, now: Nanos, server: Server) -> Option<Learned> {
        self.servers.see(now, server).known.map(|estimate| estimate.learned(self.score(now, server)))
    }

    kept_in_servers!();
}

impl C3 {
    /// Algorithm 1: the best candidate with a token; if none has one, when the first token comes.
    fn choose_with_token(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let best = least_score(candidates, random, |server| self.score(now, server));
        // Usually the best has a token, and the others need not be sorted.
        let mut earliest = match self.take_token(now, best) {
            Ok(()) => return Choice::Send(best),
            Err(at) => at,
        };
        let mut others = [(0.0, best); CANDIDATES_MAX];
        let mut count = 0;
        for &server in candidates.servers().iter().filter(|&&server| server != best) {
            others[count] = (self.score(now, server), server);
            count += 1;
        }
        others[..count].sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        for &(_, server) in &others[..count] {
            match self.take_token(now, server) {
                Ok(()) => return Choice::Send(server),
                Err(at) => earliest = earliest.min(at),
            }
        }
        Choice::Wait(earliest)
    }

    fn take_token(&mut self, now: Nanos, server: Server) -> Result<(), Nanos> {
        let rate = self.rates.as_mut().and_then(|rates| rates.get_mut(usize::from(server.0)));
        rate.map_or(Ok(()), |rate| rate.take(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;

    const A: Server = Server(0);
    const B: Server = Server(1);

    fn status(queue: u16, service_ms: u32, sequence: u16) -> Option<Status> {
        Some(Status { queue, service_us: service_ms * 1_000, sequence })
    }

    fn answer(c3: &mut C3, server: Server, took: Nanos, status: Option<Status>) {
        c3.servers.sent(server);
        c3.answered(0, server, took, status);
    }

    fn score_ms(c3: &C3, server: Server) -> f64 {
        c3.score(0, server) / MS as f64
    }

    #[test]
    fn the_score_is_the_published_one() {
        let mut c3 = C3::new(2, 10);
        answer(&mut c3, A, 10 * MS, status(2, 4, 1));
        // R̄ = 10, s̄ = 4, q̂ = 1 + 0 × 10 + 2 = 3: Ψ = 10 − 4 + 27 × 4 = 114.
        assert_eq!(score_ms(&c3, A), 114.0);
        let learned = c3.learned(0, A).unwrap();
        let ms = |nanos: Option<f64>| nanos.map(|nanos| nanos / MS as f64);
        assert_eq!((ms(learned.response), ms(learned.service), learned.queue), (Some(10.0), Some(4.0), Some(2.0)));
        assert_eq!((ms(learned.score), c3.learned(0, B)), (Some(114.0), None));
        // One outstanding, 10 selectors: q̂ = 1 + 10 + 2 = 13; Ψ = 6 + 2,197 × 4 = 8,794.
        c3.servers.sent(A);
        assert_eq!(score_ms(&c3, A), 8_794.0);
        // Answer after 20 ms: queue 7, service 2. R̄ = 0.9 × 20 + 0.1 × 10 = 19, s̄ = 1.8 + 0.4 = 2.2, q̄ = 6.3 + 0.2 = 6.5, q̂ = 7.5: Ψ
        // = 19 − 2.2 + 421.875 × 2.2 = 944.925.
        c3.answered(0, A, 20 * MS, status(7, 2, 2));
        assert!((score_ms(&c3, A) - 944.925).abs() < 1e-9);
    }

    #[test]
    fn a_server_that_reports_a_longer_service_is_worse() {
        // Same response time and queue; s̄ is a time and not a rate (1/s̄): 20 − 2 + 1 × 2 = 20 = 20 − 4 + 4 with an empty queue, but
        // with a queue of 1, q̂ = 2: 20 − 2 + 8 × 2 = 34, and 20 − 4 + 8 × 4 = 48.
        let mut c3 = C3::new(2, 1);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut c3, A, 20 * MS, status(1, 4, 1));
        answer(&mut c3, B, 20 * MS, status(1, 2, 1));
        assert_eq!((score_ms(&c3, A), score_ms(&c3, B)), (48.0, 34.0));
        for random in [0, u64::MAX] {
            let mut c3 = c3.clone();
            assert_eq!(c3.choose(0, &candidates, random), Choice::Send(B));
        }
    }

    #[test]
    fn the_cube_prefers_a_slow_server_with_a_short_queue() {
        // 4 ms with an empty queue: 4 − 4 + 1 × 4 = 4. 1 ms with a queue of 2: 3 − 1 + 27 × 1 = 29, though those two take less than 4 ms.
        let mut c3 = C3::new(2, 1);
        answer(&mut c3, A, 4 * MS, status(0, 4, 1));
        answer(&mut c3, B, 3 * MS, status(2, 1, 1));
        assert_eq!((score_ms(&c3, A), score_ms(&c3, B)), (4.0, 29.0));
    }

    #[test]
    fn a_server_without_statistics_is_tried_and_not_flooded() {
        let mut c3 = C3::new(2, 1);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut c3, A, MS, status(0, 1, 1));
        assert_eq!(c3.choose(0, &candidates, 0), Choice::Send(B));
        for _ in 0..1_000 {
            assert_eq!(c3.choose(0, &candidates, 0), Choice::Send(A));
        }
        c3.expired(0, B);
        assert_eq!(c3.choose(0, &candidates, 0), Choice::Send(B), "once more, after it expired");
    }

    /// With 500 selectors, as in NetRS's evaluation, a live server with a few outstanding requests has a large score.
    #[test]
    fn a_dead_server_is_last_however_loaded_the_others_are() {
        let mut c3 = C3::new(2, 500);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut c3, A, 10 * MS, status(2, 4, 1));
        assert_eq!(c3.choose(0, &candidates, 0), Choice::Send(B), "it is tried, and does not answer");
        for _ in 0..1_000 {
            assert_eq!(c3.choose(0, &candidates, 0), Choice::Send(A));
        }
    }

    #[test]
    fn without_any_status_it_ranks_by_response_time_and_own_requests() {
        // s̄ = R̄, q̄ = 0: Ψ = q̂³·R̄. A: 1 × 9; B: 1 × 2, then 8 × 2 = 16.
        let mut c3 = C3::new(2, 1);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut c3, A, 9 * MS, None);
        answer(&mut c3, B, 2 * MS, None);
        let chosen: Vec<Choice> = (0..2).map(|_| c3.choose(0, &candidates, 0)).collect();
        assert_eq!(chosen, [B, A].map(Choice::Send));
    }

    #[test]
    fn n8_absurd_statuses_change_no_average() {
        let mut c3 = C3::new(1, 1);
        answer(&mut c3, A, 10 * MS, status(2, 4, 1));
        for (queue, service_us) in [(u16::MAX, 4_000), (2, 0), (2, u32::MAX)] {
            answer(&mut c3, A, 10 * MS, Some(Status { queue, service_us, sequence: 2 }));
        }
        assert_eq!((score_ms(&c3, A), c3.counts().statuses_invalid), (114.0, 3));
    }

    #[test]
    fn without_a_token_the_next_of_the_ranking_is_chosen_and_at_last_none() {
        let mut c3 = C3::with_rate_control(2, 1);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut c3, A, MS, status(0, 1, 1));
        answer(&mut c3, B, MS, status(0, 9, 1));
        // Each bucket starts with 10 tokens. A's queue grows with each, so both alternate; that makes 20.
        let chosen: Vec<Choice> = (0..21).map(|_| c3.choose(MS, &candidates, 0)).collect();
        let sent = |server| chosen.iter().filter(|&&choice| choice == Choice::Send(server)).count();
        assert_eq!((sent(A), sent(B)), (10, 10));
        // The first response raised the rate from 5 to 10 − 0.2 × 10 = 8 requests in 20 ms: the next token comes 2.5 ms later.
        let Choice::Wait(until) = chosen[20] else { panic!("{:?}", chosen[20]) };
        assert_eq!(until, 3_500_000);
        assert_eq!((c3.outstanding(A), c3.outstanding(B)), (10, 10), "what waits is not outstanding");
        assert!(matches!(c3.choose(until, &candidates, 0), Choice::Send(_)));
    }
}
