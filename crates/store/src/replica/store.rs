//! The data: keys, values and when they expire.
//!
//! A snapshot must neither stop the store nor double its memory. So a hash divides the keys into shards, which a snapshot shares; a shard
//! is copied at its first write after the snapshot began. The hash is seeded per replica, so that an attacker cannot fill one shard. (The
//! hash of key groups would not do: its braces put many keys together.)

use super::entry::What;
use super::item::{Item, NEVER};
use super::staged::Staged;
use bytes::Bytes;
use midflight_endpoint::mutants::planted;
use midflight_wire::PACKET_MAX;
use midflight_wire::store::{
    Cursor, DATA_MAX, KEY_MAX, PageWriter, Piece, PlaceInValue, Request, Status, VALUE_MAX, piece_room, scan_order,
};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// log2 of the shards. With a million keys a shard has 250; copying it takes about ten microseconds.
const SHARD_BITS: u32 = 12;
const SHARDS_CLEARED_AT_ONCE: usize = 32;
const SORTED_CLEARED_AT_ONCE: usize = 4096;
/// A reply has the cursor too.
const PAGE_BYTES: usize = PACKET_MAX - size_of::<Request>() - size_of::<Cursor>();
/// Bytes that fit the reply to a write.
pub(super) const REPLY_MAX: usize = PACKET_MAX - size_of::<Request>();
const KEY_OVERHEAD: usize = 96;
/// Of a key that expires.
const EXPIRY_OVERHEAD: usize = 64;

/// Sorted, so that the order is the same in each replica and run.
pub(super) type Shard = BTreeSet<Item>;

/// Items, and a number by which they are sorted.
type Sorted = BTreeSet<(u64, Item)>;

#[derive(Clone, Debug, Default)]
struct Discarded {
    shards: Vec<Arc<Shard>>,
    sorted: Vec<Sorted>,
}

/// Keys and values. A clone shares them until either changes.
#[derive(Clone, Debug)]
pub(super) struct Store {
    shards: Vec<Arc<Shard>>,
    seed: u64,
    /// What expires, the next first.
    expiring: Sorted,
    /// In the order of a scan.
    in_order: Sorted,
    pub(super) staged: Staged,
    /// Index of the entry that is being applied.
    revision: u64,
    keys: usize,
    bytes: usize,
    bytes_max: usize,
    /// To free. Freeing a million keys at once would stop the replica for too long.
    discarded: Discarded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) value: Bytes,
}

impl Outcome {
    pub(super) fn plain(status: Status) -> Self {
        Self { status, value: Bytes::new() }
    }

    pub(super) fn done(value: impl Into<Bytes>) -> Self {
        Self { status: Status::Done, value: value.into() }
    }
}

impl Store {
    pub(super) fn new(bytes_max: usize, seed: u64) -> Self {
        Self {
            shards: no_shards(),
            seed,
            expiring: BTreeSet::new(),
            in_order: BTreeSet::new(),
            staged: Staged::new(bytes_max),
            revision: 0,
            keys: 0,
            bytes: 0,
            bytes_max,
            discarded: Discarded::default(),
        }
    }

    fn shard_of(&self, key: &[u8]) -> usize {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(key);
        (hasher.finish() >> (64 - SHARD_BITS)) as usize
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Item> {
        self.shards[self.shard_of(key)].get(key)
    }

    /// A page of a key group, from a cursor on.
    pub(super) fn scan(&self, from: Cursor, kgroup_bits: u8) -> Vec<u8> {
        let mut page = PageWriter::new(PAGE_BYTES);
        let group = u64::from(from.hash()) << u32::from(kgroup_bits) >> 32;
        let next_group = (group + 1) << 32 >> u32::from(kgroup_bits) << 32; // 0 after the last
        let first = (from.order(), Item::new(b"", b"", 0, NEVER));
        let (mut order, mut passed) = (from.order(), 0);
        for (of_key, item) in self.in_order.range(first..) {
            if next_group > 0 && *of_key >= next_group {
                break;
            }
            if *of_key != order {
                (order, passed) = (*of_key, 0);
            }
            let is_behind = order == from.order() && passed < from.skip();
            if !is_behind && !page.add(item.key()) {
                return page.finish(Some(Cursor::new(order, passed)), self.keys as u64);
            }
            passed = passed.saturating_add(1);
        }
        page.finish((next_group > 0).then(|| Cursor::new(next_group, 0)), self.keys as u64)
    }

    /// A piece of an item's value, as the value of a reply: from `offset` on if the item has this revision, else the first one.
    pub(super) fn piece(item: &Item, revision: u64, offset: u32) -> Vec<u8> {
        let value = item.value();
        let told = if planted(154) && revision > 0 { revision } else { item.revision() };
        let offset = if revision == told { value.len().min(offset as usize) } else { 0 };
        let bytes = &value[offset..value.len().min(offset + piece_room(item.key()))];
        let (length, offset) = ((value.len() as u32).into(), (offset as u32).into());
        [Piece { revision: told.into(), length, offset }.as_bytes(), bytes].concat()
    }

    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        self.get(key).map(Item::value)
    }

