//! Labs for tests, where the machine lets us.

#![allow(dead_code, reason = "each test binary uses what it needs")]
#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_lab::{Lab, Options};
use std::fmt::Display;
use std::io::Write;
use std::net::UdpSocket;
use std::time::Duration;

/// No test waits longer for a datagram.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Whether there can be labs here; if not, says so.
pub(crate) fn available() -> bool {
    midflight_lab::available().map_err(skip).is_ok()
}

/// Says that the current test does nothing, past the capture of what tests print.
pub(crate) fn skip(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::io::stderr().write_all(format!("SKIPPED: {test}: {why}\n").as_bytes()).unwrap();
}

/// A lab that goes with the test.
pub(crate) fn lab(hosts: usize) -> Option<Lab> {
    available().then(|| Lab::up(&Options::temporary(hosts)).unwrap())
}

/// What there is of a lab in the directory of `ip netns` and in ours.
pub(crate) fn traces_of(name: &str) -> Vec<String> {
    let files = ["/var/run/netns", "/run/midflight/labs"].into_iter().filter_map(|path| std::fs::read_dir(path).ok());
    let names = files.flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|file| file == name || file.starts_with(&format!("mf-{name}-"))).collect()
}

/// Sends until an answer comes: the first datagrams may wait for a neighbour's address in vain.
pub(crate) fn ask(
    socket: &UdpSocket,
    to: std::net::SocketAddr,
    question: &[u8],
) -> Option<(Vec<u8>, std::net::SocketAddr)> {
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
