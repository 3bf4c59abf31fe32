//! Pauses a backend now and then by SIGSTOP, as garbage collection, swapping or write-back do.

use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustix::process::{Pid, Signal, kill_process};
use std::ops::RangeInclusive;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Milliseconds between two pauses, at random, so that no timer falls in step with them.
const BETWEEN_MS: RangeInclusive<u64> = 100..=300;

/// Pauses a process repeatedly until dropped; then the process runs.
pub(super) struct Pauses {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pauses {
    pub(super) fn start(pid: i32, pause: Duration, seed: u64) -> Result<Self> {
        let pid = Pid::from_raw(pid).context("no process has the id 0")?;
        let (stop, stopped) = channel::<()>();
        let mut gaps = gaps(seed);
        let pauses = move || {
            let is_over = |time| stopped.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
            while gaps.next().is_some_and(|gap| !is_over(gap)) {
                // If the process has exited, the measurement reports it.
                let _ = kill_process(pid, Signal::STOP);
                let is_over = is_over(pause);
                let _ = kill_process(pid, Signal::CONT);
                if is_over {
                    return;
                }
            }
        };
        let is_wanted = !pause.is_zero();
        let thread = is_wanted.then(|| std::thread::Builder::new().name("pauses".into()).spawn(pauses)).transpose();
        Ok(Self { stop: Some(stop), thread: thread.context("cannot start a thread")? })
    }
}

/// Times between the pauses of a seed.
pub(super) fn gaps(seed: u64) -> impl Iterator<Item = Duration> {
    let mut random = Pcg64::seed_from_u64(seed);
    std::iter::repeat_with(move || Duration::from_millis(random.random_range(BETWEEN_MS)))
}

impl Drop for Pauses {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
