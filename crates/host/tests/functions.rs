//! Functions of executors, and their results.

mod common;

use common::{PATIENCE, client, failure, start_executor, switch, values, world};
use midflight_host::{Error, Executor, Job, TaskContext, TaskError};
use midflight_tasks::functions::ExecResult;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

#[test]
fn built_in_functions_do_what_they_say() {
    let (_switch, _executor, client) = world(4);
    let noop = client.submit(Job::builder("noop").task("").build()).unwrap();
    assert_eq!(values(noop.wait()), [b""]);

    let began = Instant::now();
    let ms = |ms: u64| (ms * 1_000_000).to_be_bytes();
    let sleeps = client.submit(Job::builder("sleep").tasks([ms(30), ms(10), ms(20)]).build()).unwrap();
    let order: Vec<usize> = sleeps.completions().map(|(index, outcome)| outcome.map(|_| index).unwrap()).collect();
    assert_eq!(order, [1, 2, 0]);
    assert!(began.elapsed() >= Duration::from_millis(30));

    let spin = client.submit(Job::builder("spin").task(ms(5)).build()).unwrap().wait().remove(0).unwrap();
    assert!(spin.timing.ran_ns >= 5_000_000, "{:?}", spin.timing);

    let exec = client.submit(Job::builder("exec").task("echo $((6 * 7)); exit 5").build()).unwrap();
    let result = ExecResult::decode(&values(exec.wait())[0]).unwrap();
    assert_eq!((result.code, &result.stdout[..]), (5, &b"42\n"[..]));
}

#[test]
fn errors_panics_and_unknown_functions_are_told_to_the_caller_and_harm_nobody() {
    let switch = switch();
    let builder = Executor::builder()
        .register("fails", |_, argument| Err(format!("cannot {}", String::from_utf8_lossy(argument))))
        .register("panics", |_, _| -> Result<Vec<u8>, String> { panic!("on purpose") })
        .register_inline("inline panics", |_, _| -> Result<Vec<u8>, String> { panic!("inline, on purpose") });
    let executor = start_executor(builder, switch.local_addr(), 2);
    let client = client(switch.local_addr());
    let run = |name: &str| client.submit(Job::builder(name).task("do this").build()).unwrap().wait().remove(0);
    for _ in 0..3 {
        assert_eq!(failure(run("fails")), "cannot do this");
        assert_eq!(failure(run("panics")), "panicked: on purpose");
        assert_eq!(failure(run("inline panics")), "panicked: inline, on purpose");
        assert_eq!(run("nobody knows it"), Err(TaskError::Unknown.into()));
    }
    assert!(run("noop").is_ok());
    assert_eq!(executor.registered(), 2);
}

#[test]
fn a_failure_is_tried_again_where_asked_and_the_function_knows_its_attempt() {
    let switch = switch();
    let flaky = |context: &TaskContext, _: &[u8]| {
        if context.attempt < 3 { Err("not yet") } else { Ok(vec![context.attempt]) }
    };
    let _executor = start_executor(Executor::builder().register("flaky", flaky), switch.local_addr(), 1);
    let client = client(switch.local_addr());
    let job = Job::builder("flaky").retries(2).task("").build();
    assert_eq!(values(client.submit(job).unwrap().wait()), [[3]]);
}

#[test]
fn a_task_that_takes_too_long_is_told_as_timed_out() {
    let (_switch, _executor, client) = world(2);
    let long = 5_000_000_000u64.to_be_bytes();
    let job = Job::builder("sleep").timeout(Duration::from_millis(40)).retries(1).task(long).build();
    assert_eq!(client.submit(job).unwrap().wait(), [Err(TaskError::TimedOut.into())]);
}

