//! A value that fits no reply is read piece by piece: by READs with [`FLAG_PIECE`](super::FLAG_PIECE).

use super::layout::{Piece, PieceOf};
use super::{KEY_MAX, Request, VALUE_MAX};
use crate::PACKET_MAX;
use zerocopy::{FromBytes, IntoBytes};

/// Where a piece begins: the key of a READ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceInValue(Vec<u8>);

impl PlaceInValue {
    /// Longest key of a value in pieces, in bytes.
    pub const KEY_MAX: usize = KEY_MAX - size_of::<PieceOf>();

    /// `revision` is that of the pieces before; 0: this is the first.
    #[must_use]
    pub fn new(key: &[u8], revision: u64, offset: u32) -> Self {
        let of = PieceOf { revision: revision.into(), offset: offset.into(), reserved: [0; 4] };
        Self([of.as_bytes(), key].concat())
    }

    /// Revision, offset and key; `None` if these bytes are no place, or its key is empty.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(u64, u32, &[u8])> {
        let (of, key) = PieceOf::ref_from_prefix(bytes).ok()?;
        (!key.is_empty()).then(|| (of.revision.get(), of.offset.get(), key))
    }

    /// The key of the value.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0[size_of::<PieceOf>()..]
    }

    /// The key of the READ.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes of a value in each of its pieces but the last. (A READ_REPLY has the key of its READ.)
#[must_use]
pub fn piece_room(key: &[u8]) -> usize {
    let head = size_of::<Request>() + size_of::<PieceOf>() + size_of::<Piece>();
    PACKET_MAX.saturating_sub(head).saturating_sub(key.len())
}

/// A piece of a value, and what is known of the whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePiece {
    /// Log index of the entry that last changed the key.
    pub revision: u64,
    /// Bytes of the whole value.
    pub length: usize,
    /// Where the piece begins.
    pub offset: usize,
    /// The piece.
    pub bytes: Vec<u8>,
}

impl ValuePiece {
    /// Reads the value of a reply; `None` if it is no piece of a value of this key.
    #[must_use]
    pub fn parse(key: &[u8], value: &[u8]) -> Option<Self> {
        let (head, bytes) = Piece::ref_from_prefix(value).ok()?;
        let (length, offset, room) = (head.length.get() as usize, head.offset.get() as usize, piece_room(key));
        let is_whole = offset.is_multiple_of(room) && bytes.len() == room.min(length.checked_sub(offset)?);
        let is_piece = is_whole && length <= VALUE_MAX;
        is_piece.then(|| Self { revision: head.revision.get(), length, offset, bytes: bytes.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = PlaceInValue::new(b"key", 7, 9);
        assert_eq!(PlaceInValue::parse(place.as_bytes()), Some((7, 9, &b"key"[..])));
        assert_eq!(place.key(), b"key");
        assert_eq!(PlaceInValue::parse(&place.as_bytes()[..16]), None, "no key");
        assert_eq!(PlaceInValue::parse(b"short"), None);
        assert_eq!(piece_room(&[0; PlaceInValue::KEY_MAX]), 96);
    }

    #[test]
    fn r7_a_piece_is_whole_or_none() {
        let (key, room) = ([0; PlaceInValue::KEY_MAX], 96);
        let piece = |length: usize, offset: u32, bytes: usize| {
            let head = Piece { revision: 7.into(), length: (length as u32).into(), offset: offset.into() };
            ValuePiece::parse(&key, &[head.as_bytes(), &vec![1; bytes]].concat()).map(|piece| piece.bytes.len())
        };
        assert_eq!(piece(100, 0, room), Some(room));
        assert_eq!(piece(100, 96, 4), Some(4));
        assert_eq!((piece(0, 0, 0), piece(96, 96, 0)), (Some(0), Some(0)));
        for (length, offset, bytes) in [(100, 0, room - 1), (100, 95, 5), (100, 192, 0), (VALUE_MAX + 1, 0, room)] {
            assert_eq!(piece(length, offset, bytes), None, "{length} {offset} {bytes}");
        }
        assert_eq!(ValuePiece::parse(&key, b"short"), None);
    }
}
