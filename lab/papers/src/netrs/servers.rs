//! Servers of a key-value store with changing speed: each has slots and a queue and at the end of each interval becomes fast or slow at
//! random (section V-A).

use super::random::{Purpose, stream};
use midflight_cache::select::Server;
use midflight_endpoint::{MS, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::VecDeque;

/// The default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ServerConfig {
    /// N_s.
    pub(super) count: u16,
    /// N_p.
    pub(super) slots: usize,
    /// t_kv of a slow server.
    pub(super) service: Nanos,
    /// d.
    pub(super) range: f64,
    pub(super) interval: Nanos,
    pub(super) flips: Flips,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flips {
    /// Each at its own times, an interval apart.
    Independent,
    /// All at the same times, as in C3's public simulator; the speeds are independent.
    Together,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { count: 100, slots: 4, service: 4 * MS, range: 3.0, interval: 50 * MS, flips: Flips::Independent }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Job<T> {
    pub(super) request: T,
    pub(super) service: Nanos,
}

/// The caller keeps the time and calls [`Servers::finished`] when a job's service ends.
#[derive(Clone, Debug)]
pub(super) struct Servers<T> {
    config: ServerConfig,
    servers: Vec<One<T>>,
}

#[derive(Clone, Debug)]
struct One<T> {
    busy: usize,
    /// Each with its work, in mean service times.
    waiting: VecDeque<(T, f64)>,
    speed: Speed,
}

#[derive(Clone, Debug)]
struct Speed {
    random: Pcg64,
    /// Offset of its intervals.
    phase: Nanos,
    /// Interval in which `is_fast` was drawn.
    interval: Option<u64>,
    is_fast: bool,
}

impl<T> Servers<T> {
    #[must_use]
    pub(super) fn new(config: ServerConfig, seed: u64) -> Self {
        let one = |i| {
            let mut random = stream(seed, Purpose::Speeds, u32::from(i));
            let phase = random.random_range(0..config.interval);
            let phase = if config.flips == Flips::Together { 0 } else { phase };
            let speed = Speed { random, phase, interval: None, is_fast: false };
            One { busy: 0, waiting: VecDeque::new(), speed }
        };
        Self { config, servers: (0..config.count).map(one).collect() }
    }

    /// Returns the request if it enters service now.
    pub(super) fn arrived(&mut self, now: Nanos, server: Server, request: T, work: f64) -> Option<Job<T>> {
        let one = &mut self.servers[usize::from(server.0)];
        if one.busy == self.config.slots {
            one.waiting.push_back((request, work));
            return None;
        }
        one.busy += 1;
        Some(Job { request, service: one.speed.service(&self.config, now, work) })
    }

    /// Frees a slot for the first waiting request.
    pub(super) fn finished(&mut self, now: Nanos, server: Server) -> Option<Job<T>> {
        let one = &mut self.servers[usize::from(server.0)];
        let Some((request, work)) = one.waiting.pop_front() else {
            one.busy -= 1;
            return None;
        };
        Some(Job { request, service: one.speed.service(&self.config, now, work) })
    }

    #[must_use]
    pub(super) fn queue(&self, server: Server) -> usize {
        self.servers[usize::from(server.0)].waiting.len()
    }

    /// Expected nanoseconds of another request, if the server kept its speed and `coming` requests arrived first. While all slots are busy,
    /// one is freed every service time / slots.
    pub(super) fn expected(&mut self, now: Nanos, server: Server, coming: u32) -> f64 {
        let one = &mut self.servers[usize::from(server.0)];
        let mean = one.speed.mean(&self.config, now);
        let ahead = (one.busy + one.waiting.len() + coming as usize + 1).saturating_sub(self.config.slots);
        mean * (1.0 + ahead as f64 / self.config.slots as f64)
    }
}

impl Speed {
    fn mean(&mut self, config: &ServerConfig, now: Nanos) -> f64 {
        let interval = (now + self.phase) / config.interval;
        // Draws every interval, so the result does not depend on calls in between.
        while self.interval.is_none_or(|drawn| drawn < interval) {
            self.interval = Some(self.interval.map_or(0, |drawn| drawn + 1));
            self.is_fast = self.random.random_bool(0.5);
        }
        let slow = config.service as f64;
        if self.is_fast { slow / config.range } else { slow }
    }

    fn service(&mut self, config: &ServerConfig, now: Nanos, work: f64) -> Nanos {
        (self.mean(config, now) * work) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONLY: Server = Server(0);

    #[test]
    fn slots_serve_and_others_wait_in_order() {
        let mut servers = Servers::new(ServerConfig { count: 1, slots: 2, range: 1.0, ..ServerConfig::default() }, 1);
        assert_eq!(servers.arrived(0, ONLY, 'a', 1.0), Some(Job { request: 'a', service: 4 * MS }));
        assert_eq!(servers.arrived(0, ONLY, 'b', 0.5), Some(Job { request: 'b', service: 2 * MS }));
        // Both slots are busy: the next request waits half a service time, the one after it a whole one.
        assert_eq!(servers.expected(0, ONLY, 0), 6e6);
        assert_eq!((servers.arrived(0, ONLY, 'c', 1.0), servers.arrived(0, ONLY, 'd', 2.0)), (None, None));
        assert_eq!((servers.queue(ONLY), servers.expected(0, ONLY, 0)), (2, 10e6));
        assert_eq!(servers.finished(2 * MS, ONLY), Some(Job { request: 'c', service: 4 * MS }));
        assert_eq!(servers.finished(4 * MS, ONLY), Some(Job { request: 'd', service: 8 * MS }));
        assert_eq!((servers.finished(6 * MS, ONLY), servers.finished(12 * MS, ONLY)), (None, None));
        assert_eq!(servers.expected(12 * MS, ONLY, 0), 4e6);
    }

    #[test]
    fn servers_are_fast_half_of_the_time_and_change_each_by_itself() {
        for flips in [Flips::Independent, Flips::Together] {
            let mut servers = Servers::<()>::new(ServerConfig { flips, ..ServerConfig::default() }, 2);
            let (mut fast, mut changes, mut at_once) = (0, 0, 0);
            let mut before: Vec<bool> = (0..100).map(|i| servers.expected(0, Server(i), 0) < 2e6).collect();
            for ms in 0..5_000 {
                let now = ms * MS;
                let is_fast: Vec<bool> = (0..100).map(|i| servers.expected(now, Server(i), 0) < 2e6).collect();
                fast += is_fast.iter().filter(|&&fast| fast).count();
                let changed = before.iter().zip(&is_fast).filter(|(a, b)| a != b).count();
                changes += changed;
                at_once = at_once.max(changed);
                before = is_fast;
            }
            // Half of 500,000; a change with probability 1/2 at the end of each of 100 × 100 intervals.
            assert!((230_000..270_000).contains(&fast), "{fast}");
            assert!((4_700..5_300).contains(&changes), "{changes}");
            assert_eq!(at_once > 30, flips == Flips::Together, "{at_once} at once");
        }
    }
}
