//! Garbage on every socket.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

mod common;

use common::{PATIENCE, client, start_executor, switch};
use midflight_host::{Executor, Job};
use midflight_wire::{PACKET_MAX, VERSION};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

#[test]
fn t11_garbage_to_every_socket_is_counted_and_harms_nobody() {
    let switch = switch();
    let executor = start_executor(Executor::builder(), switch.local_addr(), 4);
    let client = client(switch.local_addr());
    let socket = UdpSocket::bind(common::loopback()).unwrap();
    let valid_header = [0x4D, 0x46, VERSION, 7, 13, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    let garbage = [&b""[..], b"M", b"GET / HTTP/1.1\r\n\r\n", &valid_header, &[0xFF; PACKET_MAX], &[0x4D; 9000]];
    for address in [switch.local_addr(), executor.local_addr(), client.local_addr()] {
        for datagram in garbage {
            socket.send_to(datagram, address).unwrap();
        }
    }
    let job = client.submit(Job::builder("noop").repeat(1_000, "").build()).unwrap();
    assert!(job.wait().iter().all(Result::is_ok));
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