#[test]
fn arguments_and_results_of_any_size_arrive_whole() {
    let switch = switch();
    let rotate = |_: &TaskContext, argument: &[u8]| {
        let mut value = argument.to_vec();
        value.rotate_left(argument.len().min(1));
        Ok::<_, String>(value)
    };
    let executor = start_executor(Executor::builder().register_inline("rotate", rotate), switch.local_addr(), 2);
    let client = client(switch.local_addr());
    for size in [0usize, 1, 16, 17, 1024, 1025, 70_000, 1 << 20, 64 << 20] {
        let mut argument = (0..=250).collect::<Vec<u8>>().repeat(size / 251 + 1);
        argument.truncate(size);
        let job = client.submit(Job::builder("rotate").task(argument.clone()).build()).unwrap();
        argument.rotate_left(size.min(1));
        assert!(values(job.wait()) == [argument], "{size} bytes");
    }
    let too_long = client.submit(Job::builder("rotate").task(vec![0; (64 << 20) + 1]).build());
    assert!(too_long.unwrap_err().to_string().contains("exceeds 67108864 bytes"));
    let deadline = Instant::now() + PATIENCE;
    while executor.counts().blobs.kept + client.counts().blobs.kept > 0 {
        assert!(Instant::now() < deadline, "blobs are kept: {:?} {:?}", executor.counts(), client.counts());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn thousands_of_results_come_over_few_connections() {
    let switch = switch();
    let pad = |_: &TaskContext, argument: &[u8]| Ok::<_, String>(argument.repeat(61));
    let executor = start_executor(Executor::builder().register("pad", pad), switch.local_addr(), 8);
    let client = client(switch.local_addr());
    let arguments: Vec<Vec<u8>> = (0..2_000u64).map(|i| i.to_be_bytes().repeat(3)[..17].to_vec()).collect();
    let job = client.submit(Job::builder("pad").tasks(arguments.clone()).build()).unwrap();
    for (value, argument) in values(job.wait()).iter().zip(&arguments) {
        assert!(*value == argument.repeat(61));
    }
    assert_eq!(executor.counts().blobs.served, 2_000);
}

/// With more slots than an ASSIGN has room for tasks, and with so few that the executor prefetches.
#[test]
fn arguments_of_up_to_480_bytes_come_with_their_tasks() {
    let switch = switch();
    let same = |_: &TaskContext, argument: &[u8]| Ok::<_, String>(argument.to_vec());
    for slots in [2, 40] {
        let builder = Executor::builder().register_inline("same", same).register("same on a worker", same);
        let executor = start_executor(builder, switch.local_addr(), slots);
        let client = client(switch.local_addr());
        for function in ["same", "same on a worker"] {
            let arguments: Vec<Vec<u8>> =
                (0..3_000u64).map(|i| i.to_be_bytes().repeat(60)[..(i % 481) as usize].to_vec()).collect();
            let job = client.submit(Job::builder(function).tasks(arguments.clone()).build()).unwrap();
            assert!(values(job.wait()) == arguments, "{function}, {slots} slots");
        }
        assert_eq!((executor.counts().argument_fetches, client.counts().blobs.served), (0, 0));
    }
}

#[test]
fn inline_functions_take_arguments_that_are_not_in_the_packet() {
    let switch = switch();
    let same = |_: &TaskContext, argument: &[u8]| Ok::<_, String>(argument.to_vec());
    let executor = start_executor(Executor::builder().register_inline("same", same), switch.local_addr(), 8);
    let client = client(switch.local_addr());
    let arguments: Vec<Vec<u8>> = (0..300u64).map(|i| i.to_be_bytes().repeat(100)).collect();
    let job = client.submit(Job::builder("same").tasks(arguments.clone()).build()).unwrap();
    assert!(values(job.wait()) == arguments);
    assert_eq!(executor.counts().argument_fetches, 300);
}

#[test]
fn many_tasks_share_one_argument_by_reference() {
    let switch = switch();
    let length = |_: &TaskContext, argument: &[u8]| Ok::<_, String>(argument.len().to_be_bytes().to_vec());
    let _executor = start_executor(Executor::builder().register("length", length), switch.local_addr(), 4);
    let client = client(switch.local_addr());
    let job = client.submit(Job::builder("length").repeat(200, vec![7; 100_000]).build()).unwrap();
    let kept = client.counts().blobs;
    assert!(kept.kept <= 1 && kept.kept_bytes <= 100_000, "{kept:?}");
    assert!(values(job.wait()).iter().all(|value| value == &100_000usize.to_be_bytes()));
    assert_eq!(client.counts().blobs.kept, 0);
}

#[test]
fn a_sink_gets_each_outcome_once() {
    let (_switch, _executor, client) = world(4);
    let (sender, receiver) = std::sync::mpsc::channel();
    let sink = move |index, outcome: Result<_, Error>| sender.send((index, outcome.is_ok())).unwrap();
    let _job = client.submit_to(Job::builder("noop").repeat(500, "").build(), sink).unwrap();
    let mut got: Vec<_> = (0..500).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
    got.sort_unstable();
    assert_eq!(got, (0..500).map(|index| (index, true)).collect::<Vec<_>>());
    assert!(receiver.try_recv().is_err());
}

#[test]
fn tasks_are_futures() {
    struct Count(AtomicUsize, std::thread::Thread);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            self.1.unpark();
        }
    }
    let (_switch, _executor, client) = world(2);
    let ms = |ms: u64| (ms * 1_000_000).to_be_bytes();
    let tasks = client.submit(Job::builder("sleep").tasks([ms(5), ms(10)]).build()).unwrap().into_tasks();
    let count = Arc::new(Count(AtomicUsize::new(0), std::thread::current()));
    let waker = Waker::from(Arc::clone(&count));
    for task in tasks {
        let mut task = pin!(task);
        let outcome = loop {
            match task.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcome) => break outcome,
                Poll::Pending => std::thread::park_timeout(PATIENCE),
            }
        };
        assert!(outcome.is_ok());
        assert_eq!(task.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Err(Error::Taken)));
    }
    assert!(count.0.load(Ordering::SeqCst) >= 1);
}
