//! The four trace formats: the meaning of each line, the reasons to refuse one, and that no input makes a reader panic.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use midflight_workload::{Format, Job, ReadError, ReadOptions, Reading, Reason, Skip, TaskSpec, read};
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
const SECOND: i64 = 1_000_000_000;

fn job(arrival_ns: i64, duration_ns: u64, count: usize, priority: u8) -> Job {
    Job { arrival_ns, tasks: vec![TaskSpec { duration_ns, priority }; count] }
}

fn read_text(text: &str) -> Result<Reading, ReadError> {
    read(text.as_bytes(), "trace", &ReadOptions::default())
}

fn reading(text: &str) -> Reading {
    read_text(text).unwrap()
}

#[test]
fn tr_lists_each_duration() {
    let reading = reading("10.5 2 1.5  1 2\n\n9 1 0.25 0.25 \r\n");
    assert_eq!(reading.format, Format::Tr);
    let tasks = [1, 2].map(|s| TaskSpec { duration_ns: s * S, priority: 0 }).to_vec();
    assert_eq!(
        reading.workload.jobs(),
        [job(9 * SECOND, S / 4, 1, 0), Job { arrival_ns: 10 * SECOND + SECOND / 2, tasks }]
    );
    assert_eq!((reading.lines, reading.malformed), (3, 0));
}

#[test]
fn alibaba_rows_are_jobs_of_instances_and_only_terminated_ones_count() {
    let reading = reading(
        "task_create_time, task_end_time, job_id, task_id,instances, status, cpus,memory\n\
         20,25,3,4,2,Terminated,50,0.1\n\
         -10,-9,3,5,1,Terminated,,\n\
         6036,6046,4,7,393,Waiting,,\n\
         6036,,4,7,393,Running,,\n\
         6036,,4,7,393,Terminated,,\n",
    );
    assert_eq!(reading.format, Format::Alibaba);
    assert_eq!(reading.workload.jobs(), [job(-10 * SECOND, S, 1, 0), job(20 * SECOND, 5 * S, 2, 0)]);
    let skipped: Vec<(Skip, u64)> = reading.skipped().collect();
    assert_eq!(skipped, [(Skip::NotTerminated, 2), (Skip::EmptyField, 1)]);
    assert_eq!(reading.malformed, 0);
}

#[test]
fn draconis_rows_are_jobs_of_equal_tasks_with_or_without_a_header() {
    let rows = "1,1000,50,3\n2,2000,7,1\n";
    let expected = [job(1_000_000, 50_000, 3, 0), job(2_000_000, 7_000, 1, 0)];
    assert_eq!(reading(rows).workload.jobs(), expected);
    let with_header = reading(&format!("job_id,arrival_us,task_runtime_us,num_tasks\n{rows}"));
    assert_eq!((with_header.format, with_header.workload.jobs()), (Format::Draconis, &expected[..]));
    assert_eq!(with_header.malformed, 0);
}

fn event(time_us: u64, job: u64, index: u64, event_type: u64, priority: u64) -> String {
    format!("{time_us},,{job},{index},77,{event_type},user=,2,{priority},0.1,0.1,0.0,0\n")
}

