//! `cargo run --release -p midflight-papers --example netrs_flat`: all selectors in a world without a network, when there are 10 of them and
//! when there are 500: milliseconds, means over seeds.
//!
//! Arguments: the number of requests (120000), the number of seeds (10), and `grid` for the arrivals and flips of C3's public simulator.

use midflight_papers::netrs::{Clients, Flat, Flips, Gaps, Keys, Outcome, Ring, Scheme, ServerConfig, Workload};
use midflight_replicas::select::Algorithm;

/// By its seed.
type MakeRing = fn(u64) -> Ring;

struct Setup {
    requests: usize,
    seeds: u64,
    gaps: Gaps,
    flips: Flips,
    keys: Keys,
    ring: MakeRing,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut numbers = arguments.iter().filter_map(|argument| argument.parse::<u64>().ok());
    let requests = numbers.next().unwrap_or(120_000) as usize;
    let seeds = numbers.next().unwrap_or(10);
    let (gaps, flips) = match arguments.iter().any(|argument| argument == "grid") {
        true => (Gaps::Milliseconds, Flips::Together),
        false => (Gaps::Exact, Flips::Independent),
    };
    println!("{requests} requests, {seeds} seeds, gaps {gaps:?}, flips {flips:?}\n");
    let zipf = Keys::Zipf { keys: 10_000_000, exponent: 0.99 };
    let rows: [(&str, Keys, MakeRing); 2] = [
        ("Zipf 0.99 of 10 M keys, 100 points a server", zipf, |seed| Ring::new(100, 100, 3, seed)),
        ("keys all different, even ring", Keys::Uniform, |_| Ring::even(100, 3)),
    ];
    for (title, keys, ring) in rows {
        let setup = Setup { requests, seeds, gaps, flips, keys, ring };
        println!("{title}\n{:<18} {:>8} {:>8} {:>8} {:>8}", "", "10 mean", "p99", "500 mean", "p99");
        for scheme in Algorithm::ALL.map(Scheme::Of).into_iter().chain([Scheme::Oracle]) {
            let [few, many] = [10, 500].map(|selectors| setup.run(scheme, selectors));
            println!("{scheme:<18} {:>8.2} {:>8.1} {:>8.2} {:>8.1}", few.0, few.1, many.0, many.1);
        }
        println!();
    }
}

impl Setup {
    /// Mean and 99th of 100, in milliseconds.
    fn run(&self, scheme: Scheme, selectors: u32) -> (f64, f64) {
        let outcomes: Vec<Outcome> = (1..=self.seeds).map(|seed| self.flat(scheme, selectors, seed).run()).collect();
        let mean = |of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / self.seeds.max(1) as f64;
        (mean(Outcome::mean_ms), mean(|outcome| outcome.quantile_ms(0.99)))
    }

    fn flat(&self, scheme: Scheme, selectors: u32, seed: u64) -> Flat {
        let &Self { requests, gaps, flips, keys, ring, .. } = self;
        let clients = Clients::alike(selectors);
        let workload = Workload { requests, gaps, keys, clients, ..Workload::default() };
        Flat { scheme, workload, servers: ServerConfig { flips, ..ServerConfig::default() }, ring: ring(seed), seed }
    }
}
