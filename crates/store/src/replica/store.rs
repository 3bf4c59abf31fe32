//! The data: keys and values.
//!
//! A snapshot must neither stop the store nor double its memory. So a hash divides the keys into shards, which a snapshot shares; a shard
//! is copied at its first write after the snapshot began. The hash is seeded per replica, so that an attacker cannot fill one shard. (The
//! hash of key groups would not do: its braces put many keys together.)

use super::entry::What;
use bytes::Bytes;
use midflight_wire::store::{DATA_MAX, Status};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// log2 of the shards. With a million keys a shard has 250; copying it takes about ten microseconds.
const SHARD_BITS: u32 = 12;
const CLEARED_AT_ONCE: usize = 32;
const KEY_OVERHEAD: usize = 96;

/// Sorted, so that the order is the same in each replica and run.
pub(super) type Shard = BTreeMap<Bytes, Bytes>;

/// Keys and values. A clone shares them until either changes.
#[derive(Clone, Debug)]
pub(super) struct Store {
    shards: Vec<Arc<Shard>>,
    seed: u64,
    keys: usize,
    bytes: usize,
    bytes_max: usize,
    /// Shards to free. Freeing a million keys at once would stop the replica for too long.
    discarded: Vec<Arc<Shard>>,
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
        Self { shards: no_shards(), seed, keys: 0, bytes: 0, bytes_max, discarded: Vec::new() }
    }

    fn shard_of(&self, key: &[u8]) -> usize {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(key);
        (hasher.finish() >> (64 - SHARD_BITS)) as usize
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Bytes> {
        self.shards[self.shard_of(key)].get(key)
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
        (self.keys, self.bytes) = (0, 0);
    }

    /// Leaves shards for [`clear_up`](Self::clear_up) to free.
    pub(super) fn discard(&mut self, shards: Vec<Arc<Shard>>) {
        self.discarded.extend(shards.into_iter().filter(|shard| !shard.is_empty()));
    }

    pub(super) fn replace(&mut self, former: Self) {
        self.discard(former.shards);
        self.discard(former.discarded);
    }

    /// Frees some discarded shards. Returns whether more remain.
    pub(super) fn clear_up(&mut self) -> bool {
        let rest = self.discarded.len().saturating_sub(CLEARED_AT_ONCE);
        self.discarded.truncate(rest);
        rest > 0
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes <= self.bytes_max
    }

    pub(super) fn apply(&mut self, what: What<'_>) -> Outcome {
        match what {
            What::Put { key, value } => self.put(key, value, Outcome::plain(Status::Done)),
            What::Delete { key } => self.delete(key),
            What::Cas { key, expected, value } => match self.get(key) {
                None => Outcome::plain(Status::NotFound),
                Some(present) if present == expected => self.put(key, value, Outcome::plain(Status::Done)),
                Some(present) => Outcome { status: Status::Conflict, value: present.clone() },
            },
            What::Incr { key, by } => self.incr(key, by),
            What::Create { key, value } => match self.get(key) {
                None => self.put(key, value, Outcome::plain(Status::Done)),
                Some(present) => Outcome { status: Status::Conflict, value: present.clone() },
            },
        }
    }

    /// A missing key counts as 0. Values are decimal, as in Redis; the answer has eight bytes.
    fn incr(&mut self, key: &[u8], by: i64) -> Outcome {
        let present = match self.get(key) {
            None => Some(0),
            Some(value) => std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok()),
        };
        match present.and_then(|number| number.checked_add(by)) {
            None => Outcome::plain(Status::NotANumber),
            Some(sum) => {
                let text = sum.to_string();
                self.put(key, text.as_bytes(), Outcome::done(sum.to_be_bytes().to_vec()))
            }
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8], done: Outcome) -> Outcome {
        if key.len() + value.len() > DATA_MAX {
            return Outcome::plain(Status::TooLarge);
        }
        let before = self.get(key).map(|value| cost(key, value));
        let bytes = self.bytes - before.unwrap_or(0) + cost(key, value);
        if bytes > self.bytes_max && bytes > self.bytes {
            return Outcome::plain(Status::Full);
        }
        self.bytes = bytes;
        self.keys += usize::from(before.is_none());
        self.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        done
    }

    fn delete(&mut self, key: &[u8]) -> Outcome {
        if self.get(key).is_none() {
            return Outcome::plain(Status::NotFound); // avoids copying the shard
        }
        let shard = self.shard_of(key);
        if let Some(value) = Arc::make_mut(&mut self.shards[shard]).remove(key) {
            self.bytes -= cost(key, &value);
            self.keys -= 1;
        }
        Outcome::plain(Status::Done)
    }

    fn insert(&mut self, key: Bytes, value: Bytes) {
        let shard = self.shard_of(&key);
        Arc::make_mut(&mut self.shards[shard]).insert(key, value);
    }

    pub(super) fn restore(&mut self, key: &[u8], value: &[u8]) {
        self.keys += 1;
        self.bytes += cost(key, value);
        self.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }
}

