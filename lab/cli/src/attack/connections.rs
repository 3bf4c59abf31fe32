//! Idle connections: opened, and then nothing is sent.

use anyhow::Result;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How many are open at each server.
const EACH: usize = 640;
/// A server in the same machine answers at once; one that is full of connections may not.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);
/// The time between two checks which ones were closed.
const PAUSE: Duration = Duration::from_millis(200);

/// Keeps connections to each server open until asked to end; how many were opened.
///
/// # Errors
/// Where this process may not have as many descriptors.
pub(super) fn hold(servers: &[SocketAddr], ended: &AtomicBool) -> Result<u64> {
    let (mut open, mut opened) = (Vec::new(), 0);
    while !ended.load(Relaxed) {
        open.retain(|(_, stream)| is_open(stream));
        for &server in servers {
            let here = open.iter().filter(|(at, _)| *at == server).count();
            for _ in here..EACH {
                if ended.load(Relaxed) {
                    break;
                }
                // A refused connection is tried again in the next round.
                let Ok(stream) = TcpStream::connect_timeout(&server, ANSWER_WITHIN) else { break };
                stream.set_nonblocking(true)?;
                open.push((server, stream));
                opened += 1;
            }
        }
        std::thread::sleep(PAUSE);
    }
    Ok(opened)
}

fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    matches!(stream.peek(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}
