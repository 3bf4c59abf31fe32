//! C3 with floating point, which accepts the core's choice if it is as good.

use midflight_cache::select::{C3, Candidates, Choice, Counts, ESTIMATE_LIFETIME, Selector, Server, Status};
use midflight_endpoint::{Nanos, SECOND};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Scores within this share count as equal. The core's numbers have 32 bits.
const SAME: f64 = 1e-6;

/// A second copy of a server's averages, because C3 does not expose its scores.
#[derive(Clone, Copy, Debug, Default)]
struct Mirror {
    known_until: Nanos,
    response: f64,
    service: f64,
    queue: f64,
}

pub(crate) struct Lenient {
    c3: C3,
    selectors: f64,
    mirrors: Vec<Mirror>,
    /// The core's choice.
    forced: Arc<AtomicU32>,
}

impl Lenient {
    pub(crate) fn new(servers: u16, selectors: u32) -> Self {
        Self {
            c3: C3::new(servers, selectors),
            selectors: selectors.into(),
            mirrors: vec![Mirror::default(); servers.into()],
            forced: Arc::default(),
        }
    }

    pub(crate) fn forced(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.forced)
    }

    fn score(&self, now: Nanos, server: Server) -> f64 {
        let (mirror, outstanding) = (self.mirrors[usize::from(server.0)], self.c3.outstanding(server));
        if now >= mirror.known_until {
            return if outstanding == 0 { f64::NEG_INFINITY } else { 1e60 * f64::from(outstanding) };
        }
        let expected = 1.0 + f64::from(outstanding) * self.selectors + mirror.queue;
        let service = if mirror.service > 0.0 { mirror.service } else { mirror.response };
        mirror.response - service + expected * expected * expected * service
    }
}

impl Selector for Lenient {
    /// If scores differ, both choose the same.
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let chosen = Server(self.forced.load(Ordering::Relaxed) as u16);
        if self.c3.clone().choose(now, candidates, random) != Choice::Send(chosen) {
            let scores: Vec<f64> = candidates.servers().iter().map(|&server| self.score(now, server)).collect();
            let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
            let score = self.score(now, chosen);
            assert!(score <= least + SAME * least.abs(), "{chosen:?} with {score} of {scores:?}");
        }
        self.c3.choose(now, &Candidates::new(&[chosen]).expect("one"), 0)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        let disbelieved = |counts: Counts| counts.statuses_invalid + counts.statuses_outdated;
        let before = disbelieved(self.c3.counts());
        self.c3.answered(now, server, took, status);
        let status = status.filter(|_| disbelieved(self.c3.counts()) == before);
        let mirror = &mut self.mirrors[usize::from(server.0)];
        let took = took.min(60 * SECOND) as f64;
        if now >= mirror.known_until {
            *mirror = Mirror { response: took, ..Mirror::default() };
        }
        mirror.known_until = now + ESTIMATE_LIFETIME;
        mirror.response = 0.9 * took + 0.1 * mirror.response;
        let Some(status) = status else { return };
        let (service, queue) = (f64::from(status.service_us) * 1_000.0, f64::from(status.queue));
        if mirror.service == 0.0 {
            (mirror.service, mirror.queue) = (service, queue);
        } else {
            mirror.service = 0.9 * service + 0.1 * mirror.service;
            mirror.queue = 0.9 * queue + 0.1 * mirror.queue;
        }
    }

    fn expired(&mut self, now: Nanos, server: Server) {
        self.c3.expired(now, server);
    }

    fn outstanding(&self, server: Server) -> u32 {
        self.c3.outstanding(server)
    }

    fn counts(&self) -> Counts {
        self.c3.counts()
    }

    fn set_selectors(&mut self, selectors: u32) {
        self.c3.set_selectors(selectors);
    }
}
