//! The traces themselves, if present: the numbers of jobs and tasks in their README, and the sums after scaling.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;

use midflight_workload::{ReadOptions, Reading, Replace, Sample, Scale, Skip, Target, read_file};

/// `MIDFLIGHT_TRACES`, or `../shared/traces` next to the workspace; if the file is absent, prints that and returns `None`.
fn trace(name: &str) -> Option<PathBuf> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let directory = std::env::var_os("MIDFLIGHT_TRACES").map_or_else(default, PathBuf::from);
    let path = directory.join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is absent; set MIDFLIGHT_TRACES to the directory that holds the traces", path.display());
    None
}

fn read_whole(name: &str) -> Option<Reading> {
    Some(read_file(&trace(name)?, &ReadOptions::default()).unwrap())
}

fn scaled(name: &str, jobs: usize, tasks: u64) -> Option<Scale> {
    let reading = read_whole(name)?;
    assert_eq!(reading.malformed, 0, "{:?}", reading.shown);
    let mut workload = reading.workload;
    assert_eq!((workload.jobs().len(), workload.tasks()), (jobs, tasks));
    let scale = workload.scale(&Target { median_ns: 5_000_000, load: 0.8, executors: 64 }).unwrap();
    let median_ns = workload.duration_quantile_ns(0.5).unwrap();
    assert!((4_999_999..=5_000_001).contains(&median_ns), "{median_ns}");
    assert_eq!(scale.rounded_to_zero, 0);
    Some(scale)
}

#[test]
fn yahoo_like_has_the_readme_s_work_and_span_after_scaling() {
    let Some(scale) = scaled("yahoo-like-80.tr", 5_001, 100_350) else { return };
    assert_eq!((scale.work_s.round(), scale.span_s.round()), (3_121.0, 61.0));
}

#[test]
fn google_sub_has_the_readme_s_work_and_span_after_scaling() {
    let Some(scale) = scaled("google-sub.tr", 10_000, 312_558) else { return };
    assert_eq!((scale.work_s.round(), scale.span_s.round()), (6_995.0, 137.0));
}

#[test]
fn google_like_has_the_readme_s_work_and_span_after_scaling() {
    let Some(scale) = scaled("google-like-80.tr", 5_001, 10_291) else { return };
    assert_eq!((scale.work_s.round(), scale.span_s.round()), (244.0, 5.0));
}

#[test]
fn alibaba_keeps_the_terminated_rows_and_counts_the_others() {
    let Some(reading) = read_whole("alibaba2017-batch_task.csv") else { return };
    assert_eq!((reading.workload.jobs().len(), reading.workload.tasks()), (67_012, 10_214_274));
    assert_eq!((reading.malformed, reading.shown[0].line), (1, 54_988), "one row ends before it starts");
    let skipped: Vec<(Skip, u64)> = reading.skipped().collect();
    assert_eq!(skipped, [(Skip::NotTerminated, 13_540)]);
}

/// Sampled for 34 busy executors, as in Bolt's figure 13a.
fn sampled(name: &str) -> Option<Sample> {
    let workload = read_whole(name)?.workload;
    let target = Target { median_ns: 5_000_000, load: 0.195, executors: 176 };
    Some(workload.sample(&target, Replace::Nothing, 1).unwrap())
}

/// The sampled share of the tasks in thousandths, and the milliseconds of a pass.
fn of(sample: &Sample) -> (f64, f64) {
    ((sample.rate() * 1e5).round() / 1e2, (sample.period_ns() as f64 / 1e6).round())
}

/// One minute's jobs: tasks, and the largest job.
fn minute(sample: Sample) -> (f64, usize) {
    let jobs: Vec<_> = sample.take_while(|job| job.arrival_ns < 60_000_000_000).collect();
    let work: u64 = jobs.iter().flat_map(|job| &job.tasks).map(|task| task.duration_ns).sum();
    (work as f64 / 60e9, jobs.iter().map(|job| job.tasks.len()).max().unwrap())
}

#[test]
fn the_samples_for_figure_13a_have_its_load_at_the_trace_s_own_pace() {
    for (name, share_and_pass, largest) in [
        ("google-sub.tr", (7.3, 1_487.0), 40..70),
        ("google-like-80.tr", (359.53, 2_560.0), 40..70),
        ("alibaba2017-batch_task.csv", (0.27, 1_235.0), 20..50),
    ] {
        let Some(sample) = sampled(name) else { continue };
        assert_eq!((of(&sample), sample.squeezed()), (share_and_pass, 1.0), "{name}");
        let (busy, most) = minute(sample);
        assert!((busy / (0.195 * 176.0) - 1.0).abs() < 0.1, "{name}: {busy}");
        assert!(largest.contains(&most), "{name}: {most}");
    }
}
