//! The table of connections and the rule of shares (T14), without I/O: time is an argument.

use midflight_wire::Host;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A source must hold fewer than this many times the number of free places to take another one.
const SHARE: usize = 8;

/// Whether a source that holds `holds` places may take another one while `free` are free (T14).
#[must_use]
pub const fn may_take(holds: usize, free: usize) -> bool {
    holds < SHARE * free
}

/// The open connections. Each keeps a `T` while it has its place.
#[derive(Debug)]
pub(super) struct Table<T> {
    max: usize,
    /// If set, a source that holds its share may evict one of its own connections: an idle one, or one silent for this long.
    give_way_after: Option<Duration>,
    open: HashMap<u64, Entry<T>>,
    held: HashMap<Host, usize>,
    next: u64,
}

#[derive(Debug)]
struct Entry<T> {
    source: Host,
    progress: Instant,
    state: State,
    kept: T,
}

/// Order of eviction, the least first, if silent connections may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Silent,
    /// Served and idle: closing it costs its owner only a new connection.
    Idle,
    /// Progress since it was opened; being served.
    Served,
}

#[derive(Debug)]
pub(super) struct Admitted<T> {
    pub(super) id: u64,
    pub(super) made_room: Option<T>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShareHeld;

impl<T> Table<T> {
    pub(super) fn new(max: usize, give_way_after: Option<Duration>) -> Self {
        Self { max, give_way_after, open: HashMap::new(), held: HashMap::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes a place for a connection from `source`. Applies the rule to a full table as if the idlest connection were gone, and evicts it
    /// if the rule allows the place; otherwise evicts one of the source's own, where that is configured.
    pub(super) fn admit(&mut self, source: Host, now: Instant, kept: T) -> Result<Admitted<T>, ShareHeld> {
        let mut free = self.max - self.open.len();
        let mut holds = self.held.get(&source).copied().unwrap_or(0);
        let mut gives_way = if free == 0 { self.idlest() } else { None };
        if let Some((_, owner)) = gives_way {
            free = 1;
            holds -= usize::from(owner == source);
        }
        if !may_take(holds, free) {
            gives_way = Some((self.gives_way(source, now).ok_or(ShareHeld)?, source));
        }
        let made_room = gives_way.and_then(|(id, _)| self.leave(id));
        let id = self.next;
        self.next += 1;
        self.open.insert(id, Entry { source, progress: now, state: State::Silent, kept });
        *self.held.entry(source).or_default() += 1;
        Ok(Admitted { id, made_room })
    }

    pub(super) fn progress(&mut self, id: u64, now: Instant) {
        if let Some(entry) = self.open.get_mut(&id) {
            entry.progress = now;
            entry.state = State::Served;
        }
    }

    pub(super) fn rest(&mut self, id: u64) {
        if let Some(entry) = self.open.get_mut(&id) {
            entry.state = entry.state.min(State::Idle);
        }
    }

    /// Frees the connection's place; `None` if it has none.
    pub(super) fn leave(&mut self, id: u64) -> Option<T> {
        let Entry { source, kept, .. } = self.open.remove(&id)?;
        if let Some(held) = self.held.get_mut(&source) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&source);
            }
        }
        Some(kept)
    }

    /// A linear search is fast enough: a full table is rare and has hundreds of entries.
    fn idlest(&self) -> Option<(u64, Host)> {
        let idlest = self.open.iter().min_by_key(|&(&id, entry)| self.order(id, entry));
        idlest.map(|(&id, entry)| (id, entry.source))
    }

    /// The connection of `source` that another one from it may evict.
    fn gives_way(&self, source: Host, now: Instant) -> Option<u64> {
        let after = self.give_way_after?;
        let gives_way = |entry: &Entry<T>| match entry.state {
            State::Silent => now.duration_since(entry.progress) >= after,
            State::Idle => true,
            State::Served => false,
        };
        let candidates = self.open.iter().filter(|(_, entry)| entry.source == source && gives_way(entry));
        candidates.min_by_key(|&(&id, entry)| self.order(id, entry)).map(|(&id, _)| id)
    }

