//! Cancellation of tasks.

use crate::driver::lock;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Whether the client wants a task to stop. Clones refer to the same task, for a function's threads and futures.
///
/// ```
/// # use midflight_host::CancellationToken;
/// # use std::time::Duration;
/// /// Sleeps between its steps, but not when its task is cancelled.
/// fn steps(token: &CancellationToken) -> Result<(), &'static str> {
///     for _ in 0..3 {
///         if token.wait(Duration::from_millis(1)) {
///             return Err("cancelled");
///         }
///     }
///     Ok(())
/// }
/// assert_eq!(steps(&CancellationToken::default()), Ok(()));
///
/// /// The same for a future, under any runtime: whichever is ready first.
/// async fn until_cancelled(token: CancellationToken) {
///     token.cancelled().await;
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<TokenState>);

#[derive(Debug, Default)]
struct TokenState {
    is_cancelled: AtomicBool,
    wakers: Mutex<Wakers>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wakers {
    next: u64,
    waiting: HashMap<u64, Waker>,
}

impl CancellationToken {
    /// For the network thread, which could not receive a cancellation.
    pub(crate) fn never() -> Self {
        static NEVER: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::default);
        NEVER.clone()
    }

    /// Whether the task is cancelled. The function should then soon return an error, whose text is dropped.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Sleeps for `longest`, or until the task is cancelled; returns whether it is.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> bool {
        let started = Instant::now();
        let mut guard = lock(&self.0.wakers);
        while !self.is_cancelled() {
            let left = longest.saturating_sub(started.elapsed());
            if left.is_zero() {
                return false;
            }
            guard = self.0.changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// A future that completes when the task is cancelled.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), place: None }
    }

    pub(crate) fn cancel(&self) {
        let mut wakers = lock(&self.0.wakers); // with the lock, so that no thread is between checking and sleeping
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.changed.notify_all();
        let waiting = std::mem::take(&mut wakers.waiting);
        drop(wakers);
        waiting.into_values().for_each(Waker::wake);
    }
}

/// See [`CancellationToken::cancelled`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cancelled {
    token: CancellationToken,
    place: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let token = self.token.clone();
        let mut wakers = lock(&token.0.wakers);
        if token.is_cancelled() {
            return Poll::Ready(());
        }
        let place = *self.place.get_or_insert_with(|| {
            wakers.next += 1;
            wakers.next
        });
        wakers.waiting.insert(place, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            lock(&self.token.0.wakers).waiting.remove(&place);
        }
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

    #[test]
    fn futures_that_wait_are_woken_and_those_that_are_dropped_leave_nothing() {
        let token = CancellationToken::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut waits = Box::pin(token.cancelled());
        assert!(waits.as_mut().poll(&mut context).is_pending() && waits.as_mut().poll(&mut context).is_pending());
        drop(token.cancelled());
        assert_eq!(lock(&token.0.wakers).waiting.len(), 1);
        drop(waits);
        assert_eq!(lock(&token.0.wakers).waiting.len(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| runtime.block_on(token.cancelled()));
            std::thread::sleep(Duration::from_millis(5));
            token.cancel();
            waits.join().unwrap();
        });
        runtime.block_on(token.cancelled());
    }
}
