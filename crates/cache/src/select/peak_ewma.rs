//! Peak-EWMA: Finagle's `PeakEwma.scala` with its balancer of two choices (`P2CPeakEwma`).

use super::decay::{decay, float};
use super::pick::{either, either_number, two};
use super::servers::{Servers, kept_in_servers};
use super::{Candidates, Choice, Learned, Selector, Server, Status};
use midflight_endpoint::{Nanos, SECOND};

/// Time in which an old cost decays to 1/e: Finagle's default `decayTime`.
const DECAY: Nanos = 10 * SECOND;

/// Load of a server that has requests but never answered. Finagle's too: above any cost, and exact as a float.
const PENALTY: f64 = (i64::MAX >> 16) as f64;

/// Of two random candidates, chooses the one with the lower cost × (outstanding + 1). The cost jumps to a longer response time at once,
/// and moves to a shorter one with weight 1 − e^(−Δt / `DECAY`), Δt after the last response. Without responses it decays towards 0, so a
/// slow server is tried again. Reports are not used.
///
/// Finagle stores the decayed cost at each read of a load; computing it gives the same result, because decays multiply.
#[derive(Clone, Debug)]
pub struct PeakEwma {
    servers: Servers<Cost>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Nanoseconds.
    cost: f64,
    at: Nanos,
}

impl PeakEwma {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::new(servers) }
    }

    /// Compares two loads. Computes only the decay between their last responses, because the rest is common to both.
    fn is_lower(&self, now: Nanos, one: Server, other: Server) -> bool {
        let (Some(own), Some(others)) = (self.servers.own(one), self.servers.own(other)) else {
            return self.load(now, one) < self.load(now, other);
        };
        if own.cost == 0.0 || others.cost == 0.0 {
            return self.load(now, one) < self.load(now, other);
        }
        let load = |server: Server, cost: f64| cost * (f64::from(self.servers.outstanding(server)) + 1.0);
        let weight = decay(float(own.at.abs_diff(others.at)) * (1.0 / DECAY as f64));
        let is_older = own.at < others.at;
        let (own, others) = (load(one, own.cost), load(other, others.cost));
        own * either_number(is_older, weight, 1.0) < others * either_number(is_older, 1.0, weight)
    }

    fn load(&self, now: Nanos, server: Server) -> f64 {
        let outstanding = f64::from(self.servers.outstanding(server));
        let cost = self.servers.own(server).map_or(0.0, |own| own.decayed(now));
        if cost == 0.0 && outstanding > 0.0 { PENALTY + outstanding } else { cost * (outstanding + 1.0) }
    }
}

impl Cost {
    fn weight(&self, now: Nanos) -> f64 {
        decay(float(now.saturating_sub(self.at)) * (1.0 / DECAY as f64))
    }

    fn decayed(&self, now: Nanos) -> f64 {
        self.cost * self.weight(now)
    }
}

impl Selector for PeakEwma {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        // The pair's order is random, so ties are too.
        let [first, second] = two(candidates, random);
        let server = either(self.is_lower(now, second, first), second, first);
        self.servers.sent(server);
        Choice::Send(server)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        let Some(answer) = self.servers.answered(now, server, took, status) else { return };
        let weight = answer.own.weight(now);
        let is_peak = answer.took > answer.own.cost;
        answer.own.cost = if is_peak { answer.took } else { answer.own.cost * weight + answer.took * (1.0 - weight) };
        answer.own.at = now;
    }

    fn learned(&self, now: Nanos, server: Server) -> Option<Learned> {
        let cost = self.servers.see(now, server).known?;
        Some(Learned { response: Some(cost.decayed(now)), score: Some(self.load(now, server)), ..Learned::default() })
    }

    kept_in_servers!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;

    const A: Server = Server(0);
    const B: Server = Server(1);

    fn load_ms(ewma: &PeakEwma, now: Nanos, server: Server) -> f64 {
        ewma.load(now, server) / MS as f64
    }

    fn answer(ewma: &mut PeakEwma, now: Nanos, server: Server, took: Nanos) {
        ewma.servers.sent(server);
        ewma.answered(now, server, took, None);
    }

    #[test]
    fn the_cost_jumps_up_and_comes_down_slowly() {
        let mut ewma = PeakEwma::new(2);
        answer(&mut ewma, 0, A, 8 * MS);
        assert!((load_ms(&ewma, 0, A) - 8.0).abs() < 1e-6);
        // A longer one counts fully at once: 20 ms.
        answer(&mut ewma, 0, A, 20 * MS);
        assert!((load_ms(&ewma, 0, A) - 20.0).abs() < 1e-6);
        // 10 s later, w = e⁻¹ = 0.36788: 20 × 0.36788 + 4 × 0.63212 = 9.886 ms.
        answer(&mut ewma, DECAY, A, 4 * MS);
        assert!((load_ms(&ewma, DECAY, A) - 9.886).abs() < 0.001);
        // And untouched for 20 s: 9.886 × e⁻² = 1.338 ms.
        assert!((load_ms(&ewma, 3 * DECAY, A) - 1.338).abs() < 0.001);
    }

    #[test]
    fn the_load_is_the_cost_of_one_more_request() {
        let mut ewma = PeakEwma::new(2);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut ewma, 0, A, 3 * MS);
        answer(&mut ewma, 0, B, 8 * MS);
        // A: 3 × 1, then 3 × 2, then 3 × 3 = 9 against 8 × 1.
        let chosen: Vec<Choice> = (0..3).map(|_| ewma.choose(0, &candidates, u64::MAX)).collect();
        assert_eq!(chosen, [A, A, B].map(Choice::Send));
    }

    #[test]
    fn a_server_that_never_answered_is_tried_once() {
        let mut ewma = PeakEwma::new(2);
        let candidates = Candidates::new(&[A, B]).unwrap();
        answer(&mut ewma, 0, A, SECOND);
        // B is unknown: load 0. With an outstanding request: the penalty.
        assert_eq!(ewma.choose(0, &candidates, 0), Choice::Send(B));
        let all_a: Vec<Choice> = (0..1_000).map(|_| ewma.choose(0, &candidates, 0)).collect();
        assert!(all_a.iter().all(|&choice| choice == Choice::Send(A)));
    }
}