    /// Key of the order of eviction, the least first.
    fn order(&self, id: u64, entry: &Entry<T>) -> (Option<State>, Instant, u64) {
        (self.give_way_after.map(|_| entry.state), entry.progress, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Duration = Duration::from_millis(100);

    fn source(last: u8) -> Host {
        Host::of([10, 0, 0, last].into())
    }

    fn fill(table: &mut Table<()>, source: Host, wanted: usize) -> usize {
        let now = Instant::now();
        (0..wanted).take_while(|_| table.admit(source, now, ()).is_ok()).count()
    }

    #[test]
    fn t14_alone_a_source_gets_eight_ninths_and_a_second_one_always_finds_room() {
        for max in 9..600 {
            let mut table = Table::new(max, None);
            assert_eq!(fill(&mut table, source(1), max), (8 * max).div_ceil(9), "of {max}");
            assert_eq!(fill(&mut table, source(1), 1), 0, "of {max}");
            let admitted = table.admit(source(2), Instant::now(), ()).unwrap();
            assert!(admitted.made_room.is_none(), "of {max}");
        }
    }

    #[test]
    fn t14_tables_of_up_to_8_entries_know_no_shares() {
        for max in 1..=8 {
            let mut table = Table::new(max, None);
            assert_eq!(fill(&mut table, source(1), 100), 100, "of {max}");
            assert_eq!((table.len(), fill(&mut table, source(2), 1)), (max, 1), "of {max}");
        }
        assert_eq!(fill(&mut Table::new(9, None), source(1), 100), 8);
    }

    #[test]
    fn t14_a_place_given_back_may_be_taken_again() {
        let mut table = Table::new(9, None);
        let first = table.admit(source(1), Instant::now(), ()).unwrap();
        assert_eq!(fill(&mut table, source(1), 9), 7);
        assert!(table.leave(first.id).is_some() && table.leave(first.id).is_none());
        assert_eq!(fill(&mut table, source(1), 9), 1);
    }

    #[test]
    fn t14_in_a_full_table_the_idlest_makes_room_for_who_holds_few() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut table = Table::new(3, None);
        let ids: Vec<u64> = (0..3).map(|n| table.admit(source(n), at(0), n).unwrap().id).collect();
        table.progress(ids[0], at(2));
        table.progress(ids[1], at(1));
        table.progress(ids[2], at(3));
        let third = |table: &mut Table<u8>, by: u8| table.admit(source(by), at(4), by).unwrap().made_room;
        assert_eq!(third(&mut table, 7), Some(1));
        assert_eq!(third(&mut table, 8), Some(0));
        assert_eq!(third(&mut table, 9), Some(2));
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn t14_a_full_table_has_no_room_for_who_holds_eight() {
        let mut table = Table::new(20, None);
        for n in 0..12 {
            table.admit(source(n), Instant::now(), ()).unwrap();
        }
        assert_eq!(fill(&mut table, source(99), 8), 8);
        assert_eq!(fill(&mut table, source(99), 1), 0);
        assert_eq!((fill(&mut table, source(50), 9), table.len()), (8, 20));
    }

    #[test]
    fn t14_who_has_been_silent_makes_room_for_its_own_source_only() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut table = Table::new(9, Some(SILENT));
        let ids: Vec<u64> = (0..8).map(|n| table.admit(source(1), at(n), n).unwrap().id).collect();
        assert_eq!(table.admit(source(1), at(99), 8).unwrap_err(), ShareHeld);
        table.progress(ids[0], at(50));
        let made_room =
            |table: &mut Table<u64>, by: u8, now| table.admit(source(by), at(now), 9).map(|it| it.made_room);
        assert_eq!(made_room(&mut table, 1, 101), Ok(Some(1)), "the first was heard");
        assert_eq!(made_room(&mut table, 1, 101), Err(ShareHeld), "the third is 99 ms old");
        assert_eq!(made_room(&mut table, 1, 1_000), Ok(Some(2)));
        assert_eq!(made_room(&mut table, 2, 1_000), Ok(None), "there is a free place for others");
        assert_eq!(table.len(), 9);
    }

    #[test]
    fn t14_who_must_not_be_silent_at_all_makes_room_at_once() {
        let now = Instant::now();
        let mut table = Table::new(9, Some(Duration::ZERO));
        let ids: Vec<u64> = (0..8).map(|n| table.admit(source(1), now, n).unwrap().id).collect();
        table.progress(ids[0], now);
        assert_eq!(table.admit(source(1), now, 8).unwrap().made_room, Some(1));
        ids.iter().for_each(|id| table.progress(*id, now));
        let last = table.admit(source(1), now, 9).unwrap();
        assert_eq!(last.made_room, Some(8), "the one that was admitted last, and has not been heard");
        table.progress(last.id, now);
        assert_eq!(table.admit(source(1), now, 10).unwrap_err(), ShareHeld, "all were heard");
    }

    /// Otherwise a peer that was served once could keep an idle connection forever.
    #[test]
    fn t14_who_rests_makes_room_after_the_silent_and_before_the_served() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut table = Table::new(9, Some(Duration::ZERO));
        let ids: Vec<u64> = (0..8).map(|n| table.admit(source(1), at(n), n).unwrap().id).collect();
        ids[1..].iter().for_each(|id| table.progress(*id, at(10)));
        ids[..3].iter().for_each(|id| table.rest(*id));
        let made_room = |table: &mut Table<u64>| {
            let admitted = table.admit(source(1), at(20), 9)?;
            table.progress(admitted.id, at(20));
            Ok(admitted.made_room)
        };
        assert_eq!(made_room(&mut table), Ok(Some(0)), "it was silent: it has nothing to rest from");
        assert_eq!(made_room(&mut table), Ok(Some(1)));
        table.progress(ids[2], at(20));
        assert_eq!(made_room(&mut table), Err(ShareHeld), "the last of those that rested asks again");
        table.rest(ids[7]);
        assert_eq!(table.admit(source(2), at(30), 9).unwrap().made_room, None);
        assert_eq!(table.admit(source(3), at(30), 9).unwrap().made_room, Some(9), "full: the silent one");
        assert_eq!(table.admit(source(2), at(30), 9).unwrap().made_room, Some(9), "full: the silent one again");
    }

