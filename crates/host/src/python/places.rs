//! So many workers may live at once, also those that are about to end.

use crate::driver::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Shared by all workers of an executor.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    taken: Mutex<usize>,
    changed: Condvar,
}

/// A worker's place; dropped when its status is collected.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::new(0), changed: Condvar::new() })
    }

    /// A place, if one is free.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut taken = lock(&self.taken);
        (*taken < self.max).then(|| {
            *taken += 1;
            Place(Arc::clone(self))
        })
    }

    /// Sleeps until a worker has ended or is idle, but not for longer than this. It may have been so before.
    pub(super) fn wait(&self, longest: Duration) {
        let taken = lock(&self.taken);
        if *taken >= self.max {
            drop(self.changed.wait_timeout(taken, longest).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A worker is idle: who waits for a place may want it.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *lock(&self.0.taken) -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let places = Places::new(2);
        let first = places.take().unwrap();
        let second = places.take().unwrap();
        assert!(places.take().is_none());
        drop(first);
        let third = places.take().unwrap();
        assert!(places.take().is_none());
        drop((second, third));
        places.wait(Duration::MAX); // returns at once: there are places
    }
}
