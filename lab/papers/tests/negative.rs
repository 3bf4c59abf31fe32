//! Each rule can fail: for each row of each figure there are results with a value that fail it.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_papers::cell::{CellResult, LevelResult, Percentiles, QUANTILES, Series, Step};
use midflight_papers::experiment::{Experiment, Outcome};
use midflight_papers::figures::{ALL, Case, Effort, Figure, TRACES};
use midflight_papers::findings::{Findings, Verdict};
use midflight_papers::{flair, netrs};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeSet;

/// Enough for each rule; the search ends once all have failed.
const DRAWS: u64 = 1_000;
const COUNTERS: [&str; 9] = [
    "submit.tasks",
    "submit.passes",
    "mixed.tasks",
    "mixed.passes",
    "emptied.tasks",
    "emptied.passes",
    "vain.passes",
    "level4.passes",
    "trace.rate_ppm",
];

/// Log-uniform, from a microsecond to a minute.
fn ms(random: &mut Pcg64) -> f64 {
    10f64.powf(random.random_range(-3.0..4.8))
}

fn percentiles(random: &mut Pcg64) -> Percentiles {
    let mut quantiles_ms: Vec<f64> = QUANTILES.iter().map(|_| ms(random)).collect();
    quantiles_ms.sort_by(f64::total_cmp);
    Percentiles { count: 1_000, mean_ms: ms(random), quantiles_ms }
}

fn steps(random: &mut Pcg64) -> std::collections::BTreeMap<Step, Percentiles> {
    Step::ALL.into_iter().map(|step| (step, percentiles(random))).collect()
}

fn drawn(random: &mut Pcg64) -> CellResult {
    let level = |random: &mut Pcg64| LevelResult { delay: percentiles(random), steps: steps(random) };
    let series = |random: &mut Pcg64| Series {
        bucket_ms: 500,
        ended_per_node_s: (0..400).map(|_| random.random_range(0.0..900.0)).collect(),
    };
    let counters = COUNTERS.iter().chain(&["switch.packets"]);
    CellResult {
        submitted: random.random_range(1..10_000_000),
        started: 1,
        ended: random.random_range(1..10_000_000),
        delay: percentiles(random),
        jobs: percentiles(random),
        steps: steps(random),
        levels: (1..=4).map(|number| (number, level(random))).collect(),
        started_per_s: 10f64.powf(random.random_range(2.0..9.0)),
        groups: (0..3).map(|_| series(random)).collect(),
        last_end_ms: ms(random),
        counters: counters.map(|name| ((*name).to_owned(), random.random_range(1..1u64 << 40))).collect(),
        ..CellResult::default()
    }
}

fn drawn_of_cache(random: &mut Pcg64) -> netrs::CellResult {
    netrs::CellResult {
        latency: percentiles(random),
        over_time_ms: (0..330).map(|_| ms(random)).collect(),
        ..netrs::CellResult::default()
    }
}

fn drawn_of_store(random: &mut Pcg64) -> flair::CellResult {
    // Sometimes without service.
    let out = random.random();
    let rate = |random: &mut Pcg64| if random.random_bool(out) { 0.0 } else { random.random_range(1.0..9e6) };
    flair::CellResult {
        per_second: 10f64.powf(random.random_range(2.0..8.0)),
        reads: percentiles(random),
        writes: percentiles(random),
        shares: flair::Shares { by_leader: random.random(), unstable: random.random(), redirected: random.random() },
        over_time: (0..30).map(|_| rate(random)).collect(),
        ..flair::CellResult::default()
    }
}

fn outcome(case: &Case, random: &mut Pcg64) -> Outcome {
    match case.cell {
        Experiment::Tasks(_) => Outcome::Tasks(drawn(random)),
        Experiment::Cache(_) => Outcome::Cache(drawn_of_cache(random)),
        Experiment::Store(_) => Outcome::Store(drawn_of_store(random)),
    }
}

/// A random result per case, the same for every seed.
fn findings(figure: &Figure, seeds: usize, random: &mut Pcg64) -> Findings {
    let cases = figure.cases(Effort::Full, &TRACES);
    let drawn = cases.iter().map(|case| (case.name.as_str(), outcome(case, random)));
    let outcomes: Vec<_> = drawn.flat_map(|outcome| vec![outcome; seeds]).collect();
    figure.findings(outcomes)
}

#[test]
fn each_row_fails_by_some_results_that_give_it_a_value() {
    for figure in &ALL {
        let random = &mut Pcg64::seed_from_u64(1);
        let (mut all, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..DRAWS {
            // Two seeds with the same results, so that no row is unsure.
            for row in findings(figure, 2, random).rows {
                if row.ours.is_some() && row.verdict() == Verdict::Fail {
                    failed.insert(row.name.clone());
                }
                all.insert(row.name);
            }
            if failed.len() == all.len() {
                break;
            }
        }
        let cannot: Vec<_> = all.difference(&failed).collect();
        assert!(cannot.is_empty(), "{}: {cannot:?} cannot fail", figure.name);
    }
}

#[test]
fn no_interval_means_that_nothing_is_sure() {
    for figure in &ALL {
        let random = &mut Pcg64::seed_from_u64(2);
        let rows = findings(figure, 1, random).rows;
        let sure: Vec<_> = rows.iter().filter(|row| row.verdict() == Verdict::Pass).map(|row| &row.name).collect();
        assert!(sure.is_empty(), "{}: {sure:?} pass by one seed", figure.name);
    }
}
