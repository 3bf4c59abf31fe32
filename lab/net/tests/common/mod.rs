//! Creates labs for tests.

#![allow(dead_code, reason = "each test binary uses what it needs")]
#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_net::testing::labs_work;
use midflight_net::{Lab, Options};
use rustix::net::RecvFlags;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn lab(hosts: usize) -> Option<Lab> {
    labs_work().then(|| Lab::up(&Options::temporary(hosts)).unwrap())
}

/// Sends until an answer arrives: the first datagrams may be lost during neighbour discovery.
pub(crate) fn ask(socket: &UdpSocket, to: SocketAddr, question: &[u8]) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 2048];
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let tries = PATIENCE.as_millis() / 200;
    for _ in 0..tries {
        socket.send_to(question, to).unwrap();
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            return Some((buffer[..length].to_vec(), from));
        }
    }
    None
}

/// Within seven standard deviations.
pub(crate) fn about(part: f64, got: u32, sent: u32) -> bool {
    let (got, sent) = (f64::from(got), f64::from(sent));
    (got / sent - part).abs() < 7.0 * (part * (1.0 - part) / sent).sqrt()
}

/// Limits the datagrams in flight, so that no buffer overflows.
pub(crate) fn received_of(count: u32, sender: &UdpSocket, receiver: &UdpSocket, to: SocketAddr) -> u32 {
    // Datagrams sent before neighbour discovery ends may be dropped, so send until one arrives.
    let deadline = Instant::now() + PATIENCE;
    while arrived(receiver, 1) == 0 {
        assert!(Instant::now() < deadline, "nothing comes to {to}");
        sender.send_to(b"?", to).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut received = 0;
    for number in 0..count {
        sender.send_to(&number.to_be_bytes(), to).unwrap();
        if number % 16 == 15 {
            received += arrived(receiver, 4);
        }
    }
    std::thread::sleep(Duration::from_millis(200)); // longer than any datagram is in flight
    received + arrived(receiver, 4)
}

/// Neither blocks nor changes how the socket sends.
fn arrived(receiver: &UdpSocket, length: usize) -> u32 {
    let mut buffer = [0; 16];
    let waiting = std::iter::from_fn(|| rustix::net::recv(receiver, &mut buffer[..], RecvFlags::DONTWAIT).ok());
    waiting.filter(|(_, got)| *got == length).map(|_| 1).sum()
}
