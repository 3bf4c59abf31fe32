//! The order and place in which tasks run, and what ends them.

mod common;

use common::{PATIENCE, client, loopback, start_executor, switch, values, world};
use midflight_host::{CancelReport, Client, Error, Executor, Job, Switch, TaskContext, TaskError, TaskSpec};
use midflight_tasks::functions::ExecResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn ms(ms: u64) -> [u8; 8] {
    (ms * 1_000_000).to_be_bytes()
}

#[test]
fn t4_higher_priorities_go_first() {
    let (_switch, _executor, client) = world(1);
    let blocker = client.submit(Job::builder("sleep").task(ms(100)).build()).unwrap();
    let levels = [8u8, 5, 1, 4, 2];
    let tasks = levels.iter().fold(Job::builder("sleep"), |job, level| job.priority(*level).task(ms(1)));
    let job = client.submit(tasks.build()).unwrap();
    let order: Vec<u8> = job.completions().map(|(index, _)| levels[index]).collect();
    assert_eq!(order, [1, 2, 4, 5, 8]);
    assert!(blocker.wait().remove(0).is_ok());
}

#[test]
fn t5_tasks_only_run_where_their_resources_are() {
    let switch = switch();
    let named = |name: &'static str| move |_: &_, _: &[u8]| Ok::<_, String>(name.as_bytes().to_vec());
    let address = switch.local_addr();
    let _plain = start_executor(Executor::builder().register("who", named("plain")), address, 2);
    let _gpu = start_executor(Executor::builder().resources(0b10).register("who", named("gpu")), address, 2);
    let client = client(address);
    let job = Job::builder("who").resources(0b10).repeat(50, "").build();
    assert!(values(client.submit(job).unwrap().wait()).iter().all(|name| name == b"gpu"));
    let nowhere = client.submit(Job::builder("who").resources(0b100).task("").build()).unwrap();
    assert!(!nowhere.wait_timeout(Duration::from_millis(50)));
    nowhere.cancel();
    assert_eq!(nowhere.wait(), [Err(TaskError::Cancelled.into())]);
}

#[test]
fn what_has_not_been_assigned_can_be_cancelled() {
    let (_switch, executor, client) = world(1);
    let running = client.submit(Job::builder("sleep").task(ms(80)).build()).unwrap();
    wait_for_runs(&executor, 1);
    let queued = client.submit(Job::builder("sleep").repeat(100, ms(1)).build()).unwrap();
    queued.cancel_queued();
    running.cancel_queued();
    assert!(queued.wait().into_iter().all(|outcome| outcome == Err(TaskError::Cancelled.into())));
    assert!(running.wait().remove(0).is_ok(), "what runs ends as it would have");
    assert_eq!(executor.counts().protocol.runs, 1);
}

