//! Operations with a known outcome that are not in order yet, by start, in two lists. Removal can be undone in place
//! (Knuth, "Dancing links").

use super::timeline::Timeline;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Looks,
    Changes,
}

pub(super) struct Pending {
    next: Vec<usize>,
    before: Vec<usize>,
    has: Vec<bool>,
}

impl Pending {
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let count = timeline.records.len();
        let links: Vec<usize> = (0..count + 2).collect();
        let mut pending = Self { next: links.clone(), before: links, has: vec![false; count] };
        let mut known = timeline.ends.clone();
        known.sort_unstable();
        for operation in known {
            let record = timeline.records[operation];
            let looks = record.call.is_read() || record.result.as_ref().is_some_and(|result| result.leaves_all());
            let head = pending.head(if looks { List::Looks } else { List::Changes });
            (pending.next[operation], pending.before[operation]) = (head, pending.before[head]);
            pending.put_back(operation);
        }
        pending
    }

    /// Sentinel before the first and after the last operation.
    fn head(&self, list: List) -> usize {
        self.has.len() + list as usize
    }

    pub(super) fn first(&self, list: List) -> Option<usize> {
        self.after(self.head(list))
    }

    pub(super) fn after(&self, operation: usize) -> Option<usize> {
        Some(self.next[operation]).filter(|&next| next < self.has.len())
    }

    pub(super) fn has(&self, operation: usize) -> bool {
        self.has[operation]
    }

    pub(super) fn take_out(&mut self, operation: usize) {
        let (before, next) = (self.before[operation], self.next[operation]);
        (self.next[before], self.before[next]) = (next, before);
        self.has[operation] = false;
    }

    /// Must undo removals in reverse order.
    pub(super) fn put_back(&mut self, operation: usize) {
        let (before, next) = (self.before[operation], self.next[operation]);
        (self.next[before], self.before[next]) = (operation, operation);
        self.has[operation] = true;
    }
}
