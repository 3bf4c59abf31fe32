//! Limits the number of live workers, including those that are about to end: one per slot, and one more for each that waits for
//! other tasks.

use crate::driver::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Shared by all workers of an executor.
#[derive(Debug)]
pub(super) struct Places {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug)]
struct Count {
    max: usize,
    taken: usize,
}

/// Room for a further worker, while another one waits.
#[derive(Debug)]
pub(super) struct Room(Arc<Places>);

/// A worker's place; dropped when its status is collected.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { count: Mutex::new(Count { max, taken: 0 }), changed: Condvar::new() })
    }

    /// A place, if one is free.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut count = lock(&self.count);
        (count.taken < count.max).then(|| {
            count.taken += 1;
            Place(Arc::clone(self))
        })
    }

    /// Sleeps until a worker has ended or is idle, but not for longer than this. It may have been so before.
    pub(super) fn wait(&self, longest: Duration) {
        let count = lock(&self.count);
        if count.taken >= count.max {
            drop(self.changed.wait_timeout(count, longest).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether a worker that is idle now should end: one that waited has gone on.
    pub(super) fn are_too_many(&self) -> bool {
        let count = lock(&self.count);
        count.taken > count.max
    }

    /// A worker is idle: who waits for a place may want it.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }
}

impl Place {
    /// Its worker waits for other tasks, which may need a worker.
    pub(super) fn make_room(&self) -> Room {
        lock(&self.0.count).max += 1;
        self.0.changed.notify_all();
        Room(Arc::clone(&self.0))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.0.count).taken -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        lock(&self.0.count).max -= 1;
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

    #[test]
    fn while_a_worker_waits_there_is_room_for_another() {
        let places = Places::new(1);
        let waits = places.take().unwrap();
        let room = waits.make_room();
        let other = places.take().unwrap();
        assert!(places.take().is_none() && !places.are_too_many());
        drop(room);
        assert!(places.are_too_many());
        drop(other);
        assert!(places.take().is_none() && !places.are_too_many());
    }
}
