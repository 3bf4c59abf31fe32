//! Waiting for SIGINT and SIGTERM; the default action for SIGPIPE.

use crate::usage;
use anyhow::{Context, Result};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// From now on SIGINT and SIGTERM no longer end the process; [`wait`](Self::wait) returns them.
#[derive(Debug)]
pub struct Shutdown(Signals);

impl Shutdown {
    /// Registers both signals.
    pub fn new() -> Result<Self> {
        Signals::new([SIGINT, SIGTERM]).map(Self).context("cannot handle signals")
    }

    /// Waits for the next signal, or for [`ender`](Self::ender), and returns its name.
    pub fn wait(&mut self) -> &'static str {
        match self.0.forever().next() {
            Some(SIGINT) => "SIGINT",
            Some(_) => "SIGTERM",
            None => "its own end",
        }
    }

    /// Until the result is dropped, the first signal ends the process at once, with success: for a long start that leaves nothing half
    /// done.
    pub fn at_once(&self) -> Result<AtOnce> {
        let register = |signal| flag::register_conditional_shutdown(signal, 0, Arc::new(AtomicBool::new(true)));
        let signals = [SIGINT, SIGTERM].map(register).into_iter().collect::<std::io::Result<_>>();
        signals.map(AtOnce).context("cannot handle signals")
    }

    /// A flag that the first signal sets, in addition to [`wait`](Self::wait): for a long start that polls it.
    pub fn flag(&self) -> Result<Arc<AtomicBool>> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&flag)).context("cannot handle signals")?;
        }
        Ok(flag)
    }

    /// A function that ends the wait, from any thread.
    pub fn ender(&self) -> impl FnOnce() + Send + use<> {
        let handle = self.0.handle();
        move || handle.close()
    }

    /// Spawns a thread that calls `act` with each step of the shutdown: 1, start nothing new; 2, stop what runs; 3, wait for nothing. Each
    /// signal is a step; a second SIGTERM is step 3. After step 3 the process ends a moment later, whatever its other threads wait for.
    pub fn each_step(mut self, act: impl Fn(u32) + Send + 'static) {
        std::thread::spawn(move || {
            let mut steps = Steps::default();
            for signal in self.0.forever() {
                let step = steps.next(signal);
                act(step);
                if step == Steps::LAST {
                    std::thread::sleep(LAST_WORDS);
                    std::process::exit(usage::INTERRUPTED.into());
                }
            }
        });
    }

    /// Spawns a thread that calls `act` with the number (from 1) of each signal.
    pub fn each(mut self, act: impl Fn(u32) + Send + 'static) {
        std::thread::spawn(move || {
            for (count, _signal) in (1..).zip(self.0.forever()) {
                act(count);
            }
        });
    }
}

/// Time that a process has after the last step for its last output.
const LAST_WORDS: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
struct Steps {
    step: u32,
    terms: u32,
}

impl Steps {
    const LAST: u32 = 3;

    fn next(&mut self, signal: i32) -> u32 {
        self.terms += u32::from(signal == SIGTERM);
        self.step = if self.terms > 1 { Self::LAST } else { (self.step + 1).min(Self::LAST) };
        self.step
    }
}

/// See [`Shutdown::at_once`].
#[derive(Debug)]
pub struct AtOnce(Vec<SigId>);

impl Drop for AtOnce {
    fn drop(&mut self) {
        for id in self.0.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// A flag that SIGINT and SIGTERM set from now on; the second signal ends the process.
pub fn interrupted_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    Shutdown::new()?.each(move |count| {
        set.store(true, Ordering::Relaxed);
        if count > 1 {
            std::process::exit(usage::INTERRUPTED.into());
        }
    });
    Ok(flag)
}

/// Signals that ask a process to end.
pub const TO_END: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// A flag that any of [`TO_END`] sets from now on.
pub fn end_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in TO_END {
        flag::register(signal, Arc::clone(&flag)).context("cannot handle signals")?;
    }
    Ok(flag)
}

/// Writing to a closed pipe ends the process silently from now on, as with other commands. Rust's default is an error, which `println!`
/// turns into a panic.
pub fn end_with_the_reader() {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_signal_or_the_second_sigterm_is_the_last_step() {
        let steps = |signals: &[i32]| {
            let mut steps = Steps::default();
            signals.iter().map(|&signal| steps.next(signal)).collect::<Vec<_>>()
        };
        assert_eq!(steps(&[SIGINT, SIGINT, SIGINT]), [1, 2, 3]);
        assert_eq!(steps(&[SIGTERM, SIGTERM]), [1, 3]);
        assert_eq!(steps(&[SIGINT, SIGTERM, SIGINT]), [1, 2, 3]);
    }
}
