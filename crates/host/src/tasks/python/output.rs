//! Copies the workers' output to this process's stderr, limited in rate and burst.

use super::counts::Counters;
use crate::process::children::{Listener, Outputs};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BURST_BYTES: u64 = 1 << 20;
const BYTES_PER_SECOND: u64 = 256 << 10;
/// Last output of a dead worker, for its client.
const TAIL_BYTES: usize = 2 << 10;

trait Sink: Send + 'static {
    fn print(&mut self, bytes: &[u8]);
    fn dropped(&mut self, bytes: u64);
}

/// This process's stderr, and the counter of dropped bytes.
struct Stderr(Arc<Counters>);

impl Sink for Stderr {
    fn print(&mut self, bytes: &[u8]) {
        let _ = std::io::stderr().lock().write_all(bytes); // a failure cannot be reported anywhere
    }

    fn dropped(&mut self, bytes: u64) {
        self.0.output_dropped.fetch_add(bytes, Ordering::Relaxed);
        tracing::warn!(
            "{bytes} bytes that a Python worker wrote are dropped: it may write {BYTES_PER_SECOND} a second"
        );
    }
}

pub(super) fn copy(pipe: OwnedFd, counters: &Arc<Counters>) -> io::Result<Outputs> {
    copy_to(Stderr(Arc::clone(counters)), pipe)
}

fn copy_to(sink: impl Sink, pipe: OwnedFd) -> io::Result<Outputs> {
    Outputs::listen("mf-python-out", pipe, TAIL_BYTES, Copier { allowance: Allowance::new(), sink })
}

struct Copier<S> {
    allowance: Allowance,
    sink: S,
}

impl<S: Sink> Listener for Copier<S> {
    fn heard(&mut self, bytes: &[u8]) {
        if self.allowance.takes(bytes.len() as u64, Instant::now()) {
            self.silent();
            self.sink.print(bytes);
        }
    }

    fn awaits_silence(&self) -> bool {
        self.allowance.dropped > 0
    }

    /// Reports dropped output once the worker is silent.
    fn silent(&mut self) {
        let dropped = std::mem::take(&mut self.allowance.dropped);
        if dropped > 0 {
            self.sink.dropped(dropped);
        }
    }
}

/// A token bucket.
struct Allowance {
    left: u64,
    at: Instant,
    /// Dropped bytes not yet reported.
    dropped: u64,
}

impl Allowance {
    fn new() -> Self {
        Self { left: BURST_BYTES, at: Instant::now(), dropped: 0 }
    }

    fn takes(&mut self, bytes: u64, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at);
        if since > Duration::from_millis(10) {
            let more = (since.as_secs_f64() * BYTES_PER_SECOND as f64) as u64;
            self.left = self.left.saturating_add(more).min(BURST_BYTES);
            self.at = now;
        }
        if self.left < bytes {
            self.dropped += bytes;
            return false;
        }
        self.left -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const PATIENCE: Duration = Duration::from_secs(60);

    const CHUNK_BYTES: u64 = 16 << 10;

    struct DropReports(std::sync::mpsc::Sender<u64>);

    impl Sink for DropReports {
        fn print(&mut self, _: &[u8]) {}

        fn dropped(&mut self, bytes: u64) {
            let _ = self.0.send(bytes); // the test may have ended
        }
    }

    #[test]
    fn too_much_is_dropped_and_counted() {
        let mut allowance = Allowance::new();
        let now = allowance.at;
        assert!(allowance.takes(BURST_BYTES, now));
        assert!(!allowance.takes(1_000, now));
        assert!(!allowance.takes(500, now));
        let later = now + Duration::from_secs(1);
        assert!(allowance.takes(BYTES_PER_SECOND, later));
        assert!(!allowance.takes(1, later));
        assert_eq!(allowance.dropped, 1_501);
    }

    #[test]
    fn what_is_dropped_last_is_said_also_where_nothing_follows() {
        for ends in [false, true] {
            let (reader, writer) = std::io::pipe().unwrap();
            let (told, dropped) = channel();
            let outputs = copy_to(DropReports(told), reader.into()).unwrap();
            for _ in 0..4 * BURST_BYTES / CHUNK_BYTES {
                rustix::io::write(&writer, &[b'x'; CHUNK_BYTES as usize]).unwrap();
            }
            if ends {
                drop((writer, outputs));
            }
            assert!(dropped.recv_timeout(PATIENCE).unwrap() > 0, "ends: {ends}");
        }
    }
}
