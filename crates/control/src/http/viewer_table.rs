//! The table of viewers: bounded, and shared between source addresses (T14). Without I/O.
//!
//! A source may have another viewer only while it has fewer than eight times the number of free places: a single source gets 15 of 16. In a
//! full table, a source that would still have fewer evicts the youngest viewer of the source that has most; the older ones have charts of
//! the last minutes. So every source can watch while there are enough places, and each eviction makes the shares more even.

use midflight_connections::may_take;
use midflight_wire::Host;
use std::collections::HashMap;

/// The viewers. Each keeps a `T` while it has its place.
#[derive(Debug)]
pub(super) struct ViewerTable<T> {
    max: usize,
    /// In the order of their arrival.
    viewers: Vec<Viewer<T>>,
    next: u64,
}

#[derive(Debug)]
struct Viewer<T> {
    id: u64,
    source: Host,
    kept: T,
}

#[derive(Debug)]
pub(super) struct Admitted<T> {
    pub(super) id: u64,
    /// The value of the evicted viewer.
    pub(super) gone: Option<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The source holds its share: this number.
    Share(usize),
    /// All places are taken, by sources that have no more than this one would.
    All,
}

impl<T> ViewerTable<T> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, viewers: Vec::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.viewers.len()
    }

    pub(super) fn admit(&mut self, source: Host, kept: T) -> Result<Admitted<T>, Full> {
        let (holds, free) = (self.held_by(source), self.max - self.viewers.len());
        let gone = if free == 0 {
            let most = self.source_with_most().filter(|&(_, most)| most > holds + 1);
            most.and_then(|(owner, _)| self.take_youngest(owner)).ok_or(self.full(holds)).map(Some)?
        } else if may_take(holds, free) {
            None
        } else {
            return Err(Full::Share(holds));
        };
        let id = self.next;
        self.next += 1;
        self.viewers.push(Viewer { id, source, kept });
        Ok(Admitted { id, gone })
    }

    /// Frees the viewer's place, if it still has one.
    pub(super) fn leave(&mut self, id: u64) {
        self.viewers.retain(|viewer| viewer.id != id);
    }

    fn held_by(&self, source: Host) -> usize {
        self.viewers.iter().filter(|viewer| viewer.source == source).count()
    }

    const fn full(&self, holds: usize) -> Full {
        if holds > 1 { Full::Share(holds) } else { Full::All }
    }

    fn source_with_most(&self) -> Option<(Host, usize)> {
        let mut held: HashMap<Host, usize> = HashMap::new();
        for viewer in &self.viewers {
            *held.entry(viewer.source).or_default() += 1;
        }
        // Among equals, the source with the youngest viewer, so that the choice is deterministic.
        let youngest = |source| self.viewers.iter().rposition(|viewer| viewer.source == source);
        held.into_iter().max_by_key(|&(source, held)| (held, youngest(source)))
    }

    fn take_youngest(&mut self, source: Host) -> Option<T> {
        let at = self.viewers.iter().rposition(|viewer| viewer.source == source)?;
        Some(self.viewers.remove(at).kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 16;

    fn source(last: u8) -> Host {
        Host::of([10, 0, 0, last].into())
    }

    fn fill(table: &mut ViewerTable<()>, from: u8, wanted: usize) -> usize {
        (0..wanted).take_while(|_| table.admit(source(from), ()).is_ok()).count()
    }

    #[test]
    fn t14_alone_a_source_gets_15_of_16_and_all_others_get_one() {
        let mut table = ViewerTable::new(MAX);
        assert_eq!(fill(&mut table, 1, 100), 15);
        assert_eq!(table.admit(source(1), ()).unwrap_err(), Full::Share(15));
        assert!((2..=16).all(|other| fill(&mut table, other, 1) == 1));
        assert_eq!((table.len(), table.held_by(source(1))), (MAX, 1));
        assert_eq!(table.admit(source(17), ()).unwrap_err(), Full::All);
        assert_eq!(table.admit(source(1), ()).unwrap_err(), Full::All);
    }

    #[test]
    fn t14_two_sources_that_want_all_get_halves_and_then_nothing_moves() {
        let mut table = ViewerTable::new(MAX);
        assert_eq!((fill(&mut table, 1, 100), fill(&mut table, 2, 100)), (15, 8));
        assert_eq!(table.admit(source(1), ()).unwrap_err(), Full::Share(8));
        assert_eq!(table.admit(source(2), ()).unwrap_err(), Full::Share(8));
    }

    #[test]
    fn t14_the_youngest_of_the_source_with_most_goes() {
        let mut table = ViewerTable::new(MAX);
        for (n, from) in [1, 1, 2, 2, 2, 1].into_iter().chain([3; 9]).chain([5]).enumerate() {
            table.admit(source(from), n).unwrap();
        }
        assert_eq!(table.admit(source(4), 16).unwrap().gone, Some(14));
        assert_eq!(table.admit(source(4), 17).unwrap().gone, Some(13));
    }

    #[test]
    fn a_place_given_back_may_be_taken_again() {
        let mut table = ViewerTable::new(MAX);
        let first = table.admit(source(1), ()).unwrap().id;
        assert_eq!(fill(&mut table, 1, 100), 14);
        table.leave(first);
        table.leave(first);
        assert_eq!((table.len(), fill(&mut table, 1, 100)), (14, 1));
    }
}