#[test]
fn malformed_lines_are_named_with_line_and_reason() {
    let google =
        [(1, 1, 0), (2, 4, 0), (3, 9, 0), (3, 1, 12)].map(|(us, kind, priority)| event(us, 1, 0, kind, priority));
    let google = google.concat() + "1,2,3\n";
    for (text, expected) in [
        ("1 1 5 5\n2 3 5 5 5\n", "trace:2: says 3 tasks but lists 2 durations"),
        ("1 1 5 5\n3 1 5 -5\n", "trace:2: duration is '-5', not a number of seconds from 0 to 4.6e9"),
        (
            "1 1 5 5\n4 0 5\n5 1\n",
            "trace:2: says 0 tasks but lists 0 durations\ntrace:3: 2 fields where the format has at least 4",
        ),
        ("1,2,3,4,1,Terminated,,\n2,1,3,4,1,Terminated,,\n", "trace:2: ends before it starts"),
        ("1,2,3,4,1,Terminated,,\nx,1,3,4,1,Terminated,,\n", "trace:2: create_s is 'x', not a whole number from 0"),
        ("1,2,3,4,1,Terminated,,\n1,2,3,4,0,Terminated,,\n", "trace:2: says 0 tasks but lists 0 durations"),
        ("1,2,3,4,1,Terminated,,\n1,2\n", "trace:2: 2 fields where the format has 8"),
        (
            "1,1000,50,3\njob_id,arrival_us,task_runtime_us,num_tasks\n",
            "trace:2: arrival_us is 'arrival_us', not a whole number from 0",
        ),
        (
            "1,1000,50,3\n1,1000,50,18446744073709551615\n",
            "trace:2: a job of 18446744073709551615 tasks: at most 1048576",
        ),
        (
            &google,
            "trace:3: event_type is '9', not an event from 0 to 8\ntrace:4: priority is '12', not a priority from 0 to 11\ntrace:5: 3 fields where the format has 13",
        ),
    ] {
        let reading = reading(text);
        assert_eq!(reading.shown.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), expected, "{text}");
        assert_eq!(reading.malformed, reading.shown.len() as u64);
    }
}

#[test]
fn google_tasks_run_from_schedule_to_finish_and_twelve_priorities_become_four() {
    let text = [
        event(1_000, 8, 0, 0, 11),
        event(2_000, 9, 0, 1, 0),
        event(3_000, 8, 0, 1, 11),
        event(4_000, 8, 1, 1, 4),
        event(8_000, 8, 1, 4, 4),
        event(9_000, 8, 0, 4, 11),
        event(9_500, 9, 0, 4, 0),
    ]
    .concat();
    let reading = reading(&text);
    assert_eq!(reading.format, Format::Google);
    let tasks =
        vec![TaskSpec { duration_ns: 4_000_000, priority: 3 }, TaskSpec { duration_ns: 6_000_000, priority: 1 }];
    assert_eq!(reading.workload.jobs(), [Job { arrival_ns: 1_000_000, tasks }, job(2_000_000, 7_500_000, 1, 4)]);
}

#[test]
fn google_tasks_without_both_ends_are_counted_not_guessed() {
    let text = [
        event(0, 1, 0, 1, 0),
        event(5, 1, 1, 1, 0),
        event(6, 1, 1, 2, 0),
        event(7, 1, 1, 1, 0),
        event(8, 1, 1, 4, 0),
        event(9, 1, 2, 4, 0),
        event(10, 1, 3, 1, 0),
        event(11, 1, 3, 8, 0),
        event(i64::MAX as u64, 1, 3, 4, 0),
    ]
    .concat();
    let reading = reading(&text);
    assert_eq!(reading.workload.jobs(), [job(5_000, 1_000, 1, 4)]);
    let skipped: Vec<(Skip, u64)> = reading.skipped().collect();
    assert_eq!(skipped, [(Skip::OutsideTrace, 2), (Skip::NotFinished, 2), (Skip::NotScheduled, 1)]);
}

#[test]
fn gzip_is_recognised_by_its_content() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"1,1000,50,3\n").unwrap();
    let bytes = packed.finish().unwrap();
    let reading = read(&bytes[..], "trace.gz", &ReadOptions::default()).unwrap();
    assert_eq!(reading.workload.jobs(), [job(1_000_000, 50_000, 3, 0)]);
}

#[test]
fn a_damaged_gzip_is_an_error_with_the_file_name() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"1,1000,50,3\n").unwrap();
    let bytes = packed.finish().unwrap();
    let error = read(&bytes[..bytes.len() - 9], "trace.gz", &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }));
    assert!(error.to_string().starts_with("trace.gz: "), "{error}");
}

#[test]
fn strict_makes_the_first_malformed_line_fatal() {
    let options = ReadOptions { strict: true, ..ReadOptions::default() };
    let error = read(&b"1 1 5 5\n2 3 5 5 5\n"[..], "t.tr", &options).unwrap_err();
    assert_eq!(error.to_string(), "t.tr:2: says 3 tasks but lists 2 durations (--strict)");
}