fn wait_for_runs(executor: &Executor, count: u32) {
    wait_for("enough run", || executor.running() >= count);
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn t17_what_runs_is_stopped_and_the_report_says_what_became_of_each() {
    let switch = switch();
    let listens = |task: &TaskContext, _: &[u8]| {
        if task.cancellation().wait(PATIENCE) { Err("cancelled") } else { Ok(Vec::new()) }
    };
    // One that has not begun would be stopped like the others.
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = has_begun.clone();
    let is_deaf = move |task: &TaskContext, _: &[u8]| {
        begins.store(true, Ordering::Relaxed);
        let _ = task.cancellation().wait(PATIENCE);
        Ok::<_, String>(b"nevertheless".to_vec())
    };
    let executor = Executor::builder().register("listens", listens).register("is_deaf", is_deaf);
    let executor = start_executor(executor, switch.local_addr(), 6);
    let client = client(switch.local_addr());
    let minute = || ms(60_000).to_vec();
    let tasks = [
        ("noop", Vec::new()),
        ("listens", Vec::new()),
        ("is_deaf", Vec::new()),
        ("sleep", minute()),
        ("spin", minute()),
        ("exec", b"sleep 60 & sleep 60".to_vec()),
        ("listens", Vec::new()),
        ("noop", Vec::new()),
    ];
    let job: Job = tasks.into_iter().map(|(function, argument)| TaskSpec::new(function, argument)).collect();
    let job = client.submit(job).unwrap();
    // The first one may be among the six, for a moment.
    wait_for("the first one ends", || executor.counts().protocol.finished == 1);
    wait_for_runs(&executor, 6);
    wait_for("the deaf one begins", || has_begun.load(Ordering::Relaxed));
    job.cancel();
    let report = job.cancel_report(PATIENCE);
    assert_eq!(report, CancelReport { taken_out: 1, stopped: 5, vanished: 0, ended: 2, open: 0 });
    let outcomes = job.wait();
    assert!(outcomes[0].is_ok());
    assert_eq!(outcomes[2].as_ref().unwrap().value, b"nevertheless");
    assert!(
        [1, 3, 4, 5, 6, 7].iter().all(|&place| outcomes[place] == Err(TaskError::Cancelled.into())),
        "{outcomes:?}"
    );
    let free = client.submit(Job::builder("noop").repeat(6, "").build()).unwrap();
    assert!(free.wait().iter().all(Result::is_ok), "the slots are free");
}

#[test]
fn t17_an_attempt_that_takes_too_long_is_stopped_also_by_a_client_that_ends() {
    let (_switch, executor, client) = world(1);
    let job =
        client.submit(Job::builder("exec").timeout(Duration::from_millis(50)).retries(0).task("sleep 60").build());
    assert_eq!(job.unwrap().wait(), [Err(TaskError::TimedOut.into())]);
    client.close();
    let deadline = Instant::now() + PATIENCE;
    while executor.running() > 0 {
        assert!(Instant::now() < deadline, "it runs on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_drained_executor_finishes_what_it_holds_and_takes_nothing_new() {
    let (switch, leaving, client) = world(2);
    let held = client.submit(Job::builder("sleep").repeat(2, ms(80)).build()).unwrap();
    wait_for_runs(&leaving, 2);
    leaving.begin_drain();
    let later = client.submit(Job::builder("noop").repeat(10, "").build()).unwrap();
    leaving.drain(PATIENCE).unwrap();
    assert!(held.wait().iter().all(Result::is_ok));
    assert_eq!(leaving.counts().protocol.runs, 2);
    let _other = start_executor(Executor::builder(), switch.local_addr(), 2);
    assert!(later.wait().iter().all(Result::is_ok));
}

/// The status of a killed command is not its result.
#[test]
fn t10_what_a_drain_out_of_time_kills_runs_again_elsewhere() {
    let (switch, executor, client) = world(1);
    let line = "[ $MIDFLIGHT_ATTEMPT -gt 1 ] || sleep 60";
    let job = client.submit(Job::builder("exec").task(line).build()).unwrap();
    wait_for_runs(&executor, 1);
    let within = Duration::from_millis(50);
    assert_eq!(executor.drain(within).unwrap_err(), Error::StillRunning { running: 1, within });
    let _other = start_executor(Executor::builder(), switch.local_addr(), 1);
    let result = job.wait().remove(0).unwrap();
    assert_eq!((ExecResult::decode(&result.value).unwrap().code, result.attempt), (0, 2));
}

#[test]
fn open_tasks_are_bounded_by_waiting_or_by_an_error() {
    let (switch, _executor, _) = world(4);
    let builder = Client::builder().switch(switch.local_addr()).max_open(10);
    let strict = builder.clone().wait_for_room(false).connect().unwrap();
    let _held = strict.submit(Job::builder("sleep").repeat(8, ms(50)).build()).unwrap();
    let error = strict.submit(Job::builder("noop").repeat(3, "").build()).unwrap_err();
    assert!(matches!(error, Error::TooManyOpen { open: 8, asked: 3, max: 10 }), "{error}");
    let patient = builder.connect().unwrap();
    let jobs: Vec<_> =
        (0..20).map(|_| patient.submit(Job::builder("sleep").repeat(5, ms(1)).build()).unwrap()).collect();
    assert!(jobs.into_iter().flat_map(|job| job.wait()).all(|outcome| outcome.is_ok()));
    assert!(patient.submit(Job::builder("noop").repeat(11, "").build()).is_err());
}

#[test]
fn connect_returns_once_a_switch_has_answered() {
    let switch = switch();
    let client = client(switch.local_addr());
    assert_eq!((client.switch(), client.epoch()), (switch.local_addr(), switch.epoch()));
    let bound = std::net::UdpSocket::bind(loopback()).unwrap();
    let silent = bound.local_addr().unwrap();
    let within = Duration::from_millis(50);
    let builder = Client::builder().switch(silent).connect_timeout(within);
    let error = builder.clone().connect().unwrap_err();
    assert_eq!(error, Error::NotConnected { addresses: vec![silent], within });
    assert_eq!(builder.connect_lazy().unwrap().epoch(), 0);
}

#[test]
fn closing_a_client_ends_every_wait() {
    let switch = switch(); // and no executor
    let client = client(switch.local_addr());
    let job = client.submit(Job::builder("noop").repeat(3, "").build()).unwrap();
    let waiter = std::thread::spawn(move || job.wait());
    std::thread::sleep(Duration::from_millis(20));
    client.close();
    assert!(waiter.join().unwrap().into_iter().all(|outcome| outcome == Err(Error::Closed)));
}

#[test]
fn ipv6_and_ipv4_meet_at_one_switch() {
    let switch = Switch::builder().listen("[::]:0".parse().unwrap()).start().unwrap();
    let port = switch.local_addr().port();
    let _executor = start_executor(Executor::builder(), ([127, 0, 0, 1], port).into(), 2);
    let four = client(([127, 0, 0, 1], port).into());
    assert!(four.submit(Job::builder("noop").repeat(10, "").build()).unwrap().wait().iter().all(Result::is_ok));
    let _six = client("[::1]:0".parse::<std::net::SocketAddr>().map(|a| (a.ip(), port).into()).unwrap());
}

#[test]
fn misconfiguration_is_one_line_that_says_what_to_do() {
    let errors = [
        Executor::builder().start().unwrap_err().to_string(),
        Executor::builder().switch(loopback()).slots(0).start().unwrap_err().to_string(),
        Executor::builder().switch(loopback()).slots(u32::MAX).start().unwrap_err().to_string(),
        Executor::builder()
            .switch(loopback())
            .register("noop", |_, _| Ok::<_, String>(vec![]))
            .start()
            .unwrap_err()
            .to_string(),
        Client::builder().connect().unwrap_err().to_string(),
        midflight_host::resolve("no port").unwrap_err().to_string(),
    ];
    let says = ["name at least one", "use 1 to", "use 1 to", "choose another name", "name at least one", "HOST:PORT"];
    for (error, says) in errors.iter().zip(says) {
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}
