//! Visited situations, in bounded memory.
//!
//! A situation is stored as a 128-bit hash. Among 100 million situations two collide with a probability of 10^-23; the
//! search would then skip one of them.

use super::timeline::Timeline;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A `u128` would align to 16 bytes and make each entry 8 bytes larger.
type Key = [u64; 2];

pub(super) fn hash_of(value: impl Hash) -> Key {
    [0, 1].map(|half: u64| {
        let mut hasher = DefaultHasher::new();
        (half, &value).hash(&mut hasher);
        hasher.finish()
    })
}

pub(super) fn flip(set: &mut Key, operation: usize) {
    let key = hash_of(operation);
    *set = [set[0] ^ key[0], set[1] ^ key[1]];
}

/// Operations with unknown outcomes that are in order: a prefix of each kind.
pub(super) struct Used {
    counts: Vec<usize>,
    /// One per operation, grouped by kind.
    bits: Vec<u64>,
    first: Vec<usize>,
}

impl Used {
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let (mut first, mut end) = (Vec::new(), 0);
        for kind in &timeline.kinds {
            first.push(end);
            end += kind.len();
        }
        Self { counts: vec![0; first.len()], bits: vec![0; end.div_ceil(64)], first }
    }

    pub(super) fn count(&self, kind: usize) -> usize {
        self.counts[kind]
    }

    pub(super) fn add(&mut self, kind: usize) {
        self.flip(kind);
        self.counts[kind] += 1;
    }

    pub(super) fn remove(&mut self, kind: usize) {
        self.counts[kind] -= 1;
        self.flip(kind);
    }

    fn flip(&mut self, kind: usize) {
        let bit = self.first[kind] + self.counts[kind];
        self.bits[bit / 64] ^= 1 << (bit % 64);
    }

    /// Without trailing zero words.
    fn bits(&self) -> &[u64] {
        let length = self.bits.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        &self.bits[..length]
    }
}

fn is_within(fewer: &[u64], more: &[u64]) -> bool {
    fewer.len() <= more.len() && fewer.iter().zip(more).all(|(fewer, more)| fewer & !more == 0)
}

#[derive(Debug)]
pub(super) struct TooMuch;

pub(super) struct Seen {
    /// The operations with unknown outcomes that each situation had used when visited. An empty list: it had used none,
    /// so no other path to it is better.
    used: HashMap<Key, Vec<Box<[u64]>>>,
    bytes_max: usize,
    bytes: usize,
}

impl Seen {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { used: HashMap::new(), bytes_max, bytes: 0 }
    }

    /// Adds a situation; false if it is dominated.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn add(&mut self, key: Key, used: &Used) -> Result<bool, TooMuch> {
        let bits = used.bits();
        let known = self.used.get(&key);
        if known.is_some_and(|all| all.is_empty() || all.iter().any(|fewer| is_within(fewer, bits))) {
            return Ok(false);
        }
        // While a table grows, both the old one and one of twice the size exist.
        let grows = if self.used.len() == self.used.capacity() { 3 } else { 1 };
        if grows * table_bytes(self.used.capacity()) + self.bytes + used_bytes(bits) > self.bytes_max {
            return Err(TooMuch);
        }
        self.bytes += used_bytes(bits);
        let all = self.used.entry(key).or_default();
        if bits.is_empty() {
            self.bytes -= std::mem::take(all).iter().map(|more| used_bytes(more)).sum::<usize>();
        } else {
            all.reserve_exact(usize::from(all.is_empty())); // most have one
            all.push(bits.into());
        }
        Ok(true)
    }
}

/// Each place takes one byte besides its entry, and one of eight places stays free.
fn table_bytes(capacity: usize) -> usize {
    capacity.max(4) * 8 / 7 * (size_of::<(Key, Vec<Box<[u64]>>)>() + 1)
}

/// The words of a set, its place in a vector that doubles as it grows, and the allocator's overhead for both.
fn used_bytes(bits: &[u64]) -> usize {
    if bits.is_empty() { 0 } else { size_of_val(bits) + 2 * size_of::<Box<[u64]>>() + 32 }
}
