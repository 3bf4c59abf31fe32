//! A switch, executors and clients in this process, over loopback.

#![allow(dead_code, reason = "each test binary uses what it needs")]
#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_host::{Client, Error, Executor, ExecutorBuilder, Switch, TaskError, TaskOutcome};
use std::net::SocketAddr;
use std::time::Duration;

/// Longest wait of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

pub(crate) fn switch() -> Switch {
    Switch::builder().start().unwrap()
}

pub(crate) fn client(switch: SocketAddr) -> Client {
    Client::builder().switch(switch).connect().unwrap()
}

pub(crate) fn start_executor(builder: ExecutorBuilder, switch: SocketAddr, slots: u32) -> Executor {
    let executor = builder.switch(switch).slots(slots).start().unwrap();
    assert!(executor.wait_registered(slots, PATIENCE), "{} of {slots} slots", executor.registered());
    executor
}

/// A switch, an executor with `slots` slots and the built-in functions, and a client.
pub(crate) fn world(slots: u32) -> (Switch, Executor, Client) {
    let switch = switch();
    let executor = start_executor(Executor::builder(), switch.local_addr(), slots);
    let client = client(switch.local_addr());
    (switch, executor, client)
}

pub(crate) fn values(outcomes: Vec<TaskOutcome>) -> Vec<Vec<u8>> {
    outcomes.into_iter().map(|outcome| outcome.unwrap().value).collect()
}

pub(crate) fn failure(outcome: TaskOutcome) -> String {
    match outcome {
        Err(Error::Task(TaskError::Failed { message, .. })) => message,
        other => panic!("not a failure: {other:?}"),
    }
}
