//! SCAN: a READ with [`FLAG_SCAN`](super::FLAG_SCAN) for the keys of one key group, a page at a time.
//!
//! Keys have an order: by [`key_hash`], which groups them, and by the hash of the whole key. The key of the READ is a [`Cursor`]: where the
//! page begins. So the READ concerns one key group, and the page is linearizable like any READ.

use super::hash::key_hash;
use super::layout::Scanned;
use twox_hash::XxHash3_64;
use zerocopy::{FromBytes, IntoBytes};

/// A key's place in the order of a scan. Few keys share one.
#[must_use]
pub fn scan_order(key: &[u8]) -> u64 {
    u64::from(key_hash(key)) << 32 | XxHash3_64::oneshot(key) & u64::from(u32::MAX)
}

/// Where a scan goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor([u8; 10]);

impl Cursor {
    /// At the keys with this order, behind the first `skip` of them.
    #[must_use]
    pub fn new(order: u64, skip: u16) -> Self {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&order.to_be_bytes());
        bytes[8..].copy_from_slice(&skip.to_be_bytes());
        Self(bytes)
    }

    /// `None` if these bytes are no cursor.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The key of a SCAN.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The order of the keys.
    #[must_use]
    pub fn order(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// How many of them are behind it.
    #[must_use]
    pub fn skip(&self) -> u16 {
        u16::from_be_bytes([self.0[8], self.0[9]])
    }

    /// `hash` of a SCAN.
    #[must_use]
    pub fn hash(&self) -> u32 {
        (self.order() >> 32) as u32
    }
}

/// A page of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The keys, in their order.
    pub keys: Vec<Vec<u8>>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Cursor>,
    /// Keys of the whole store, as the replica knows it.
    pub all: u64,
}

impl Page {
    /// Reads the value of a reply; `None` if it is none.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (head, mut rest) = Scanned::ref_from_prefix(value).ok()?;
        let next = (head.is_last == 0).then(|| Cursor::new(head.next.get(), head.skip.get()));
        let mut page = Self { keys: Vec::new(), next, all: head.all.get() };
        while !rest.is_empty() {
            let (length, tail) = rest.split_first_chunk::<2>()?;
            let (key, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            page.keys.push(key.to_vec());
            rest = tail;
        }
        Some(page)
    }
}

/// Writes a page.
#[derive(Debug)]
pub struct PageWriter {
    bytes: Vec<u8>,
    room: usize,
}

impl PageWriter {
    /// A page of at most `room` bytes.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { bytes: vec![0; size_of::<Scanned>()], room }
    }

    /// Adds a key. Returns whether there was room.
    pub fn add(&mut self, key: &[u8]) -> bool {
        let has_room = self.bytes.len() + 2 + key.len() <= self.room;
        if has_room {
            self.bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
            self.bytes.extend_from_slice(key);
        }
        has_room
    }

    /// Completes it.
    #[must_use]
    pub fn finish(mut self, next: Option<Cursor>, all: u64) -> Vec<u8> {
        let cursor = next.unwrap_or_default();
        let head = Scanned {
            next: cursor.order().into(),
            all: all.into(),
            skip: cursor.skip().into(),
            is_last: next.is_none().into(),
            reserved: [0; 5],
        };
        self.bytes[..size_of::<Scanned>()].copy_from_slice(head.as_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let mut writer = PageWriter::new(24 + 2 + 3 + 2);
        assert!(writer.add(b"one") && writer.add(b"") && !writer.add(b""));
        let (next, keys) = (Some(Cursor::new(7 << 32, 9)), vec![b"one".to_vec(), Vec::new()]);
        let bytes = writer.finish(next, 12);
        assert_eq!(Page::parse(&bytes), Some(Page { keys, next, all: 12 }));
        assert_eq!(Page::parse(&bytes[..bytes.len() - 1]), None, "a part of a key's length");
        assert_eq!(Page::parse(&PageWriter::new(24).finish(None, 0)), Some(Page::default()));
        assert_eq!(Page::parse(b""), None);
    }

    #[test]
    fn keys_of_a_group_are_together() {
        assert_eq!(scan_order(b"a{x}") >> 32, scan_order(b"b{x}") >> 32);
        assert_ne!(scan_order(b"a{x}"), scan_order(b"b{x}"));
        let cursor = Cursor::new(scan_order(b"a"), 3);
        assert_eq!((cursor.hash(), cursor.skip()), (key_hash(b"a"), 3));
        assert_eq!(Cursor::from_bytes(cursor.as_bytes()), Some(cursor));
        assert_eq!(Cursor::from_bytes(b"too short"), None);
    }
}
