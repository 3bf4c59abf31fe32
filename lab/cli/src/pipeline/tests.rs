//! The asic engine behind a real socket, with real clients and executors.

use super::*;
use midflight_host::{Client, Executor, ExecutorBuilder, Job, Switch, SwitchEngine, TaskOutcome};
use std::net::SocketAddr;
use std::time::Instant;

/// Timeout of every wait in a test.
const PATIENCE: Duration = Duration::from_secs(30);

fn switch(program: Program) -> Switch {
    let engine = SwitchEngine::Other("asic".into());
    let start = |place: EnginePlace<'_, TasksProgram>| -> Result<Box<dyn Hosted<TasksProgram>>, Error> {
        Ok(Box::new(AsicEngine::new(place.program, Queue::of(program, place.program, None), place.epoch)?))
    };
    Switch::builder().engine(engine).bind_with(start).unwrap().run(|| ()).unwrap()
}

fn client(switch: SocketAddr) -> Client {
    Client::builder().switch(switch).connect_lazy().unwrap()
}

/// Waits until all slots are registered.
fn started(builder: ExecutorBuilder, switch: SocketAddr, slots: u32) -> Executor {
    let executor = builder.switch(switch).slots(slots).start().unwrap();
    assert!(executor.wait_registered(slots, PATIENCE), "{} of {slots} slots", executor.registered());
    executor
}

fn values(outcomes: Vec<TaskOutcome>) -> Vec<Vec<u8>> {
    outcomes.into_iter().map(|outcome| outcome.unwrap().value).collect()
}

fn count(switch: &Switch, name: &str) -> u64 {
    switch.shell_counts().into_iter().find_map(|(other, count)| (other == name).then_some(count)).unwrap_or(0)
}

/// Idle slots get NO_OP, poll again, and get later tasks. If a response is late, the SUBMIT is retransmitted and its tasks run again (T8).
#[test]
fn idle_slots_poll_and_get_what_comes() {
    for program in [Program::Safe, Program::Published] {
        let switch = switch(program);
        let executor = started(Executor::builder(), switch.local_addr(), 8);
        let deadline = Instant::now() + PATIENCE;
        while count(&switch, "asic_no_ops") < 50 {
            assert!(Instant::now() < deadline, "{program}: slots that find nothing ask again");
            std::thread::sleep(Duration::from_millis(5));
        }
        let client = client(switch.local_addr());
        let job = client.submit(Job::builder("noop").repeat(2_000, "").build()).unwrap();
        assert!(job.wait_timeout(PATIENCE), "{program}");
        assert!(job.wait().iter().all(Result::is_ok), "{program}");
        assert!(executor.counts().protocol.runs >= 2_000, "{program}");
    }
}

/// Larger arguments go by reference, as with any switch.
#[test]
fn arguments_of_any_size_arrive_whole() {
    for program in [Program::Safe, Program::Published] {
        let switch = switch(program);
        let echo = |_: &_, bytes: &[u8]| Ok::<_, String>(bytes.to_vec());
        let _executor = started(Executor::builder().register("echo", echo), switch.local_addr(), 2);
        let client = client(switch.local_addr());
        let arguments: Vec<Vec<u8>> = [0, 1, 16, 17, 100_000].map(|length| vec![7; length]).to_vec();
        let job = arguments.iter().fold(Job::builder("echo"), |job, argument| job.task(argument.clone()));
        assert_eq!(values(client.submit(job.build()).unwrap().wait()), arguments, "{program}");
    }
}

/// T5: the first task of the queue may run only on other executors.
#[test]
fn t5_a_search_finds_what_a_slot_may_run() {
    let switch = switch(Program::Safe);
    let named = |name: &'static str| move |_: &_, _: &[u8]| Ok::<_, String>(name.as_bytes().to_vec());
    let client = client(switch.local_addr());
    let gpu = client.submit(Job::builder("who").resources(0b10).repeat(40, "").build()).unwrap();
    let any = client.submit(Job::builder("who").repeat(40, "").build()).unwrap();
    let submitted = rounds_at_rest(&switch);
    let _plain = started(Executor::builder().register("who", named("plain")), switch.local_addr(), 2);
    assert!(values(any.wait()).iter().all(|name| name == b"plain"));
    let _gpu = started(Executor::builder().resources(0b10).register("who", named("gpu")), switch.local_addr(), 2);
    assert!(values(gpu.wait()).iter().all(|name| name == b"gpu"));
    assert!(rounds_at_rest(&switch) > submitted + 40, "each of the second forty was behind the first");
}

/// Counted rounds, once they stop growing.
fn rounds_at_rest(switch: &Switch) -> u64 {
    let (mut before, deadline) = (u64::MAX, Instant::now() + PATIENCE);
    loop {
        let now = count(switch, "asic_rounds");
        if now == before && now > 0 {
            return now;
        }
        assert!(Instant::now() < deadline, "searches end");
        before = now;
        std::thread::sleep(Duration::from_millis(250));
    }
}
