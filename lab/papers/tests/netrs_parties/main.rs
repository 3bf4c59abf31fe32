//! Checks that the compact world, which produces NetRS's figures, computes what the real parties do. Both get the same reads, server speeds
//! and placement. `docs/internals/cache-evaluation.md` has the results.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod compact;
mod parties;

/// The compact world's sources use this path.
use midflight_papers::cell;

use compact::{At, Cell, Keyspace, Network, Placement, Scenario, Selects};
use midflight_cache::select::Algorithm;
use midflight_endpoint::Nanos;
use parties::{Kind, Real};

const SELECTORS: [Algorithm; 3] = [Algorithm::RoundRobin, Algorithm::LeastOutstanding, Algorithm::C3];
const PLACES: [At; 4] = [At::Clients, At::Racks, At::Pods, At::Core];

/// Each server changes its speed every 5 ms. They are so fast that at a utilisation of 0.9 one accelerator is busy about half of the time.
fn cell(select: Algorithm, utilisation: f64, requests: u32, seed: u64) -> Cell {
    Cell {
        selector: Selects::Really(select),
        // A real selector pays for each packet, including copies.
        network: Some(Network { arity: 4, counts_copies: true, ..Network::default() }),
        requests,
        clients: 10,
        utilisation,
        keys: Keyspace::Even,
        servers: 6,
        service_us: 500,
        interval_ms: 5,
        seed,
        ..Cell::default()
    }
}

fn differ(compact: &[Nanos], real: &[Nanos]) -> usize {
    assert_eq!(compact.len(), real.len());
    compact.iter().zip(real).filter(|(compact, real)| compact != real).count()
}

/// Packets without length, switches without delay, equal tie-breaks.
#[test]
fn each_read_takes_the_same_time_to_the_nanosecond() {
    for (select, at) in SELECTORS.into_iter().flat_map(|select| PLACES.map(|at| (select, at))) {
        let scenario = Scenario::new(cell(select, 0.9, 2_000, 1));
        let seen = parties::run(&scenario, &Real::new(at, select, Kind::Ideal, 1));
        assert_eq!(seen.sent, 2_000, "nothing is repeated");
        let compact = scenario.latencies(at);
        assert_eq!(differ(&compact, &seen.latencies), 0, "{select}, {at:?}");
        // If servers were idle, only distances would be compared.
        let mean = compact.iter().sum::<Nanos>() / 2_000;
        assert!(mean > 550_000, "{select}, {at:?}: {mean} ns");
    }
}

#[test]
fn a_planted_difference_is_seen_in_single_reads() {
    let of = |select, at, plant: fn(&mut Real)| {
        let scenario = Scenario::new(cell(select, 0.9, 500, 1));
        let mut real = Real::new(at, select, Kind::Ideal, 1);
        plant(&mut real);
        differ(&scenario.latencies(at), &parties::run(&scenario, &real).latencies)
    };
    assert!(of(Algorithm::C3, At::Core, |_| {}) == 0);
    assert!(of(Algorithm::C3, At::Core, |real| real.sees_statuses = false) > 50);
    assert!(of(Algorithm::C3, At::Clients, |real| real.sees_statuses = false) > 50);
    assert!(of(Algorithm::C3, At::Racks, |real| real.selectors = Some(1)) > 50, "C3 believes that it is alone");
    assert!(of(Algorithm::LeastOutstanding, At::Pods, |real| real.select = Algorithm::PowerOfTwo) > 50);
    assert!(of(Algorithm::RoundRobin, At::Core, |real| real.accelerator = 2) > 450);
    assert!(of(Algorithm::RoundRobin, At::Clients, |real| real.service_percent = 110) > 450);
}

