//! Where records are kept: a place that was given back is taken first, the last one first; else the next that was never used.

use std::ops::{Index, IndexMut};

#[derive(Clone, Debug)]
pub(super) struct Places<T> {
    places: Vec<Option<T>>,
    given_back: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { places: Vec::new(), given_back: Vec::new() }
    }
}

impl<T> Places<T> {
    /// What is kept, in the order of places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// The place of the one that is so.
    pub(super) fn position(&self, mut is_it: impl FnMut(&T) -> bool) -> Option<usize> {
        self.places.iter().position(|place| place.as_ref().is_some_and(&mut is_it))
    }

    /// What is at a place, if anything.
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.places.get(place)?.as_ref()
    }

    /// Places that were ever taken: the first so many.
    pub(super) fn ever_taken(&self) -> usize {
        self.places.len()
    }

    pub(super) fn take(&mut self, record: T) -> usize {
        let place = self.given_back.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(record);
        place
    }

    pub(super) fn give_back(&mut self, place: usize) {
        if self.places[place].take().is_some() {
            self.given_back.push(place);
        }
    }
}

impl<T> Index<usize> for Places<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        self.places[place].as_ref().expect("a place that is taken")
    }
}

impl<T> IndexMut<usize> for Places<T> {
    fn index_mut(&mut self, place: usize) -> &mut T {
        self.places[place].as_mut().expect("a place that is taken")
    }
}
