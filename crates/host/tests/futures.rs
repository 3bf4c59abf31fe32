//! Asynchronous functions of executors.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{PATIENCE, client, failure, start_executor, switch, values};
use midflight_host::{Executor, Job, TaskError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::sync::Barrier;

const MS: Duration = Duration::from_millis(1);

#[test]
fn as_many_run_at_once_as_there_are_slots_on_one_thread() {
    let switch = switch();
    let all = Arc::new(Barrier::new(64));
    let wait = move |_, argument: Vec<u8>| {
        let all = Arc::clone(&all);
        async move {
            tokio::time::timeout(PATIENCE, all.wait()).await.map_err(|late| late.to_string())?;
            Ok::<_, String>([argument, format!("{:?}", std::thread::current().id()).into_bytes()].concat())
        }
    };
    let _executor = start_executor(Executor::builder().register_async("wait", wait), switch.local_addr(), 64);
    let client = client(switch.local_addr());
    let values = values(client.submit(Job::builder("wait").repeat(64, "on ").build()).unwrap().wait());
    assert!(values.iter().all(|value| *value == values[0] && value.starts_with(b"on ThreadId")), "{values:?}");
}

#[test]
fn errors_and_panics_are_reported_and_large_values_round_trip() {
    let switch = switch();
    let builder = Executor::builder()
        .register_async("fails", |_, _| async { Err("cannot") })
        .register_async("panics", |_, _| async {
            tokio::time::sleep(MS).await;
            assert!(false_at_run_time(), "on purpose");
            Ok::<_, String>(Vec::new())
        })
        .register_async("twice", |_, argument: Vec<u8>| async move { Ok::<_, String>(argument.repeat(2)) });
    let executor = start_executor(builder, switch.local_addr(), 2);
    let client = client(switch.local_addr());
    let run =
        |name: &str, argument: &str| client.submit(Job::builder(name).task(argument).build()).unwrap().wait().remove(0);
    assert_eq!(failure(run("fails", "")), "cannot");
    assert_eq!(failure(run("panics", "")), "panicked: on purpose");
    assert_eq!(run("twice", "ab").unwrap().value, b"abab");
    let long = "x".repeat(3_000);
    assert_eq!(run("twice", &long).unwrap().value.len(), 6_000);
    assert_eq!(executor.running(), 0);
}

fn false_at_run_time() -> bool {
    std::env::args().count() == 0
}

#[test]
fn t17_one_whose_task_is_cancelled_is_dropped() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let (switch, begun, dropped) = (switch(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (begins, counter) = (Arc::clone(&begun), Arc::clone(&dropped));
    let never = move |_, _| {
        begins.fetch_add(1, SeqCst);
        let guard = Dropped(Arc::clone(&counter));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok::<_, String>(Vec::new())
        }
    };
    let executor = start_executor(Executor::builder().register_async("never", never), switch.local_addr(), 2);
    let client = client(switch.local_addr());
    let job = client.submit(Job::builder("never").task("").task("").build()).unwrap();
    let wait_for = |count: usize| {
        let since = Instant::now();
        while begun.load(SeqCst) < count {
            assert!(since.elapsed() < PATIENCE);
            std::thread::sleep(MS);
        }
    };
    wait_for(2);
    job.cancel();
    assert_eq!(job.cancel_report(PATIENCE).stopped, 2);
    assert!(job.wait().into_iter().all(|outcome| outcome == Err(TaskError::Cancelled.into())));
    assert_eq!(dropped.load(SeqCst), 2);
    // A stopping executor drops what runs.
    let _job = client.submit(Job::builder("never").task("").build()).unwrap();
    wait_for(3);
    drop(executor);
    assert_eq!(dropped.load(SeqCst), 3);
}
