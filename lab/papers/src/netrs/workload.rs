//! The requests and their times (section V-A of the paper).

use super::random::{Purpose, hashed, stream};
use midflight_endpoint::{MS, Nanos};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Poisson, Zipf};
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) at: Nanos,
    pub(super) client: u32,
    /// Position on the ring.
    pub(super) key: u64,
    /// In the server's mean service times: equal luck for all schemes.
    pub(super) work: f64,
}

/// The default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Workload {
    pub(super) requests: usize,
    /// A, of all generators.
    pub(super) per_second: f64,
    /// Each has its own process.
    pub(super) generators: u32,
    pub(super) gaps: Gaps,
    pub(super) keys: Keys,
    pub(super) clients: Clients,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gaps {
    /// Exponential: a Poisson process.
    Exact,
    /// Whole milliseconds with a Poisson distribution, as in C3's public simulator, which NetRS extended. All generators start at the same
    /// time.
    Milliseconds,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys {
    /// The key of rank r with probability proportional to r^−exponent.
    Zipf {
        /// Number of keys.
        keys: u64,
        /// Above 0.
        exponent: f64,
    },
    /// Uniform over the ring: no key repeats.
    Uniform,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clients {
    pub(super) count: u32,
    /// Share of requests from the first fifth of the clients; 0.2: all alike.
    pub(super) of_first_fifth: f64,
}

impl Clients {
    #[must_use]
    pub(super) fn alike(count: u32) -> Self {
        Self { count, of_first_fifth: 0.2 }
    }

    fn draw(&self, random: &mut impl Rng) -> u32 {
        let heavy = self.count / 5;
        if heavy == 0 || self.of_first_fifth == 0.2 {
            random.random_range(0..self.count)
        } else if random.random_bool(self.of_first_fifth) {
            random.random_range(0..heavy)
        } else {
            random.random_range(heavy..self.count)
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            requests: 600_000,
            // Utilisation 0.9 of 100 servers with 4 slots, 4 ms each: 0.9 × 100 × 4 / 4 ms.
            per_second: 90_000.0,
            generators: 200,
            gaps: Gaps::Exact,
            keys: Keys::Zipf { keys: 10_000_000, exponent: 0.99 },
            clients: Clients::alike(500),
        }
    }
}

impl Workload {
    /// In time order.
    #[must_use]
    pub(super) fn requests(&self, seed: u64) -> Vec<Request> {
        let mut keys = KeySource::new(self.keys);
        let mut of_keys = stream(seed, Purpose::Keys, 0);
        let mut of_work = stream(seed, Purpose::Work, 0);
        let mut of_clients = stream(seed, Purpose::Clients, 0);
        self.times(seed)
            .into_iter()
            .map(|at| Request {
                at,
                client: self.clients.draw(&mut of_clients),
                key: keys.draw(&mut of_keys),
                work: Exp1.sample(&mut of_work),
            })
            .collect()
    }

    fn times(&self, seed: u64) -> Vec<Nanos> {
        match self.gaps {
            Gaps::Exact => {
                let mut random = stream(seed, Purpose::Arrivals, 0);
                let mean = 1e9 / self.per_second;
                let mut now = 0.0;
                let mut next = || {
                    now += mean * <Exp1 as Distribution<f64>>::sample(&Exp1, &mut random);
                    now as Nanos
                };
                (0..self.requests).map(|_| next()).collect()
            }
            Gaps::Milliseconds => self.whole_milliseconds(seed),
        }
    }

    fn whole_milliseconds(&self, seed: u64) -> Vec<Nanos> {
        let mean = 1e3 / self.per_second * f64::from(self.generators);
        let gap = Poisson::new(mean).expect("a mean that is a number above 0");
        let mut randoms: Vec<Pcg64> = (0..self.generators).map(|i| stream(seed, Purpose::Arrivals, i + 1)).collect();
        // A generator makes a request, then waits.
        let mut next: BinaryHeap<Reverse<(u64, usize)>> = (0..randoms.len()).map(|i| Reverse((0, i))).collect();
        let mut one = || {
            let Reverse((at_ms, i)) = next.pop().unwrap_or_default();
            next.push(Reverse((at_ms + gap.sample(&mut randoms[i]) as u64, i)));
            at_ms * MS
        };
        (0..self.requests).map(|_| one()).collect()
    }
}

enum KeySource {
    Zipf(Zipf<f64>),
    Uniform,
}

impl KeySource {
    fn new(keys: Keys) -> Self {
        match keys {
            // Exact for any number of keys: rejection, no table.
            Keys::Zipf { keys, exponent } => {
                Self::Zipf(Zipf::new(keys as f64, exponent).expect("some keys, and an exponent above 0"))
            }
            Keys::Uniform => Self::Uniform,
        }
    }

    fn draw(&mut self, random: &mut Pcg64) -> u64 {
        match self {
            Self::Zipf(zipf) => hashed(zipf.sample(random) as u64),
            Self::Uniform => random.random(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const SMALL: Workload = Workload {
        requests: 100_000,
        per_second: 90_000.0,
        generators: 200,
        gaps: Gaps::Exact,
        keys: Keys::Uniform,
        clients: Clients { count: 500, of_first_fifth: 0.2 },
    };

    #[test]
    fn requests_come_at_the_rate_in_order_and_with_the_spread_of_a_poisson_process() {
        let requests = SMALL.requests(1);
        assert!(requests.is_sorted_by_key(|request| request.at));
        let seconds = requests[99_999].at as f64 / 1e9;
        assert!((seconds - 100.0 / 90.0).abs() < 0.02, "{seconds}");
        // The requests per millisecond have a variance equal to their mean of 90.
        let mut of_ms = BTreeMap::<u64, f64>::new();
        requests.iter().for_each(|request| *of_ms.entry(request.at / MS).or_default() += 1.0);
        let variance = of_ms.values().map(|n| (n - 90.0) * (n - 90.0)).sum::<f64>() / of_ms.len() as f64;
        assert!((75.0..105.0).contains(&variance), "{variance}");
        let mean = requests.iter().map(|request| request.work).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn the_grid_has_the_same_rate_in_whole_milliseconds() {
        let requests = Workload { gaps: Gaps::Milliseconds, ..SMALL }.requests(1);
        assert!(requests.is_sorted_by_key(|request| request.at));
        assert!(requests.iter().all(|request| request.at % MS == 0));
        let seconds = requests[99_999].at as f64 / 1e9;
        assert!((seconds - 100.0 / 90.0).abs() < 0.02, "{seconds}");
        assert!(requests[..200].iter().all(|request| request.at == 0), "all generators begin at 0");
    }

    #[test]
    fn keys_of_low_rank_come_as_often_as_zipf_says() {
        let keys = Keys::Zipf { keys: 10_000_000, exponent: 0.99 };
        let requests = Workload { keys, ..SMALL }.requests(3);
        // The sum of r^−0.99 to 10⁷ is 18.07 (computed): 5.53 % for rank 1, 2.79 % for 2, 5.53 % × 100^−0.99 = 0.058 % for 100.
        let sum: f64 = (1..=10_000_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1_u64, 2, 10, 100] {
            let expected = (rank as f64).powf(-0.99) / sum * 100_000.0;
            let seen = requests.iter().filter(|request| request.key == hashed(rank)).count() as f64;
            assert!((seen - expected).abs() < 4.0 * expected.sqrt(), "rank {rank}: {seen}, expected {expected}");
        }
    }

    #[test]
    fn a_fifth_of_the_clients_has_the_part_that_it_should() {
        for of_first_fifth in [0.2, 0.7, 0.9] {
            let requests = Workload { clients: Clients { count: 500, of_first_fifth }, ..SMALL }.requests(4);
            let part = requests.iter().filter(|request| request.client < 100).count() as f64 / 100_000.0;
            assert!((part - of_first_fifth).abs() < 0.01, "{part} of {of_first_fifth}");
            assert!(requests.iter().all(|request| request.client < 500));
        }
    }
}