    /// In a full table the idlest connection is evicted if the share allows it, else the source's own.
    #[test]
    fn t14_in_a_full_table_one_connection_gives_way() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let mut table = Table::new(18, Some(SILENT));
        for n in 0..16 {
            table.admit(source(1), start, n).unwrap();
        }
        for n in 16..18 {
            let id = table.admit(source(2), start, n).unwrap().id;
            table.progress(id, later);
        }
        assert_eq!(table.admit(source(1), later, 18).unwrap().made_room, Some(0));
        assert_eq!(table.len(), 18);
    }

    /// A transfer over a slow link can pause for longer than other hosts need to open a connection.
    #[test]
    fn t14_in_a_full_table_who_was_heard_does_not_make_room_for_the_silent() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let admit = |table: &mut Table<u8>, by: u8| table.admit(source(by), later, by).unwrap();
        for after in [Duration::ZERO, SILENT] {
            let mut table = Table::new(3, Some(after));
            let heard = table.admit(source(0), start, 0).unwrap().id;
            table.progress(heard, start);
            let silent = [1, 2].map(|by| admit(&mut table, by).id);
            assert_eq!(admit(&mut table, 3).made_room, Some(1));
            table.progress(silent[1], later);
            let last = admit(&mut table, 4);
            assert_eq!(last.made_room, Some(3));
            table.progress(last.id, later);
            assert_eq!(admit(&mut table, 5).made_room, Some(0), "all were heard: the idlest");
        }
    }

    #[test]
    fn a_table_without_places_refuses_everybody() {
        assert_eq!(Table::new(0, None).admit(source(1), Instant::now(), ()).unwrap_err(), ShareHeld);
    }
}
