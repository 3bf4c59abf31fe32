//! The data: keys and values.
//!
//! A snapshot must not stop the store, and not double its memory. So the keys are divided into shards by their hash, and a snapshot
//! shares them: a shard is copied when it is written for the first time after a snapshot has begun.

use super::entry::What;
use bytes::Bytes;
use midflight_wire::reads::{DATA_MAX, Status, key_hash};
use std::collections::BTreeMap;
use std::sync::Arc;

/// As a power of two. A million keys make shards of a thousand: a copy takes some ten microseconds.
const SHARD_BITS: u32 = 10;
/// What a key costs beside its bytes and those of its value, roughly.
const KEY_OVERHEAD: usize = 96;

/// Keys in their order: the same in each replica and in each run.
pub(super) type Shard = BTreeMap<Bytes, Bytes>;

/// Keys and values. A clone shares all of them until one of both is changed.
#[derive(Clone, Debug)]
pub(super) struct Store {
    shards: Vec<Arc<Shard>>,
    keys: usize,
    bytes: usize,
    bytes_max: usize,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether it is done, or why not.
    pub(super) status: Status,
    /// Its value, where it has one.
    pub(super) value: Bytes,
}

impl Outcome {
    /// Without a value.
    pub(super) fn plain(status: Status) -> Self {
        Self { status, value: Bytes::new() }
    }

    /// Done, with this value.
    pub(super) fn done(value: impl Into<Bytes>) -> Self {
        Self { status: Status::Done, value: value.into() }
    }
}

impl Store {
    /// Without a key.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { shards: vec![Arc::default(); 1 << SHARD_BITS], keys: 0, bytes: 0, bytes_max }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Bytes> {
        self.shards[shard_of(key)].get(key)
    }

    /// Keys in it.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// What they cost, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All shards, in their order.
    pub(super) fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    /// Removes all keys.
    pub(super) fn flush(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    /// Changes a key.
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
        }
    }

    /// A key that does not exist counts from 0, and the value is a number in decimal, as in Redis. The answer has eight bytes.
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
            return Outcome::plain(Status::NotFound); // nothing is copied for it
        }
        if let Some(value) = Arc::make_mut(&mut self.shards[shard_of(key)]).remove(key) {
            self.bytes -= cost(key, &value);
            self.keys -= 1;
        }
        Outcome::plain(Status::Done)
    }

    fn insert(&mut self, key: Bytes, value: Bytes) {
        Arc::make_mut(&mut self.shards[shard_of(&key)]).insert(key, value);
    }

    /// Takes a key of a snapshot, which had room for it where it was made.
    pub(super) fn restore(&mut self, key: &[u8], value: &[u8]) {
        self.keys += 1;
        self.bytes += cost(key, value);
        self.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }
}

fn shard_of(key: &[u8]) -> usize {
    (key_hash(key) >> (32 - SHARD_BITS)) as usize
}

fn cost(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + KEY_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Store {
        Store::new(1 << 20)
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
        assert_eq!(store.apply(What::Delete { key: b"a" }).status, Status::Done);
        assert_eq!((store.get(b"a"), store.keys()), (None, 1));
    }

    #[test]
    fn r7_a_full_store_takes_no_more_but_gives_way() {
        let mut store = Store::new(3 * (KEY_OVERHEAD + 10));
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
