use super::cell::{self, Arrivals, BUCKET_MS, Cell, CellError, CellResult, Keyspace, Placement, REPLICATION};
use super::deployment::Deployment;
use super::placing::{self, Placing};
use super::ring::Ring;
use super::servers::{Flips, ServerConfig};
use super::tree::Tree;
use super::workload::{Clients, Gaps, Keys, Request, Workload};
use super::world::{Ran, World};
use crate::cell::{Percentiles, QUANTILES};
use midflight_endpoint::{MS, Nanos};
use std::time::Instant;

/// Requests in which monitors count a plan's traffic.
const MONITORED: usize = 60_000;
/// Requests a second; plans count in thousandths.
const LEAST_RATE: f64 = 0.001;
/// Seed offset of the monitored requests, which precede the others.
const BEFORE: u64 = 0x6265_666f_7265;

/// Runs a cell until the last answer.
///
/// # Errors
/// If the cell is invalid or no plan is possible.
pub fn run(cell: &Cell) -> Result<CellResult, CellError> {
    cell.check()?;
    let began = Instant::now();
    let tree = Tree::new(cell.network.unwrap_or_default().arity);
    let deployment = match cell.network {
        Some(_) => Deployment::draw(tree, cell.clients, cell.servers, cell.seed),
        None => Deployment::together(cell.clients, cell.servers),
    };
    let placing = place(cell, tree, &deployment)?;
    let requests = cell.workload().requests(cell.seed);
    let ran = match (cell.change_at_ms, &placing) {
        (Some(at), Some(placing)) => {
            let before = Placing::tor(tree, &deployment.clients);
            let world = World::new(cell, &deployment, &requests, Some(&before));
            world.run(Some((Nanos::from(at) * MS, placing)))
        }
        _ => World::new(cell, &deployment, &requests, placing.as_ref()).run(None),
    };
    Ok(result(cell, &requests, ran, placing.as_ref(), began))
}

/// `None`: at clients.
fn place(cell: &Cell, tree: Tree, deployment: &Deployment) -> Result<Option<Placing>, CellError> {
    let (Some(network), Placement::Ilp) = (&cell.network, cell.placement) else {
        return Ok(placing::without_traffic(cell, tree, &deployment.clients));
    };
    let workload = Workload { requests: MONITORED, ..cell.workload() };
    let requests = workload.requests(cell.seed ^ BEFORE);
    let tor = Placing::tor(tree, &deployment.clients);
    let ran = World::new(cell, deployment, &requests, Some(&tor)).run(None);
    let of_one = cell.per_second() / MONITORED as f64;
    let mut traffic: Vec<[f64; 3]> =
        ran.monitored.iter().map(|tiers| tiers.map(|count| f64::from(count) * of_one)).collect();
    // A rack whose clients were silent so far is still in the plan, with minimal traffic.
    for &rack in &deployment.clients {
        traffic[rack as usize][0] = traffic[rack as usize][0].max(LEAST_RATE);
    }
    Placing::ilp(tree, network, &traffic).map(Some)
}

fn result(cell: &Cell, requests: &[Request], mut ran: Ran, placing: Option<&Placing>, began: Instant) -> CellResult {
    let over_time_ms = cell.change_at_ms.map_or_else(Vec::new, |_| over_time(requests, &ran.latencies));
    CellResult {
        rsnodes: placing.map(Placing::rsnodes).unwrap_or_default(),
        rsnodes_bound: placing.and_then(|placing| placing.bound),
        extra_hops: ran.extra_hops as f64 / requests.len().max(1) as f64,
        accelerator_busy: ran.busiest as f64 / ran.end.max(1) as f64,
        waited: ran.waited,
        over_time_ms,
        events: ran.events,
        latency: percentiles(ran.latencies.split_off(ran.latencies.len() / cell::STARTING)),
        wall_ms: began.elapsed().as_secs_f64() * 1e3,
    }
}

fn over_time(requests: &[Request], latencies: &[Nanos]) -> Vec<f64> {
    let mut buckets: Vec<(f64, u32)> = Vec::new();
    for (request, &latency) in requests.iter().zip(latencies) {
        let bucket = (request.at / (BUCKET_MS * MS)) as usize;
        if buckets.len() <= bucket {
            buckets.resize(bucket + 1, (0.0, 0));
        }
        buckets[bucket].0 += latency as f64 / MS as f64;
        buckets[bucket].1 += 1;
    }
    buckets.into_iter().map(|(sum, count)| sum / f64::from(count.max(1))).collect()
}

/// To a tenth of a microsecond, as results are stored as text.
fn percentiles(mut times: Vec<Nanos>) -> Percentiles {
    times.sort_unstable();
    let at = |quantile: f64| {
        let rank = (quantile * times.len() as f64).ceil() as usize;
        let ns = times.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        ((ns + 50) / 100) as f64 / 1e4
    };
    let mean = times.iter().map(|&time| time as f64).sum::<f64>() / times.len().max(1) as f64;
    Percentiles {
        count: times.len() as u64,
        mean_ms: mean / MS as f64,
        quantiles_ms: if times.is_empty() {
            Vec::new()
        } else {
            QUANTILES.iter().map(|&quantile| at(quantile)).collect()
        },
    }
}

impl Cell {
    pub(super) fn workload(&self) -> Workload {
        Workload {
            requests: self.requests as usize,
            per_second: self.per_second(),
            generators: 200,
            gaps: match self.arrivals {
                Arrivals::Exact => Gaps::Exact,
                Arrivals::Grid => Gaps::Milliseconds,
            },
            keys: match self.keys {
                Keyspace::Zipf => Keys::Zipf { keys: 10_000_000, exponent: 0.99 },
                Keyspace::Even => Keys::Uniform,
            },
            clients: Clients { count: self.clients, of_first_fifth: self.of_first_fifth },
        }
    }