/// With idle servers, links of 10 Gbit/s and switches of 400 ns lengthen a read by their delays, and the accelerator may process another
/// packet first, or no longer.
#[test]
fn what_real_links_and_switches_add_is_bounded() {
    const PASS: i64 = parties::PASS as i64;
    // The longest packet has 160 bytes with all headers.
    const LINK: i64 = 160 * 8 / 10;
    let one_packet = i64::from(Network::default().accelerator_ns);
    for at in PLACES {
        let idle = Cell { range: 1.0, ..cell(Algorithm::RoundRobin, 0.05, 1_000, 1) };
        let scenario = Scenario::new(idle);
        let real =
            parties::run(&scenario, &Real { same_luck: true, ..Real::new(at, Algorithm::RoundRobin, Kind::Usual, 1) });
        // Via the core: 3 switches to it, 1 to its selector, 2 to the server's rack, 1 back, 2 to the core, 2 to the client's rack; 12
        // links, on each of which a packet may wait for another. Minimum: the rack's switch in both directions.
        let (least, most) = (2 * PASS, 11 * PASS + 12 * 2 * LINK);
        let (least, most) = if at == At::Clients { (least, most) } else { (least - one_packet, most + one_packet) };
        for (compact, real) in scenario.latencies(at).into_iter().zip(real.latencies) {
            let more = real as i64 - compact as i64;
            assert!(
                (least..=most).contains(&more),
                "{at:?}: {more} ns more than {compact}, expected {least} to {most}"
            );
        }
    }
}

/// Real world relative to compact world, over seeds.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    /// 99 % interval of the mean, in per cent above 1.
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(pairs: &[(f64, f64)]) -> Self {
        // Student's t with 9 degrees of freedom. (Of 36 intervals of 95 % about two would miss 1 by chance.)
        const T: f64 = 3.250;
        assert_eq!(pairs.len(), 10);
        let logs: Vec<f64> = pairs.iter().map(|(compact, real)| (real / compact).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 10.0;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / 9.0;
        let half = T * (variance / 10.0).sqrt();
        let percent = |log: f64| (log.exp() - 1.0) * 100.0;
        Self { low: percent(mean - half), high: percent(mean + half) }
    }

    /// It contains 1 or lies within 3 %, and is no wider than `most` per cent.
    fn agrees(self, most: f64) -> bool {
        let (contains, within) = (self.low <= 0.0 && self.high >= 0.0, self.low >= -3.0 && self.high <= 3.0);
        (contains || within) && self.high - self.low <= most
    }
}

/// Without warm-up, over 10 seeds: links and switches take as long as in the compact world in total; each world has its own tie-breaks.
fn ratios(of: impl Fn(u64) -> Cell, select: Algorithm, at: At, plant: fn(&mut Real)) -> [Ratio; 2] {
    let pairs: Vec<[(f64, f64); 2]> = (1..=10)
        .map(|seed| {
            let scenario = Scenario::new(of(seed));
            let mut real = Real::new(at, select, Kind::Within, seed);
            plant(&mut real);
            let [compact, real] = [scenario.latencies(at), parties::run(&scenario, &real).latencies].map(summary);
            [(compact[0], real[0]), (compact[1], real[1])]
        })
        .collect();
    [0, 1].map(|which| Ratio::of(&pairs.iter().map(|pair| pair[which]).collect::<Vec<_>>()))
}

fn summary(mut latencies: Vec<Nanos>) -> [f64; 2] {
    let mut rest = latencies.split_off(latencies.len() / 20);
    rest.sort_unstable();
    let mean = rest.iter().sum::<Nanos>() as f64 / rest.len() as f64;
    [mean, rest[rest.len() * 99 / 100] as f64]
}

fn agree(utilisation: f64, requests: u32, widest: [f64; 2]) {
    for (select, at) in
        SELECTORS.into_iter().flat_map(|select| [At::Clients, At::Racks, At::Core].map(|at| (select, at)))
    {
        let [mean, tail] = ratios(|seed| cell(select, utilisation, requests, seed), select, at, |_| {});
        println!(
            "{select}, {at:?}, {utilisation}: mean {:+.1} to {:+.1} %, 99th percentile {:+.1} to {:+.1} %",
            mean.low, mean.high, tail.low, tail.high
        );
        assert!(mean.agrees(widest[0]), "{select}, {at:?}: mean {mean:?} %");
        assert!(tail.agrees(widest[1]), "{select}, {at:?}: 99th percentile {tail:?} %");
    }
}

