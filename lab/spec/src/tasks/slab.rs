//! A table of records. A new record gets the index freed last, or the next unused one.

use std::ops::{Index, IndexMut};

#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    records: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.records.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.records.iter_mut().flatten()
    }

    pub(super) fn position(&self, mut matches: impl FnMut(&T) -> bool) -> Option<usize> {
        self.records.iter().position(|index| index.as_ref().is_some_and(&mut matches))
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.records.get(index)?.as_ref()
    }

    /// Every index ever used is below this number.
    pub(super) fn high_water(&self) -> usize {
        self.records.len()
    }

    pub(super) fn insert(&mut self, record: T) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            self.records.len() - 1
        });
        self.records[index] = Some(record);
        index
    }

    pub(super) fn remove(&mut self, index: usize) {
        if self.records[index].take().is_some() {
            self.free.push(index);
        }
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.records[index].as_ref().expect("the index is in use")
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.records[index].as_mut().expect("the index is in use")
    }
}