    /// When keys expire, the first first. Then they exist until a write removes them.
    pub(super) fn expiring(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.expiring.iter().map(|(at, item)| (*at, item.key()))
    }

    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    pub(super) fn flush(&mut self) {
        let shards = std::mem::replace(&mut self.shards, no_shards());
        self.discard(shards);
        let sorted = [&mut self.expiring, &mut self.in_order].map(std::mem::take);
        self.discarded.sorted.extend(sorted);
        self.staged = Staged::new(self.bytes_max);
        (self.keys, self.bytes) = (0, 0);
    }

    /// Leaves shards for [`clear_up`](Self::clear_up) to free.
    pub(super) fn discard(&mut self, shards: Vec<Arc<Shard>>) {
        self.discarded.shards.extend(shards.into_iter().filter(|shard| !shard.is_empty()));
    }

    pub(super) fn replace(&mut self, former: Self) {
        self.discard(former.shards);
        self.discard(former.discarded.shards);
        self.discarded.sorted.extend([former.expiring, former.in_order]);
        self.discarded.sorted.extend(former.discarded.sorted);
    }

    /// Frees some of what is discarded. Returns whether more remains.
    pub(super) fn clear_up(&mut self) -> bool {
        let Discarded { shards, sorted } = &mut self.discarded;
        let rest = shards.len().saturating_sub(SHARDS_CLEARED_AT_ONCE);
        shards.truncate(rest);
        if let Some(last) = sorted.last_mut() {
            (0..SORTED_CLEARED_AT_ONCE).for_each(|_| drop(last.pop_first()));
        }
        sorted.pop_if(|last| last.is_empty());
        rest > 0 || !sorted.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes <= self.bytes_max
    }

    /// `index` is the entry's, `time` the store's.
    pub(super) fn apply(&mut self, index: u64, what: What<'_>, time: u64) -> Outcome {
        self.revision = index;
        match what {
            What::Put { key, value } => plain(self.put(key, value, NEVER)),
            What::Delete { key } => self.delete(key),
            What::Cas { key, expected, value } => match self.get(key) {
                None => Outcome::plain(Status::NotFound),
                Some(item) if item.value() == expected => {
                    let expires = item.expires();
                    plain(self.put(key, value, expires))
                }
                Some(item) => conflict(item),
            },
            What::Incr { key, by } => self.incr(key, by),
            What::Create { key, value } => match self.get(key) {
                None => plain(self.put(key, value, NEVER)),
                Some(item) => conflict(item),
            },
            What::Update { key, update } => self.update(key, &update, time),
            What::Transact { steps, .. } => self.transact(steps, time),
            What::Stage { part, .. } => Outcome::plain(self.staged.stage(&part, time)),
        }
    }