#[test]
fn at_moderate_load_means_and_tails_agree() {
    agree(0.9, 1_200, [7.0, 22.0]);
}

#[test]
fn at_high_load_means_and_tails_agree() {
    agree(1.5, 900, [17.0, 36.0]);
}

type Planted = (&'static str, Algorithm, At, f64, fn(&mut Real));

#[test]
fn planted_differences_are_seen_in_means() {
    let plants: [Planted; 3] = [
        ("another selector", Algorithm::RoundRobin, At::Racks, 0.9, |real| real.select = Algorithm::Random),
        ("services 10 % longer", Algorithm::C3, At::Core, 0.9, |real| real.service_percent = 110),
        ("an accelerator half as fast", Algorithm::C3, At::Core, 0.9, |real| real.accelerator = 2),
    ];
    for (what, select, at, utilisation, plant) in plants {
        let [mean, _] = ratios(|seed| cell(select, utilisation, 1_200, seed), select, at, plant);
        println!("{what}: mean {:+.1} to {:+.1} %", mean.low, mean.high);
        assert!(!mean.agrees(20.0) && mean.low > 0.0, "{what}: {mean:?} % is not seen");
    }
}

#[test]
fn the_public_entry_has_the_same_latencies() {
    for (placement, at) in [(Placement::Clients, At::Clients), (Placement::Tor, At::Racks)] {
        let cell = Cell { placement, ..cell(Algorithm::C3, 0.9, 2_000, 1) };
        let public: midflight_papers::netrs::Cell =
            serde_json::from_value(serde_json::to_value(&cell).unwrap()).unwrap();
        let result = midflight_papers::netrs::run(&public).unwrap();
        let mut latencies = Scenario::from_the_start(cell).latencies(at).split_off(100);
        latencies.sort_unstable();
        assert_eq!(result.latency.count, 1_900);
        let mean_ms = latencies.iter().map(|&latency| latency as f64).sum::<f64>() / 1_900.0 / 1e6;
        assert!((result.latency.mean_ms - mean_ms).abs() < 1e-9);
        let longest = latencies[1_899] as f64 / 1e6;
        assert!((result.latency.at(1.0) - longest).abs() < 1e-4);
    }
}

/// Prints numbers for the documentation: 60 clients and 30 servers in a tree of 128 hosts.
#[test]
#[ignore = "takes minutes"]
fn what_each_difference_is_worth() {
    use Algorithm::{C3, C3RateControl};
    let large = |select, utilisation, seed| Cell {
        network: Some(Network { arity: 8, counts_copies: true, ..Network::default() }),
        clients: 60,
        servers: 30,
        service_us: 4_000,
        interval_ms: 50,
        ..cell(select, utilisation, 6_000, seed)
    };
    // Longer than any run.
    const FOREVER: Nanos = 1_000_000_000_000;
    let differences: [Planted; 8] = [
        ("none", C3, At::Clients, 0.9, |_| {}),
        ("none", C3, At::Clients, 1.6, |_| {}),
        ("n is 1", C3, At::Clients, 0.9, |real| real.selectors = Some(1)),
        ("n is 1", C3, At::Clients, 1.6, |real| real.selectors = Some(1)),
        ("reads are sent again", C3, At::Clients, 0.9, |real| real.sends_max = 16),
        ("reads are sent again", C3, At::Clients, 1.6, |real| real.sends_max = 16),
        ("rate control holds for 20 ms", C3RateControl, At::Core, 0.9, |_| {}),
        ("rate control holds for ever", C3RateControl, At::Core, 0.9, |real| real.hold = Some(FOREVER)),
    ];
    for (what, select, at, utilisation, difference) in differences {
        let [mean, tail] = ratios(|seed| large(select, utilisation, seed), select, at, difference);
        println!(
            "{what}: {at:?}, {utilisation}: mean {:+.1} to {:+.1} %, 99th percentile {:+.1} to {:+.1} %",
            mean.low, mean.high, tail.low, tail.high
        );
    }
}
