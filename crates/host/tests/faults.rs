//! A network that loses, duplicates and reorders packets, while processes die.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

mod common;

use common::relay::{Faults, Relay};
use common::{PATIENCE, client, started, switch};
use midflight_host::{Client, Executor, Job, Switch};
use midflight_wire::{PACKET_MAX, VERSION};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const BAD: Faults = Faults { loss: 0.01, duplication: 0.01, reordering: 0.01 };

/// Checks that all tasks succeed, each once. Calls `midway` when half of them have.
fn run_all(client: &Client, job: Job, mut midway: impl FnMut()) {
    let tasks = job.tasks.len();
    let mut job = client.submit(job).unwrap().completions();
    let mut seen = vec![false; tasks];
    while let Some((index, outcome)) = job.next_timeout(PATIENCE) {
        assert!(outcome.is_ok(), "task {index}: {outcome:?}");
        assert!(!std::mem::replace(&mut seen[index], true), "task {index} ended twice");
        if job.left() == tasks / 2 {
            midway();
        }
    }
    assert_eq!(job.left(), 0, "{:?}", client.counts());
}

#[test]
fn t1_t8_a_bad_network_loses_and_doubles_no_task() {
    let switch = switch();
    let relay = Relay::start(switch.local_addr(), BAD, 1);
    let executors: Vec<_> = (0..2).map(|_| started(Executor::builder(), relay.switch_address(), 32)).collect();
    let client = client(relay.switch_address());
    run_all(&client, Job::builder("noop").repeat(100_000, "").build(), || {});
    let runs: u64 = executors.iter().map(|executor| executor.counts().protocol.runs).sum();
    println!("100,000 tasks took {runs} runs; {:?}", client.counts().protocol);
    drop((client, executors));
    let done = relay.stop();
    assert!(done.lost > 20 && done.duplicated > 20 && done.reordered > 20, "{done:?}");
}

#[test]
fn t9_t10_a_bad_network_a_new_switch_and_dying_executors_lose_nothing() {
    let mut switch = Some(switch());
    let address = switch.as_ref().unwrap().local_addr();
    let relay = Relay::start(address, BAD, 2);
    let mut executors: Vec<_> = (0..4).map(|_| started(Executor::builder(), relay.switch_address(), 8)).collect();
    let client = client(relay.switch_address());
    let sleeps = Job::builder("sleep").repeat(4_000, 1_000_000u64.to_be_bytes()).build();
    let mut died = None;
    run_all(&client, sleeps, || {
        switch.take().unwrap().stop();
        switch = Some(Switch::builder().listen(address).start().unwrap());
        executors.truncate(2);
        died = Some(Instant::now());
    });
    println!("a new switch and half of the executors: the second half took {:?}", died.unwrap().elapsed());
}

#[test]
fn t11_garbage_to_every_socket_is_counted_and_harms_nobody() {
    let switch = switch();
    let executor = started(Executor::builder(), switch.local_addr(), 4);
    let client = client(switch.local_addr());
    let socket = UdpSocket::bind(common::loopback()).unwrap();
    let valid_header = [0x4D, 0x46, VERSION, 7, 13, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    let garbage = [&b""[..], b"M", b"GET / HTTP/1.1\r\n\r\n", &valid_header, &[0xFF; PACKET_MAX], &[0x4D; 9000]];
    for address in [switch.local_addr(), executor.local_addr(), client.local_addr()] {
        for datagram in garbage {
            socket.send_to(datagram, address).unwrap();
        }
    }
    run_all(&client, Job::builder("noop").repeat(1_000, "").build(), || {});
    let refused = || switch.stats().reasons[1..].iter().sum::<u64>();
    let deadline = Instant::now() + PATIENCE;
    while refused() < garbage.len() as u64 {
        assert!(Instant::now() < deadline, "{:?}", switch.stats());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(executor.counts().protocol.rejected >= 5, "{:?}", executor.counts().protocol);
    assert!(client.counts().protocol.malformed >= 5, "{:?}", client.counts().protocol);
    assert_eq!(switch.socket_counts().receive_oversized, 1);
}
