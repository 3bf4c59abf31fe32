//! Compares the simulated Sparrow and Bolt with rows of the papers' figures, each within a stated factor, to protect the calibration.
//! `docs/internals/simulator.md` says which rows were used to set it.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_papers::calibration::SAMPLE_TASKS;
use midflight_papers::cell::{Cell, Cluster, Load, Percentiles, Polling, Sampling, Scheme, Work, run};

/// Median and 95th percentile in milliseconds: means over seeds, because the phase between the two clients matters.
fn sw1(scheme: Scheme, utilisation: f64, work: Work) -> (f64, f64) {
    const SEEDS: u64 = 3;
    let one = |seed| {
        let (cluster, load) = (Cluster::uniform(10, 6), Load::Sw1 { clients: 2, utilisation, work });
        let scheme = scheme.clone();
        run(&Cell { scheme, cluster, load, seed, warmup_ms: 300, duration_ms: 800, drain_ms: 2_000 }).unwrap().delay
    };
    let all: Vec<_> = (1..=SEEDS).map(one).collect();
    let mean = |quantile| all.iter().map(|delay| delay.at(quantile)).sum::<f64>() / SEEDS as f64;
    (mean(0.5), mean(0.95))
}

fn noop(scheme: Scheme, executors: u32) -> f64 {
    let (cluster, load) = (Cluster::uniform(12, executors / 12), Load::Noop { clients: 8, backlog: 4 });
    let cell = Cell { scheme, cluster, load, seed: 3, warmup_ms: 5, duration_ms: 15, drain_ms: 1_000 };
    run(&cell).unwrap().started_per_s / 1e6
}

fn java() -> Scheme {
    Scheme::SparrowJava(Sampling { schedulers: 2, on_clients: true, ..Sampling::default() })
}

fn cpp() -> Scheme {
    Scheme::SparrowCpp(Sampling::default())
}

fn unprobed(schedulers: u32) -> Scheme {
    Scheme::SparrowCpp(Sampling { schedulers, probing: false, ..Sampling::default() })
}

fn bolt() -> Scheme {
    Scheme::Bolt(Polling::default())
}

#[track_caller]
fn within(factor: f64, what: &str, ours: f64, paper: f64) {
    assert!((1.0 / factor..=factor).contains(&(ours / paper)), "{what}: {ours:.3}, published {paper}, factor {factor}");
}

#[test]
fn falcon_8_java_sparrow_takes_two_milliseconds_at_any_load() {
    let (half, most) = (sw1(java(), 0.5, Work::Sleep), sw1(java(), 0.95, Work::Sleep));
    within(1.5, "median at 50 %", half.0, 22.0 * 0.09);
    within(1.5, "median at 95 %", most.0, 2.22);
    within(1.5, "95th percentile at 95 %", most.1, 2.68);
}

#[test]
fn falcon_8_the_published_switch_stays_flat() {
    let [half, most] = [0.5, 0.95].map(|utilisation| sw1(bolt(), utilisation, Work::Sleep).0);
    within(1.5, "median at 95 %", most, 0.09);
    within(1.3, "95 % against 50 %", most, half);
}

#[test]
fn bolt_12_cpp_sparrow_bends_with_the_load() {
    let [half, most] = [0.5, 0.95].map(|utilisation| sw1(cpp(), utilisation, Work::Compute).0);
    within(1.3, "median at 95 %", most, 1.76);
    let ours = sw1(bolt(), 0.5, Work::Compute).0;
    within(2.2, "factor at 50 %", half / ours, 7.0);
    assert!(most > 2.5 * half, "{half} ms at 50 %, {most} ms at 95 %");
}

#[test]
fn bolt_11_one_scheduler_is_full_from_150_executors_and_four_are_not() {
    let one = [72, 144, 300].map(|executors| noop(unprobed(1), executors));
    assert!(one[0] < 0.3, "72 executors do not fill it: {} M/s", one[0]);
    within(1.15, "144 executors", one[1], 0.5);
    within(1.1, "300 executors", one[2], 0.5);
    within(1.1, "four schedulers, 720 executors", noop(unprobed(4), 720), 1.9);
}

fn bursty(scheme: Scheme, executors: u32, work: Work, warmup_ms: u64, duration_ms: u64) -> Percentiles {
    let (sample, median_ms, load) = (SAMPLE_TASKS, 5.0, 0.195);
    let load = Load::Trace { file: None, sample, median_ms, load, priorities: false, clients: 2, work };
    let cluster = Cluster::uniform(11, executors);
    run(&Cell { scheme, cluster, load, seed: 1, warmup_ms, duration_ms, drain_ms: 5_000 }).unwrap().delay
}

/// Nothing in figure 13b was used for calibration.
#[test]
fn bolt_13b_larger_jobs_take_longer_to_send_and_to_probe_for() {
    let two = Scheme::SparrowCpp(Sampling { schedulers: 2, ..Sampling::default() });
    let [bolt, sparrow] = [bolt(), two].map(|scheme| bursty(scheme, 200, Work::Sleep, 500, 8_000).median_ms());
    within(1.5, "Bolt's median", bolt, 0.14);
    within(1.5, "the median of two schedulers", sparrow, 14.0);
}

#[test]
fn bolt_13a_sparrows_median_is_far_above_and_its_tail_is_not() {
    let [bolt, sparrow] = [bolt(), cpp()].map(|scheme| bursty(scheme, 16, Work::Compute, 1_000, 31_000));
    within(1.5, "Bolt's median", bolt.median_ms(), 0.04);
    within(1.2, "Sparrow's median", sparrow.median_ms(), 1.6);
    assert!(
        sparrow.at(0.95) / bolt.at(0.95) < 0.3 * sparrow.median_ms() / bolt.median_ms(),
        "bursts are alike to both"
    );
}
