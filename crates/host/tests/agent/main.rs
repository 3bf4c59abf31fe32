//! The agent over real sockets, with misbehaving backends and with memcached and Redis.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

mod asker;
mod datagrams;
mod real;
mod scripted;
mod streams;
mod wrong;

use midflight_host::cache::agent::{Agent, AgentCounters, AgentOptions};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Options with a short timeout of the backend, which tests wait for.
fn options(backend: &str) -> AgentOptions {
    AgentOptions {
        backend_timeout: Duration::from_millis(300),
        ..AgentOptions::new(loopback(), backend.parse().unwrap())
    }
}

fn start(options: AgentOptions) -> Agent {
    Agent::start(options, || panic!("the agent has ended by itself")).unwrap()
}

fn wait_for(agent: &Agent, what: &str, is_so: impl Fn(AgentCounters) -> bool) {
    wait_until(what, || is_so(agent.report().counters), || format!("{:?}", agent.report()));
}

fn wait_for_flag(flag: &AtomicBool) {
    wait_until("the flag is set", || flag.load(Relaxed), String::new);
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool, or: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: {}", or());
        std::thread::sleep(Duration::from_millis(5));
    }
}