#[test]
fn all_malformed_lines_are_counted_and_the_first_few_kept() {
    let reading = reading(&format!("1 1 5 5\n{}", "bad\n".repeat(100)));
    assert_eq!((reading.malformed, reading.shown.len()), (100, 5));
    assert_eq!(reading.shown[0].reason, Reason::Fields { wanted: "at least 4", got: 1 });
}

#[test]
fn a_trace_beyond_the_bound_is_refused_with_its_line() {
    let options = ReadOptions { max_tasks: 5, ..ReadOptions::default() };
    let error = read(&b"1,1000,50,3\n2,2000,50,3\n"[..], "t", &options).unwrap_err();
    assert_eq!(error.to_string(), "t:2: more than 5 tasks: cut the file into pieces");
}

#[test]
fn a_google_file_of_open_tasks_meets_the_bound_too() {
    let options = ReadOptions { max_tasks: 5, ..ReadOptions::default() };
    let text: String = (0..9).map(|i| event(5 + i, i, 0, 1, 0)).collect();
    let error = read(text.as_bytes(), "t", &options).unwrap_err();
    assert!(matches!(error, ReadError::TooManyTasks { line: 3, .. }), "{error}");
}

#[test]
fn an_unknown_format_says_which_option_names_it() {
    let error = read_text("hello world\n").unwrap_err();
    assert!(error.to_string().contains("--format"), "{error}");
    let options = ReadOptions { format: Some(Format::Draconis), ..ReadOptions::default() };
    let error = read(&b"hello world\n"[..], "t", &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t: no tasks in 1 lines (1 malformed); the first: t:1: 1 fields where the format has 4"
    );
}

#[test]
fn an_empty_file_has_no_tasks() {
    assert_eq!(read_text("\n\n").unwrap_err().to_string(), "trace: no tasks in 2 lines (0 malformed)");
}

fn formats() -> impl Strategy<Value = Option<Format>> {
    use Format::{Alibaba, Draconis, Google, Tr};
    prop::sample::select(vec![None, Some(Tr), Some(Alibaba), Some(Draconis), Some(Google)])
}

/// Small bounds, so that the tests reach them.
fn small(format: Option<Format>) -> ReadOptions {
    ReadOptions { format, max_line_bytes: 200, max_job_tasks: 100, max_tasks: 1_000, ..ReadOptions::default() }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), format in formats()) {
        let _ = read(&bytes[..], "t", &small(format));
    }

    #[test]
    fn no_line_of_plausible_fields_makes_a_reader_panic_or_exceed_its_bounds(
        lines in prop::collection::vec("([0-9]{1,20}|-1|Terminated|1e9|nan|)([ ,]([0-9]{0,19}|[0-9]|Terminated|1e300|))*", 0..20),
        format in formats(),
    ) {
        if let Ok(reading) = read(lines.join("\n").as_bytes(), "t", &small(format)) {
            prop_assert!(reading.workload.tasks() <= 1_000);
            prop_assert!(reading.workload.jobs().iter().all(|job| (1..=100).contains(&job.tasks.len())));
        }
    }

    #[test]
    fn a_tr_file_that_is_written_is_read_back(
        jobs in prop::collection::vec((0u64..1 << 40, prop::collection::vec(0u64..1 << 40, 1..20)), 1..20),
    ) {
        let text: String = jobs.iter().map(|(arrival_us, durations_us)| {
            let seconds = |us: &u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            let durations: Vec<String> = durations_us.iter().map(seconds).collect();
            format!("{} {} 0 {}\n", seconds(arrival_us), durations.len(), durations.join(" "))
        }).collect();
        let reading = reading(&text);
        prop_assert_eq!(reading.malformed, 0);
        let mut sorted = jobs;
        sorted.sort_by_key(|(arrival_us, _)| *arrival_us);
        let us = |ns: u64| (ns + 500) / 1_000;
        let found: Vec<(u64, Vec<u64>)> = reading.workload.jobs().iter()
            .map(|job| (us(job.arrival_ns as u64), job.tasks.iter().map(|task| us(task.duration_ns)).collect()))
            .collect();
        prop_assert_eq!(found, sorted);
    }
}