    /// The sum; a missing key counts as 0. Values are decimal, as in Redis.
    pub(super) fn sum(&self, key: &[u8], by: i64) -> Result<i64, Status> {
        let present = match self.value(key) {
            None => Some(0),
            Some(value) => std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok()),
        };
        present.and_then(|number| number.checked_add(by)).ok_or(Status::NotANumber)
    }

    fn incr(&mut self, key: &[u8], by: i64) -> Outcome {
        let expires = self.get(key).map_or(NEVER, Item::expires);
        let sum = match self.sum(key, by) {
            Ok(sum) => sum,
            Err(status) => return Outcome::plain(status),
        };
        match self.put(key, sum.to_string().as_bytes(), expires) {
            Ok(()) => Outcome::done(sum.to_be_bytes().to_vec()),
            Err(status) => Outcome::plain(status),
        }
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8], expires: u64) -> Result<(), Status> {
        let is_in_pieces = key.len() + value.len() > DATA_MAX;
        if key.len() > KEY_MAX || is_in_pieces && (key.len() > PlaceInValue::KEY_MAX || value.len() > VALUE_MAX) {
            return Err(Status::TooLarge);
        }
        let item = Item::new(key, value, self.revision, expires);
        let before = self.get(key).map_or(0, cost);
        let bytes = self.bytes - before + cost(&item);
        if bytes > self.bytes_max && bytes > self.bytes {
            return Err(Status::Full);
        }
        self.insert(item);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome {
        Outcome::plain(if self.remove(key) { Status::Done } else { Status::NotFound })
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        if self.get(key).is_none() {
            return false; // avoids copying the shard
        }
        let shard = self.shard_of(key);
        let former = Arc::make_mut(&mut self.shards[shard]).take(key);
        self.forget(former)
    }

    fn insert(&mut self, item: Item) {
        let shard = self.shard_of(item.key());
        let former = Arc::make_mut(&mut self.shards[shard]).replace(item.clone());
        self.forget(former);
        self.keys += 1;
        self.bytes += cost(&item);
        self.in_order.insert((scan_order(item.key()), item.clone()));
        if item.expires() != NEVER {
            self.expiring.insert((item.expires(), item));
        }
    }

    fn forget(&mut self, item: Option<Item>) -> bool {
        let Some(item) = item else { return false };
        self.keys -= 1;
        self.bytes -= cost(&item);
        self.in_order.remove(&(scan_order(item.key()), item.clone()));
        if item.expires() != NEVER {
            self.expiring.remove(&(item.expires(), item));
        }
        true
    }

    pub(super) fn restore(&mut self, item: Item) {
        self.insert(item);
    }
}

fn plain(put: Result<(), Status>) -> Outcome {
    Outcome::plain(put.err().unwrap_or(Status::Done))
}

fn conflict(item: &Item) -> Outcome {
    if item.value().len() > REPLY_MAX {
        return Outcome::plain(Status::TooLong);
    }
    Outcome { status: Status::Conflict, value: Bytes::copy_from_slice(item.value()) }
}

fn no_shards() -> Vec<Arc<Shard>> {
    vec![Arc::default(); 1 << SHARD_BITS]
}

