//! Submits jobs on time, even if the system is late (open loop): a late response never delays the next arrival.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use midflight_host::clock;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute, set_current_timer_slack};

/// Typical wake-up latency of the kernel. A wait sleeps this much less, then spins on the clock.
const SPIN_NS: u64 = 30_000;
/// Interval at which a sleeping pacer checks whether it must stop.
const LOOK_NS: u64 = 50_000_000;

/// A precise timer for one thread.
pub struct Pacer<'a> {
    stop: &'a AtomicBool,
}

impl<'a> Pacer<'a> {
    /// For the calling thread; `stop` ends every wait.
    pub fn new(stop: &'a AtomicBool) -> Self {
        // By default the kernel may group this thread's timers within 50 µs. Waits stay correct if this fails.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        Self { stop }
    }

    /// Waits until `due_ns` of the clock. Returns the lateness in nanoseconds, or `None` if it must stop.
    pub fn wait(&self, due_ns: u64) -> Option<u64> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let now_ns = clock::now();
            let left_ns = due_ns.saturating_sub(now_ns);
            if left_ns == 0 {
                return Some(now_ns - due_ns);
            }
            if left_ns > SPIN_NS {
                sleep_until(now_ns + (left_ns - SPIN_NS).min(LOOK_NS));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

fn sleep_until(time_ns: u64) {
    const SECOND_NS: u64 = 1_000_000_000;
    // Both parts fit: the clock counts since boot.
    let time = Timespec { tv_sec: (time_ns / SECOND_NS) as i64, tv_nsec: (time_ns % SECOND_NS) as _ };
    // If this is interrupted or fails, the caller reads the clock again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_ends_early() {
        let stop = AtomicBool::new(false);
        let pacer = Pacer::new(&stop);
        for wait_ns in [0, 10_000, 500_000] {
            let due_ns = clock::now() + wait_ns;
            assert!(pacer.wait(due_ns).is_some());
            assert!(clock::now() >= due_ns);
        }
    }

    #[test]
    fn a_stopped_pacer_waits_for_nothing() {
        let stop = AtomicBool::new(true);
        assert_eq!(Pacer::new(&stop).wait(u64::MAX), None);
    }
}
