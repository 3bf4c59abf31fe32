//! Limits the live workers, including those that are ending: one per slot, and one more for each that waits for other tasks.

use crate::driver::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct WorkerPlaces {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug)]
struct Count {
    max: usize,
    taken: usize,
}

/// Place for another worker while one waits for other tasks.
#[derive(Debug)]
pub(super) struct Room(Arc<WorkerPlaces>);

/// A worker's place, freed when its status is collected.
#[derive(Debug)]
pub(super) struct Place(Arc<WorkerPlaces>);

impl WorkerPlaces {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { count: Mutex::new(Count { max, taken: 0 }), changed: Condvar::new() })
    }

    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut count = lock(&self.count);
        (count.taken < count.max).then(|| {
            count.taken += 1;
            Place(Arc::clone(self))
        })
    }

    /// Waits up to `longest` for a worker to end or become idle. Returns at once if a place is free.
    pub(super) fn wait(&self, longest: Duration) {
        let count = lock(&self.count);
        if count.taken >= count.max {
            drop(self.changed.wait_timeout(count, longest).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether an idle worker should end, because one that waited continues.
    pub(super) fn are_too_many(&self) -> bool {
        let count = lock(&self.count);
        count.taken > count.max
    }

    /// Wakes waiting tasks: a worker has become idle.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }
}

impl Place {
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
        let places = WorkerPlaces::new(2);
        let first = places.take().unwrap();
        let second = places.take().unwrap();
        assert!(places.take().is_none());
        drop(first);
        let third = places.take().unwrap();
        assert!(places.take().is_none());
        drop((second, third));
        places.wait(Duration::MAX); // returns at once: there are free places
    }

    #[test]
    fn while_a_worker_waits_there_is_room_for_another() {
        let places = WorkerPlaces::new(1);
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
