//! Commands over a switch: requests, and outputs of all sizes.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{client, failure, start_executor, switch, world};
use midflight_host::{BlobOptions, Client, Error, Executor, Job, TaskError, TaskOutcome};
use midflight_tasks::functions::{ExecRequest, ExecResult};
use std::io::Read;
use std::time::Duration;

fn run(client: &Client, request: &ExecRequest) -> TaskOutcome {
    client.submit(Job::builder("command").task(request.encode().unwrap()).build()).unwrap().wait().remove(0)
}

/// More than a client takes into memory.
const LARGE: usize = 70_000_000;

fn large() -> ExecRequest {
    ExecRequest::new(format!("yes 123456789 | head -c {LARGE}; echo late >&2"))
}

#[test]
fn a_command_runs_as_its_request_says() {
    let (_switch, _executor, client) = world(1);
    let request = ExecRequest {
        command_line: b"echo $WORD; pwd; sleep 100".to_vec(),
        directory: Some(b"/usr".to_vec()),
        environment: vec![(b"WORD".to_vec(), b"hello".to_vec())],
        timeout: Some(Duration::from_millis(200)),
    };
    let result = ExecResult::decode(&run(&client, &request).unwrap().value).unwrap();
    assert_eq!((result.code, result.timed_out, &result.stdout[..]), (124, true, &b"hello\n/usr\n"[..]));
    let malformed = client.submit(Job::builder("command").task("echo").build()).unwrap().wait().remove(0);
    assert!(failure(malformed).contains("is no request"));
}

#[test]
fn a_large_output_comes_as_a_file_to_who_asks_for_files() {
    let (switch, executor, _) = world(1);
    let client = Client::builder().switch(switch.local_addr()).files(true).connect().unwrap();
    let result = run(&client, &large()).unwrap();
    assert!(result.value.is_empty() && result.file.is_some());
    let mut bytes = Vec::new();
    result.reader().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, result.value_len());
    let output = ExecResult::decode(&bytes).unwrap();
    assert_eq!((output.code, output.stdout.len(), &output.stderr[..]), (0, LARGE, &b"late\n"[..]));
    assert!(output.stdout.chunks(10).all(|line| line == b"123456789\n"));
    assert_eq!(client.counts().blobs.file_bytes, bytes.len() as u64);
    drop(result);
    assert_eq!(client.counts().blobs.file_bytes, 0);
    assert_eq!(executor.counts().outputs_not_kept, 0);
}

#[test]
fn a_large_output_is_refused_by_who_does_not_ask_for_files() {
    let (_switch, _executor, client) = world(1);
    let outcome = run(&client, &large());
    assert!(
        matches!(outcome, Err(Error::Task(TaskError::TooLarge { length, .. })) if length as usize > LARGE),
        "{outcome:?}"
    );
}

#[test]
fn a_client_without_room_says_so_and_does_not_run_the_command_again() {
    let (switch, executor, _) = world(1);
    let mut blobs = BlobOptions::default();
    blobs.max_file_bytes = 1_000_000;
    let client = Client::builder().switch(switch.local_addr()).files(true).blobs(blobs).connect().unwrap();
    let outcome = run(&client, &large());
    assert!(
        matches!(&outcome, Err(Error::Task(TaskError::NotKept { why })) if why.contains("would exceed 1000000 bytes")),
        "{outcome:?}"
    );
    assert_eq!(executor.counts().protocol.runs, 1);
}

#[test]
fn an_output_without_room_at_the_executor_is_a_failure_and_is_counted() {
    let switch = switch();
    let mut blobs = BlobOptions::default();
    blobs.max_file_bytes = 1_000_000;
    let executor = start_executor(Executor::builder().blobs(blobs), switch.local_addr(), 1);
    let message = failure(run(&client(switch.local_addr()), &ExecRequest::new("yes")));
    assert!(message.starts_with("its output could not be kept whole"), "{message}");
    assert_eq!(executor.counts().outputs_not_kept, 1);
    assert_eq!(executor.counts().blobs.file_bytes, 0);
}