fn no_shards() -> Vec<Arc<Shard>> {
    vec![Arc::default(); 1 << SHARD_BITS]
}

fn cost(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + KEY_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Store {
        Store::new(1 << 20, 1)
    }

    fn number(number: i64) -> Outcome {
        Outcome::done(number.to_be_bytes().to_vec())
    }

    fn put(store: &mut Store, key: &str, value: &str) -> Status {
        store.apply(What::Put { key: key.as_bytes(), value: value.as_bytes() }).status
    }

    #[test]
    fn commands_say_what_they_found() {
        let mut store = store();
        assert_eq!(store.apply(What::Delete { key: b"a" }).status, Status::NotFound);
        assert_eq!(store.apply(What::Cas { key: b"a", expected: b"", value: b"1" }).status, Status::NotFound);
        assert_eq!(put(&mut store, "a", "one"), Status::Done);
        let conflict = store.apply(What::Cas { key: b"a", expected: b"two", value: b"3" });
        assert_eq!((conflict.status, &conflict.value[..]), (Status::Conflict, &b"one"[..]));
        assert_eq!(store.apply(What::Cas { key: b"a", expected: b"one", value: b"3" }).status, Status::Done);
        assert_eq!(store.apply(What::Incr { key: b"a", by: -5 }), number(-2));
        assert_eq!(store.apply(What::Incr { key: b"b", by: i64::MAX }), number(i64::MAX));
        assert_eq!(store.apply(What::Incr { key: b"b", by: 1 }).status, Status::NotANumber);
        let create = What::Create { key: b"c", value: b"new" };
        assert_eq!(store.apply(create).status, Status::Done);
        assert_eq!(store.apply(create), Outcome { status: Status::Conflict, value: "new".into() });
        assert_eq!(store.apply(What::Delete { key: b"a" }).status, Status::Done);
        assert_eq!((store.get(b"a"), store.keys()), (None, 2));
    }

    #[test]
    fn r7_a_full_store_takes_no_more_but_gives_way() {
        let mut store = Store::new(3 * (KEY_OVERHEAD + 10), 1);
        for key in ["a", "b", "c"] {
            assert_eq!(put(&mut store, key, "12345"), Status::Done);
        }
        assert_eq!(put(&mut store, "d", "12345"), Status::Full);
        assert_eq!(put(&mut store, "c", "1"), Status::Done, "it gets smaller");
        assert_eq!(store.apply(What::Delete { key: b"a" }).status, Status::Done);
        assert_eq!(put(&mut store, "d", "12345"), Status::Done);
        let long = "x".repeat(DATA_MAX);
        assert_eq!(put(&mut store, "d", &long), Status::TooLarge);
        assert_eq!(store.get(b"d").map(|value| &value[..]), Some(&b"12345"[..]), "nothing is half done");
    }

    #[test]
    fn a_clone_keeps_what_was_there() {
        let mut store = store();
        put(&mut store, "a", "1");
        let before = store.clone();
        put(&mut store, "a", "2");
        store.apply(What::Delete { key: b"a" });
        assert_eq!(before.get(b"a").map(|value| &value[..]), Some(&b"1"[..]));
        assert_eq!(store.get(b"a"), None);
    }
}
