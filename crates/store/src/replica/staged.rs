//! Values that come in parts, because they fit no packet, until an update takes them.

use super::super::update::Part;
use bytes::Bytes;
use midflight_wire::store::{Status, VALUE_MAX};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of all staged values.
const BYTES_MAX: usize = 64 << 20;
/// Memory of a part in addition to its bytes.
const PART_OVERHEAD: usize = 256;
/// After this time without a new part a value is removed, if others need the room.
const KEPT_MS: u64 = 60_000;

/// A value of which parts have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) length: u32,
    /// When the last part came, in the store's time.
    pub(super) last: u64,
    /// By where they begin.
    pub(super) parts: BTreeMap<u32, Bytes>,
}

/// By the clients' random numbers. A clone shares the values until they change.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    values: BTreeMap<u64, Arc<Value>>,
    bytes: usize,
    bytes_max: usize,
    /// No value had its last part before this time.
    oldest: u64,
}

impl Staged {
    pub(super) fn new(store_bytes: usize) -> Self {
        Self { values: BTreeMap::new(), bytes: 0, bytes_max: store_bytes.min(BYTES_MAX), oldest: 0 }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = (u64, &Arc<Value>)> {
        self.values.iter().map(|(number, value)| (*number, value))
    }

    pub(super) fn stage(&mut self, part: &Part<'_>, time: u64) -> Status {
        if part.length as usize > VALUE_MAX {
            return Status::TooLarge;
        }
        let bytes = cost(part.bytes);
        if self.bytes + bytes > self.bytes_max {
            self.remove_old(time);
        }
        if self.bytes + bytes > self.bytes_max {
            return Status::Full;
        }
        if self.add(part, time) { Status::Done } else { Status::BadRequest }
    }

    /// Whether the part can be one of its value.
    pub(super) fn add(&mut self, part: &Part<'_>, time: u64) -> bool {
        let length = self.values.get(&part.staged).map_or(part.length, |value| value.length);
        let end = (part.offset as usize).saturating_add(part.bytes.len());
        if part.length != length || part.bytes.is_empty() || end > length as usize {
            return false;
        }
        let new = || Arc::new(Value { length, last: time, parts: BTreeMap::new() });
        let value = Arc::make_mut(self.values.entry(part.staged).or_insert_with(new));
        let former = value.parts.insert(part.offset, Bytes::copy_from_slice(part.bytes));
        self.bytes += cost(part.bytes);
        match former {
            Some(former) => self.bytes -= cost(&former),
            None => value.last = value.last.max(time),
        }
        true
    }

    /// Removes a value and returns it, if it is whole.
    pub(super) fn take(&mut self, number: u64) -> Option<Vec<u8>> {
        let value = self.values.remove(&number)?;
        self.bytes -= costs(&value);
        let mut whole = Vec::with_capacity(value.parts.values().map(Bytes::len).sum());
        for (offset, part) in &value.parts {
            if *offset as usize != whole.len() {
                return None;
            }
            whole.extend_from_slice(part);
        }
        (whole.len() == value.length as usize).then_some(whole)
    }

    fn remove_old(&mut self, time: u64) {
        // Else each part that finds no room would look at all values.
        if self.oldest + KEPT_MS > time {
            return;
        }
        self.values.retain(|_, value| value.last + KEPT_MS > time);
        self.bytes = self.values.values().map(|value| costs(value)).sum();
        self.oldest = self.values.values().map(|value| value.last).min().unwrap_or(time);
    }
}

fn cost(part: &[u8]) -> usize {
    part.len() + PART_OVERHEAD
}

fn costs(value: &Value) -> usize {
    value.parts.values().map(|part| cost(part)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(staged: u64, length: u32, offset: u32, bytes: &[u8]) -> Part<'_> {
        Part { staged, length, offset, bytes }
    }

    #[test]
    fn parts_in_any_order_make_a_value_that_is_taken_once() {
        let mut staged = Staged::new(1_000);
        assert_eq!(staged.stage(&part(1, 5, 3, b"45"), 0), Status::Done);
        assert_eq!(staged.stage(&part(2, 1, 0, b"x"), 0), Status::Done);
        assert_eq!(staged.stage(&part(1, 5, 0, b"123"), 0), Status::Done);
        assert_eq!(staged.take(1), Some(b"12345".to_vec()));
        assert_eq!((staged.take(1), staged.bytes), (None, cost(b"x")));
    }

    #[test]
    fn a_value_with_a_hole_is_none() {
        let mut staged = Staged::new(1_000);
        staged.stage(&part(1, 5, 0, b"12"), 0);
        staged.stage(&part(1, 5, 3, b"45"), 0);
        assert_eq!((staged.take(1), staged.bytes), (None, 0));
    }

    #[test]
    fn r7_parts_that_cannot_be_are_refused() {
        let mut staged = Staged::new(1_000);
        assert_eq!(staged.stage(&part(1, 5, 0, b"12"), 0), Status::Done);
        let refused = [part(1, 6, 2, b"3"), part(1, 5, 4, b"56"), part(1, 5, 2, b""), part(1, 5, u32::MAX, b"3")];
        for part in refused {
            assert_eq!(staged.stage(&part, 0), Status::BadRequest, "{part:?}");
        }
        assert_eq!(staged.stage(&part(2, VALUE_MAX as u32 + 1, 0, b"1"), 0), Status::TooLarge);
        assert_eq!((staged.values.len(), staged.bytes), (1, cost(b"12")));
    }

    #[test]
    fn r7_what_nobody_completes_makes_room_after_a_minute() {
        let mut staged = Staged::new(2 * cost(b"12"));
        assert_eq!(staged.stage(&part(1, 5, 0, b"12"), 0), Status::Done);
        assert_eq!(staged.stage(&part(2, 5, 0, b"12"), 30_000), Status::Done);
        assert_eq!(staged.stage(&part(3, 5, 0, b"12"), KEPT_MS - 1), Status::Full);
        assert_eq!(staged.stage(&part(3, 5, 0, b"12"), KEPT_MS), Status::Done);
        assert_eq!(staged.values.keys().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(staged.bytes, 2 * cost(b"12"));
        assert_eq!(staged.stage(&part(4, 5, 0, b"1"), KEPT_MS + 29_999), Status::Full);
        assert_eq!(staged.stage(&part(4, 5, 0, b"1"), KEPT_MS + 30_000), Status::Done);
    }
}