    pub(super) fn server_config(&self) -> ServerConfig {
        ServerConfig {
            count: self.servers,
            slots: self.slots.into(),
            service: Nanos::from(self.service_us) * 1_000,
            range: self.range,
            interval: Nanos::from(self.interval_ms) * MS,
            flips: match self.arrivals {
                Arrivals::Exact => Flips::Independent,
                Arrivals::Grid => Flips::Together,
            },
        }
    }

    pub(super) fn ring(&self) -> Ring {
        match self.keys {
            Keyspace::Zipf => Ring::new(self.servers, 100, REPLICATION, self.seed),
            Keyspace::Even => Ring::even(self.servers, REPLICATION),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Network, RsNodes, Selects};
    use super::*;
    use midflight_cache::select::Algorithm;

    fn flat(selector: Selects, clients: u32, seed: u64) -> Cell {
        let (placement, keys) = (Placement::Clients, Keyspace::Even);
        Cell { selector, clients, seed, placement, keys, network: None, requests: 30_000, ..Cell::default() }
    }

    #[test]
    fn every_request_is_answered_and_a_run_is_repeated_exactly() {
        let selectors =
            [Selects::Oracle, Selects::Really(Algorithm::C3RateControl), Selects::Really(Algorithm::HotCold)];
        for (selector, placement) in selectors.into_iter().flat_map(|selector| {
            [Placement::Clients, Placement::Tor, Placement::Example].map(|placement| (selector, placement))
        }) {
            let cell = Cell { selector, placement, requests: 10_000, ..Cell::default() };
            let first = run(&cell).unwrap().deterministic();
            assert_eq!(first.latency.count, 9_500, "all but the start");
            assert_eq!(first, run(&cell).unwrap().deterministic(), "{cell:?}");
        }
    }

    #[test]
    fn an_idle_server_takes_the_mean_service_time() {
        // 100 requests a second to 100 servers: no queueing. Half of the servers take 4 ms, half 4/3 ms: 2.67 ms at random. The oracle
        // finds a fast one of three except one time in eight: 4 / 8 + 4/3 × 7 / 8 = 1.67 ms.
        for (selector, expected) in [(Selects::Really(Algorithm::Random), 2.667), (Selects::Oracle, 1.667)] {
            let mean = run(&Cell { utilisation: 0.001, ..flat(selector, 1, 1) }).unwrap().latency.mean_ms;
            assert!((mean / expected - 1.0).abs() < 0.03, "{selector}: {mean} ms");
        }
    }

    /// The network's share is known without load.
    #[test]
    fn an_idle_network_adds_the_links_and_the_accelerator() {
        let cell = |placement| Cell {
            placement,
            requests: 3_000,
            utilisation: 0.001,
            service_us: 1,
            selector: Selects::Really(Algorithm::RoundRobin),
            network: Some(Network { trunk_ns: 1_000_000, host_ns: 10_000, ..Network::default() }),
            ..Cell::default()
        };
        let of = |placement| run(&cell(placement)).unwrap();
        let (clients, tor) = (of(Placement::Clients), of(Placement::Tor));
        // Most requests go to other pods: 4 links each way, 4 host links, at most 1 µs of service.
        assert!((8.04..8.05).contains(&clients.latency.at(0.5)), "{}", clients.latency.at(0.5));
        // The same, plus the way to the accelerator and back and its 5 µs.
        let more_us = (tor.latency.at(0.5) - clients.latency.at(0.5)) * 1e3;
        assert!((6.0..9.0).contains(&more_us), "{more_us}");
        assert_eq!((clients.extra_hops, tor.extra_hops, clients.rsnodes), (0.0, 0.0, RsNodes::default()));
        assert!(tor.rsnodes.tor > 100 && tor.rsnodes.all() == tor.rsnodes.tor);
        // Aggregation and core switches: requests within a rack or pod take a detour.
        let example = of(Placement::Example);
        assert!((0.08..0.25).contains(&example.extra_hops), "{}", example.extra_hops);
        assert_eq!(example.rsnodes, RsNodes { core: 6, aggregation: 2, tor: 0 });
    }

    #[test]
    fn n7_after_a_change_all_requests_are_answered_and_new_selectors_begin_anew() {
        let cell = Cell { placement: Placement::Example, requests: 40_000, change_at_ms: Some(200), ..Cell::default() };
        let result = run(&cell).unwrap();
        assert_eq!((result.latency.count, result.rsnodes.all()), (38_000, 8));
        // 40,000 requests take 0.44 s.
        assert!((22..=24).contains(&result.over_time_ms.len()), "{}", result.over_time_ms.len());
        let same = run(&Cell { placement: Placement::Tor, change_at_ms: None, ..cell }).unwrap();
        assert_ne!(result.latency, same.latency);
    }

    #[test]
    fn copies_that_count_keep_the_accelerator_twice_as_busy() {
        let of = |counts_copies| {
            let network = Some(Network { counts_copies, ..Network::default() });
            run(&Cell { placement: Placement::Example, requests: 20_000, network, ..Cell::default() })
                .unwrap()
                .accelerator_busy
        };
        let (free, counted) = (of(false), of(true));
        assert!((counted / free - 2.0).abs() < 0.05, "{free} {counted}");
    }
}
