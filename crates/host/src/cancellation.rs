//! How a function learns that its task is cancelled.

use crate::driver::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether the client of a task wants it to be stopped. Clones are of the same task, so a function may give them to its threads.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    is_cancelled: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl CancellationToken {
    /// Of functions on the network thread, which could not hear it meanwhile.
    pub(crate) fn never() -> Self {
        static NEVER: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::default);
        NEVER.clone()
    }

    /// Whether the task is cancelled: then the function should soon return an error. What it says is dropped.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Sleeps this long, or until the task is cancelled; whether it is.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> bool {
        let started = Instant::now();
        let mut guard = lock(&self.0.lock);
        while !self.is_cancelled() {
            let left = longest.saturating_sub(started.elapsed());
            if left.is_zero() {
                return false;
            }
            guard = self.0.changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub(crate) fn cancel(&self) {
        let _guard = lock(&self.0.lock); // a thread that has just looked is asleep by now
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_is_woken_and_whoever_comes_later_need_not_wait() {
        let token = CancellationToken::default();
        assert!(!token.wait(Duration::from_millis(1)) && !token.is_cancelled());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| token.clone().wait(Duration::from_secs(60)));
            token.cancel();
            assert!(waits.join().unwrap());
        });
        assert!(token.wait(Duration::ZERO) && !CancellationToken::never().is_cancelled());
    }
}
