//! A key, its value, revision and expiry in one allocation: a store has millions of them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// [`Item::expires`] of a key that does not expire.
pub(super) const NEVER: u64 = u64::MAX;

/// The length of the key follows expiry and revision.
const LENGTH: usize = 2 * size_of::<u64>();
const KEY: usize = LENGTH + size_of::<u16>();

/// Compares by its key. A clone shares the bytes.
#[derive(Clone, Debug)]
pub(super) struct Item(Arc<[u8]>);

impl Item {
    /// `revision` is the index of the entry that made it, `expires` is in the store's time. Keys have at most
    /// [`KEY_MAX`](midflight_wire::store::KEY_MAX) bytes.
    pub(super) fn new(key: &[u8], value: &[u8], revision: u64, expires: u64) -> Self {
        let length = (key.len() as u16).to_be_bytes();
        Self([&expires.to_be_bytes()[..], &revision.to_be_bytes(), &length, key, value].concat().into())
    }

    pub(super) fn expires(&self) -> u64 {
        u64::from_be_bytes(*self.0.first_chunk().expect("an item begins with its expiry"))
    }

    pub(super) fn revision(&self) -> u64 {
        u64::from_be_bytes(*self.0[size_of::<u64>()..].first_chunk().expect("the revision follows the expiry"))
    }

    fn key_end(&self) -> usize {
        KEY + usize::from(u16::from_be_bytes([self.0[LENGTH], self.0[LENGTH + 1]]))
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.0[KEY..self.key_end()]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.0[self.key_end()..]
    }
}

impl Borrow<[u8]> for Item {
    fn borrow(&self) -> &[u8] {
        self.key()
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Item {}
