//! Selectors and servers without a network between them: what a selector is worth by itself, and whether ours tell the same story as the
//! public simulator of C3.

use super::random::{Purpose, stream};
use super::{Request, Ring, ServerConfig, Servers, Workload};
use midflight_endpoint::{MS, Nanos};
use midflight_replicas::select::{Algorithm, Candidates, Choice, Oracle, Selector, Server, Status, Truth};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::rc::Rc;

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A selector that could be real.
    Of(Algorithm),
    /// One that knows all servers' true states.
    Oracle,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(algorithm) => algorithm.fmt(f),
            Self::Oracle => f.pad("oracle"),
        }
    }
}

/// A run. A request reaches its server at once, and so does its response its selector.
#[derive(Clone, Debug)]
pub struct Flat {
    /// Who chooses.
    pub scheme: Scheme,
    /// Its clients are the selectors.
    pub workload: Workload,
    /// The servers.
    pub servers: ServerConfig,
    /// Whose replicas they are.
    pub ring: Ring,
    /// Of everything that is drawn. Schemes with the same seed have the same requests and the same speeds of servers.
    pub seed: u64,
}

/// Times from a request's arrival at its selector to its response, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Sorted; all requests.
    times: Vec<Nanos>,
    /// Requests that rate control kept back.
    pub waited: usize,
}

impl Outcome {
    /// Milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.times.iter().map(|&time| time as f64).sum::<f64>() / self.times.len().max(1) as f64 / MS as f64
    }

    /// Milliseconds; `part` of all times are not longer.
    #[must_use]
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let rank = (part * self.times.len() as f64).ceil() as usize;
        self.times.get(rank.saturating_sub(1)).map_or(0.0, |&time| time as f64 / MS as f64)
    }
}

impl Flat {
    /// Runs it until the last response.
    #[must_use]
    pub fn run(&self) -> Outcome {
        World::new(self).run()
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A server has served a request that began at this time.
    Served { server: u16, request: u32, since: Nanos },
    /// Rate control may let the first request of this backlog go.
    Retry { client: u32, group: u32 },
}

struct World<'a> {
    flat: &'a Flat,
    requests: Vec<Request>,
    selectors: Vec<Box<dyn Selector>>,
    servers: Servers<u32>,
    truth: Shared,
    random: Pcg64,
    /// By time, then in the order in which they were planned.
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    planned: u64,
    /// Of each client and replica group, as in the simulator of C3: who waits, waits behind the others.
    backlogs: BTreeMap<(u32, u32), VecDeque<u32>>,
    /// When each request was sent.
    sent: Vec<Nanos>,
    /// Responses of each server.
    sequences: Vec<u16>,
    outcome: Outcome,
}

/// What oracles know: refreshed for the candidates of each choice.
#[derive(Clone)]
struct Shared(Rc<[Cell<f64>]>);

impl Truth for Shared {
    fn expected(&self, server: Server) -> f64 {
        self.0[usize::from(server.0)].get()
    }
}

impl<'a> World<'a> {
    fn new(flat: &'a Flat) -> Self {
        let (servers, clients) = (flat.servers.count, flat.workload.clients.count);
        let truth = Shared((0..servers).map(|_| Cell::new(0.0)).collect());
        let selector = |_| -> Box<dyn Selector> {
            match flat.scheme {
                Scheme::Of(algorithm) => algorithm.selector(servers, clients),
                Scheme::Oracle => Box::new(Oracle::new(servers, truth.clone())),
            }
        };
        let requests = flat.workload.requests(flat.seed);
        Self {
            flat,
            selectors: (0..clients).map(selector).collect(),
            servers: Servers::new(flat.servers, flat.seed),
            truth,
            random: stream(flat.seed, Purpose::Choices, 0),
            events: BinaryHeap::new(),
            planned: 0,
            backlogs: BTreeMap::new(),
            sent: vec![0; requests.len()],
            sequences: vec![0; usize::from(servers)],
            outcome: Outcome { times: Vec::with_capacity(requests.len()), waited: 0 },
            requests,
        }
    }

    fn run(mut self) -> Outcome {
        for i in 0..self.requests.len() {
            let at = self.requests[i].at;
            while self.events.peek().is_some_and(|Reverse((time, _, _))| *time <= at) {
                self.happen();
            }
            self.arrive(at, i as u32);
        }
        while !self.events.is_empty() {
            self.happen();
        }
        self.outcome.times.sort_unstable();
        self.outcome
    }