fn cost(item: &Item) -> usize {
    let expiry = if item.expires() == NEVER { 0 } else { EXPIRY_OVERHEAD };
    item.key().len() + item.value().len() + KEY_OVERHEAD + expiry
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_wire::store::Page;

    fn store() -> Store {
        Store::new(1 << 20, 1)
    }

    fn number(number: i64) -> Outcome {
        Outcome::done(number.to_be_bytes().to_vec())
    }

    fn put(store: &mut Store, key: &str, value: &str) -> Status {
        store.apply(0, What::Put { key: key.as_bytes(), value: value.as_bytes() }, 0).status
    }

    #[test]
    fn commands_say_what_they_found() {
        let mut store = store();
        assert_eq!(store.apply(0, What::Delete { key: b"a" }, 0).status, Status::NotFound);
        assert_eq!(store.apply(0, What::Cas { key: b"a", expected: b"", value: b"1" }, 0).status, Status::NotFound);
        assert_eq!(put(&mut store, "a", "one"), Status::Done);
        let conflict = store.apply(0, What::Cas { key: b"a", expected: b"two", value: b"3" }, 0);
        assert_eq!((conflict.status, &conflict.value[..]), (Status::Conflict, &b"one"[..]));
        assert_eq!(store.apply(0, What::Cas { key: b"a", expected: b"one", value: b"3" }, 0).status, Status::Done);
        assert_eq!(store.apply(0, What::Incr { key: b"a", by: -5 }, 0), number(-2));
        assert_eq!(store.apply(0, What::Incr { key: b"b", by: i64::MAX }, 0), number(i64::MAX));
        assert_eq!(store.apply(0, What::Incr { key: b"b", by: 1 }, 0).status, Status::NotANumber);
        let create = What::Create { key: b"c", value: b"new" };
        assert_eq!(store.apply(0, create, 0).status, Status::Done);
        assert_eq!(store.apply(0, create, 0), Outcome { status: Status::Conflict, value: "new".into() });
        assert_eq!(store.apply(0, What::Delete { key: b"a" }, 0).status, Status::Done);
        assert_eq!((store.value(b"a"), store.keys()), (None, 2));
    }

    #[test]
    fn r7_a_full_store_takes_no_more_but_gives_way() {
        let mut store = Store::new(3 * (KEY_OVERHEAD + 10), 1);
        for key in ["a", "b", "c"] {
            assert_eq!(put(&mut store, key, "12345"), Status::Done);
        }
        assert_eq!(put(&mut store, "d", "12345"), Status::Full);
        assert_eq!(put(&mut store, "c", "1"), Status::Done, "it gets smaller");
        assert_eq!(store.apply(0, What::Delete { key: b"a" }, 0).status, Status::Done);
        assert_eq!(put(&mut store, "d", "12345"), Status::Done);
        let long = "x".repeat(VALUE_MAX + 1);
        assert_eq!(put(&mut store, "d", &long), Status::TooLarge);
        let (long_key, long) = ("d".repeat(PlaceInValue::KEY_MAX + 1), "x".repeat(DATA_MAX - PlaceInValue::KEY_MAX));
        assert_eq!(put(&mut store, &long_key, &long), Status::TooLarge, "no piece of it fits a reply");
        assert_eq!(store.value(b"d"), Some(&b"12345"[..]), "nothing is half done");
    }

    fn scan(store: &Store, kgroup_bits: u8) -> (Vec<String>, usize) {
        let (mut cursor, mut keys, mut pages) = (Cursor::default(), Vec::new(), 0);
        loop {
            let page = Page::parse(&store.scan(cursor, kgroup_bits)).expect("a page");
            assert_eq!(page.all, store.keys() as u64);
            keys.extend(page.keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()));
            pages += 1;
            let Some(next) = page.next else { return (keys, pages) };
            assert!(next > cursor, "{next:?} after {cursor:?}");
            cursor = next;
        }
    }

    #[test]
    fn a_scan_finds_each_key_once_in_the_order_of_groups() {
        let mut store = store();
        let long = |number: usize| format!("{{tag}}{number}{}", "x".repeat(900));
        let mut all: Vec<String> = (0..500).map(|number| format!("key {number}")).collect();
        all.extend((0..4).map(long));
        for key in &all {
            put(&mut store, key, "");
            put(&mut store, key, "again");
        }
        put(&mut store, "gone", "");
        store.apply(0, What::Delete { key: b"gone" }, 0);
        all.sort_by_key(|key| scan_order(key.as_bytes()));
        for (bits, groups) in [(0, 1), (1, 2), (12, 4096)] {
            let (keys, pages) = scan(&store, bits);
            assert_eq!(keys, all);
            assert!(pages > groups && pages < groups + 20, "{pages} pages of {groups} groups");
        }
        assert_eq!(scan(&Store::new(1, 1), 12), (Vec::new(), 4096));
    }

    #[test]
    fn a_page_that_ends_among_keys_of_one_order_goes_on_behind_them() {
        let mut store = store();
        let order = 5 << 32 | 7;
        let item = |number: u8| Item::new(&[number; 500], b"", 0, NEVER);
        store.in_order.extend((1..=5).map(|number| (order, item(number))));
        let (mut cursor, mut found) = (Cursor::new(5 << 32, 0), Vec::new());
        while cursor.hash() == 5 {
            let page = Page::parse(&store.scan(cursor, 32)).expect("a page");
            found.extend(page.keys.iter().map(|key| key[0]));
            cursor = page.next.expect("there are more groups");
        }
        assert_eq!(found, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_clone_keeps_what_was_there() {
        let mut store = store();
        put(&mut store, "a", "1");
        let before = store.clone();
        put(&mut store, "a", "2");
        store.apply(0, What::Delete { key: b"a" }, 0);
        assert_eq!(before.value(b"a"), Some(&b"1"[..]));
        assert_eq!(store.value(b"a"), None);
    }
}
