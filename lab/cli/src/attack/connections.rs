//! Idle connections: opened, and then silent.

use anyhow::Result;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Connections per server.
const EACH: usize = 640;
/// A server on the same machine answers at once, unless its connections are exhausted.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(200);

/// Returns how many were opened.
///
/// # Errors
/// If the process's limit of descriptors is too low.
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
                // Retried in the next round.
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