    fn plan(&mut self, at: Nanos, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    fn happen(&mut self) {
        let Some(Reverse((now, _, event))) = self.events.pop() else { return };
        match event {
            Event::Served { server, request, since } => self.served(now, Server(server), request, now - since),
            Event::Retry { client, group } => self.retry(now, client, group),
        }
    }

    fn arrive(&mut self, now: Nanos, request: u32) {
        let Request { client, key, .. } = self.requests[request as usize];
        let group = self.flat.ring.group(key) as u32;
        if let Some(backlog) = self.backlogs.get_mut(&(client, group)).filter(|backlog| !backlog.is_empty()) {
            backlog.push_back(request);
            self.outcome.waited += 1;
        } else if let Err(until) = self.try_to_send(now, request, group) {
            self.backlogs.entry((client, group)).or_default().push_back(request);
            self.outcome.waited += 1;
            self.plan(until, Event::Retry { client, group });
        }
    }

    fn retry(&mut self, now: Nanos, client: u32, group: u32) {
        while let Some(&request) = self.backlogs.get(&(client, group)).and_then(VecDeque::front) {
            if let Err(until) = self.try_to_send(now, request, group) {
                self.plan(until, Event::Retry { client, group });
                return;
            }
            self.backlogs.get_mut(&(client, group)).and_then(VecDeque::pop_front);
        }
    }

    /// Or when to try again.
    fn try_to_send(&mut self, now: Nanos, request: u32, group: u32) -> Result<(), Nanos> {
        let candidates: Candidates = self.flat.ring.groups()[group as usize];
        if self.flat.scheme == Scheme::Oracle {
            for &server in candidates.servers() {
                self.truth.0[usize::from(server.0)].set(self.servers.expected(now, server));
            }
        }
        let Request { client, work, .. } = self.requests[request as usize];
        match self.selectors[client as usize].choose(now, &candidates, self.random.random()) {
            Choice::Wait(until) => Err(until),
            Choice::Send(server) => {
                self.sent[request as usize] = now;
                if let Some(job) = self.servers.arrived(now, server, request, work) {
                    let served = Event::Served { server: server.0, request: job.request, since: now };
                    self.plan(now + job.service, served);
                }
                Ok(())
            }
        }
    }

    fn served(&mut self, now: Nanos, server: Server, request: u32, service: Nanos) {
        if let Some(next) = self.servers.finished(now, server) {
            self.plan(now + next.service, Event::Served { server: server.0, request: next.request, since: now });
        }
        let sequence = &mut self.sequences[usize::from(server.0)];
        *sequence = sequence.wrapping_add(1);
        let status = Status {
            queue: u16::try_from(self.servers.queue(server)).unwrap_or(u16::MAX),
            service_us: u32::try_from(service.div_ceil(1_000)).unwrap_or(u32::MAX).max(1),
            sequence: *sequence,
        };
        let Request { at, client, .. } = self.requests[request as usize];
        let took = now - self.sent[request as usize];
        self.selectors[client as usize].answered(now, server, took, Some(status));
        self.outcome.times.push(now - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netrs::{Clients, Keys};

    fn outcome(scheme: Scheme, selectors: u32, seed: u64) -> Outcome {
        let clients = Clients::alike(selectors);
        let workload = Workload { requests: 30_000, keys: Keys::Uniform, clients, ..Workload::default() };
        Flat { scheme, workload, servers: ServerConfig::default(), ring: Ring::even(100, 3), seed }.run()
    }

    #[test]
    fn every_request_is_answered_and_a_run_is_repeated_exactly() {
        for scheme in [Scheme::Oracle, Scheme::Of(Algorithm::C3RateControl), Scheme::Of(Algorithm::HotCold)] {
            let first = outcome(scheme, 10, 1);
            assert_eq!(first.times.len(), 30_000);
            assert_eq!(first, outcome(scheme, 10, 1), "{scheme}");
        }
    }

    #[test]
    fn an_idle_server_takes_the_mean_service_time() {
        // 100 requests a second to 100 servers: nobody waits. Half of the servers take 4 ms, half 4/3: 2.67 ms at random. The oracle finds
        // a fast one of three but for one time in eight: 4 / 8 + 4/3 × 7 / 8 = 1.67 ms.
        for (scheme, expected) in [(Scheme::Of(Algorithm::Random), 2.667), (Scheme::Oracle, 1.667)] {
            let clients = Clients::alike(1);
            let workload =
                Workload { requests: 30_000, per_second: 100.0, keys: Keys::Uniform, clients, ..Workload::default() };
            let flat = Flat { scheme, workload, servers: ServerConfig::default(), ring: Ring::even(100, 3), seed: 1 };
            let mean = flat.run().mean_ms();
            assert!((mean / expected - 1.0).abs() < 0.03, "{scheme}: {mean} ms");
        }
    }

    #[test]
    fn selectors_tell_the_published_story() {
        let of = |algorithm, selectors| outcome(Scheme::Of(algorithm), selectors, 2);
        let (c3, lor) = (Algorithm::C3, Algorithm::LeastOutstanding);
        let [few, many] = [10, 500].map(|selectors| of(c3, selectors));
        let oracle = outcome(Scheme::Oracle, 10, 2);
        // Ten selectors see 50 times as much as five hundred: that is NetRS's whole point.
        assert!(1.3 * few.mean_ms() < many.mean_ms() && 1.2 * few.quantile_ms(0.99) < many.quantile_ms(0.99));
        assert!(1.1 * few.mean_ms() < of(lor, 10).mean_ms(), "C3 is better than least outstanding");
        assert!(1.1 * oracle.mean_ms() < few.mean_ms() && 1.1 * oracle.quantile_ms(0.99) < few.quantile_ms(0.99));
    }
}
