//! Counts of the switch's thread for other threads. The thread only tries the lock; a reader that needs newer counts requests a copy and
//! waits.

use super::ShellCounts;
use super::hosted::Hosted;
use crate::driver::lock;
use midflight_dataplane::program::{Program, SoftProgram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// After this time the thread hangs or its machine is overloaded.
pub(super) const COPIED_WITHIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Counted<P: Program> {
    last: Mutex<Copied<P>>,
    /// A reader waits for a new copy.
    wanted: AtomicBool,
    has_come: Condvar,
}

#[derive(Debug)]
struct Copied<P: Program> {
    stats: P::Stats,
    counts: ShellCounts,
    /// Number of copies made.
    number: u64,
}

impl<P: SoftProgram> Counted<P> {
    /// For an engine that does not run yet.
    pub(super) fn new(engine: &dyn Hosted<P>) -> Self {
        let mut counts = ShellCounts::new();
        engine.counts(&mut counts);
        let last = Mutex::new(Copied { stats: engine.stats(), counts, number: 0 });
        Self { last, wanted: AtomicBool::new(false), has_come: Condvar::new() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Copies the counts; `None` while a reader holds the lock.
    pub(super) fn copy(&self, engine: &dyn Hosted<P>) -> Option<P::Stats> {
        let mut last = self.last.try_lock().ok()?;
        let stats = engine.stats();
        last.stats = stats;
        engine.counts(&mut last.counts);
        last.number += 1;
        self.wanted.store(false, Ordering::Relaxed);
        drop(last);
        self.has_come.notify_all();
        Some(stats)
    }

    /// Reads a copy made after this call; the last one if none comes in time. `wake` makes the thread check [`is_wanted`](Self::is_wanted).
    pub(super) fn read<T>(&self, wake: impl FnOnce(), take: impl FnOnce(&P::Stats, &ShellCounts) -> T) -> T {
        let seen = lock(&self.last).number;
        self.wanted.store(true, Ordering::Relaxed);
        // Without the lock, so that the thread finds it free.
        wake();
        let waited = self.has_come.wait_timeout_while(lock(&self.last), COPIED_WITHIN, |last| last.number == seen);
        let (last, _in_time) = waited.unwrap_or_else(PoisonError::into_inner);
        take(&last.stats, &last.counts)
    }

    pub(super) fn read_last<T>(&self, take: impl FnOnce(&P::Stats, &ShellCounts) -> T) -> T {
        let last = lock(&self.last);
        take(&last.stats, &last.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_dataplane::{Native, TasksConfig, TasksProgram};
    use std::time::Instant;

    fn engine() -> Native<TasksProgram> {
        Native::new(&TasksConfig::default(), 1, 1).unwrap()
    }

    #[test]
    fn a_reader_gets_a_copy_that_was_made_after_it_asked() {
        let counted = Counted::new(&engine());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !counted.is_wanted() {
                    std::thread::yield_now();
                }
                while counted.copy(&engine()).is_none() {}
            });
            counted.read(|| (), |_, _| ());
        });
        assert_eq!((counted.last.lock().unwrap().number, counted.is_wanted()), (1, false));
    }

    #[test]
    fn a_thread_that_copies_nothing_is_waited_for_with_a_bound() {
        let counted = Counted::new(&engine());
        let asked = Instant::now();
        counted.read(|| (), |_, _| ());
        assert!(asked.elapsed() >= COPIED_WITHIN);
        assert_eq!(counted.last.lock().unwrap().number, 0);
        assert!(counted.is_wanted(), "the next tick copies");
    }
}
