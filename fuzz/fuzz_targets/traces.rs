//! Random bytes as a trace of any format: an error, or jobs within the bounds, in order of arrival, that can be scaled and
//! replayed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_workload::{Format, ReadOptions, Target, read};

/// Small, so that inputs reach the bounds.
const MAX_TASKS: u64 = 10_000;
const MAX_JOB_TASKS: u64 = 1_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, trace)) = bytes.split_first() else { return };
    let formats = [None, Some(Format::Tr), Some(Format::Alibaba), Some(Format::Draconis), Some(Format::Google)];
    let format = formats[usize::from(first) % formats.len()];
    let bounds = ReadOptions { max_tasks: MAX_TASKS, max_job_tasks: MAX_JOB_TASKS, ..ReadOptions::default() };
    let options = ReadOptions { format, max_line_bytes: 4_096, strict: first >= 128, ..bounds };
    let Ok(reading) = read(trace, "fuzzed", &options) else { return };

    let mut workload = reading.workload;
    assert!((1..=MAX_TASKS).contains(&workload.tasks()));
    assert!(workload.jobs().iter().all(|job| (1..=MAX_JOB_TASKS).contains(&(job.tasks.len() as u64))));
    assert!(workload.jobs().is_sorted_by_key(|job| job.arrival_ns));
    assert!(reading.malformed == 0 || !options.strict);

    workload.draw_priorities(1);
    assert!(workload.jobs().iter().flat_map(|job| &job.tasks).all(|task| (1..=4).contains(&task.priority)));
    let target = Target { median_ns: 5_000_000, load: 0.8, executors: 64 };
    if let Ok(scale) = workload.scale(&target) {
        assert!(scale.f > 0.0 && scale.g >= 0.0);
    }
    let until_ns = Some(workload.span_ns().saturating_mul(2));
    let played = workload.arrivals(until_ns, 1).take(3 * workload.jobs().len());
    assert!(played.map(|arrival| arrival.at_ns).is_sorted());
});
